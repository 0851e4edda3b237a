#!/usr/bin/env python3
"""Draws the pictures of docs/guide/tagging.md anew: a terminal, and the page that explains. Those of the playground: check_playground.sh.

    python3 scripts/draw_pictures.py [FEWTAG]

It needs Chromium (`CHROMIUM` names another).
"""

import html
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs/images"
LINES = "put on kind of blue by miles davis\nadd nina simone to my workout list\nwake me at seven\n"
SENTENCE = "could you play some billie holiday this evening"
TAG = ["tag", "--support", "examples/music.txt"]
STYLES = {"1": "font-weight:bold", "2": "color:#888", "36": "color:#66d9ff", "33": "color:#ffd787"}


def main(program: str) -> None:
    def fewtag(*options: str, lines: str | None = None) -> str:
        command = [program, *TAG, *options]
        return subprocess.run(command, cwd=ROOT, input=lines, capture_output=True, check=True, text=True).stdout

    shell = '<span style="color:#87d787">$</span> fewtag tag --support examples/music.txt'
    tagged = in_html(fewtag("--color", "always", lines=LINES))
    explained = in_html(fewtag("--color", "always", "--explain", SENTENCE))
    style = "margin:0;padding:18px;background:#1e1e1e;color:#f8f8f2;font:15px/1.45 'DejaVu Sans Mono',monospace"
    terminal = f'<meta charset="utf-8"><body style="{style}"><pre style="margin:0;font:inherit">{shell} &lt; lines.txt\n{tagged}{shell} --explain \'{SENTENCE}\'\n{explained}</pre>'
    screenshot(terminal, IMAGES / "tag-terminal.png", 1000, 428)
    screenshot(fewtag("--explain", "html", SENTENCE), IMAGES / "explain-page.png", 1000, 880)


def in_html(text: str) -> str:
    """What a terminal would show."""
    open_spans = 0

    def span(code: re.Match) -> str:
        nonlocal open_spans
        styles = [STYLES[number] for number in code[1].split(";") if number in STYLES]
        if styles:
            open_spans += 1
            return f'<span style="{";".join(styles)}">'
        closing, open_spans = "</span>" * open_spans, 0
        return closing

    return re.sub("\x1b\\[([0-9;]*)m", span, html.escape(text, quote=False))


def screenshot(page: str, out: Path, width: int, height: int) -> None:
    chromium = os.environ.get("CHROMIUM", "/usr/bin/chromium")
    with tempfile.TemporaryDirectory() as work:
        (Path(work) / "page.html").write_text(page, encoding="utf-8")
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-background-networking", f"--user-data-dir={work}/profile"]
        picture = [f"--screenshot={out}", f"--window-size={width},{height}", f"file://{work}/page.html"]
        subprocess.run([chromium, *options, *picture], check=True, capture_output=True)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "target/release/fewtag"))
