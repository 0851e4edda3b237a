"""A curve over doubling steps as SVG, without dependencies."""

import math

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 520, 260, 56, 16, 16, 48


def curve(points, x_title, y_title):
    """`points`: x -> y, x on a logarithmic scale, y from zero."""
    xs, ys = [math.log2(x) for x in points], list(points.values())
    step = nice_step(max(ys) / 4)
    top = step * math.ceil(max(ys) / step)
    across = lambda x: LEFT + (x - xs[0]) / (xs[-1] - xs[0]) * (WIDTH - LEFT - RIGHT)
    up = lambda y: HEIGHT - BOTTOM - y / top * (HEIGHT - TOP - BOTTOM)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
             'font-size="12">', f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>']
    for i in range(round(top / step) + 1):
        y = up(i * step)
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>'
                     f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{i * step:g}</text>')
    for x, label in zip(xs, points):
        parts.append(f'<text x="{across(x):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{label}</text>')
    line = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in zip(xs, ys))
    parts.append(f'<polyline points="{line}" fill="none" stroke="#1f77b4" stroke-width="2"/>')
    parts += [f'<circle cx="{across(x):.1f}" cy="{up(y):.1f}" r="3" fill="#1f77b4"/>' for x, y in zip(xs, ys)]
    parts.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 8}" text-anchor="middle">{x_title}</text>')
    parts.append(f'<text transform="translate(14 {HEIGHT / 2}) rotate(-90)" text-anchor="middle">{y_title}</text>')
    return "\n".join(parts) + "\n</svg>\n"


def nice_step(rough):
    """1, 2 or 5 times a power of ten, at least `rough`."""
    power = 10 ** math.floor(math.log10(rough))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= rough)
