"""How answers and explanations look in a notebook. Every text is escaped: none of it is trusted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._answer import Explanation, Span

# Told apart by people who see colours in any common way; dark enough under white text.
_COLOURS = ["#0b6e99", "#b45309", "#7c3aed", "#15803d", "#be185d", "#4d5b1f", "#9f1239", "#1d4ed8"]


def _colour(label: str) -> str:
    return _COLOURS[sum(label.encode()) % len(_COLOURS)]


def answer(text: str, spans: Sequence[Span]) -> str:
    """The text with its spans in colours, each with its label and probability."""
    parts, done = [], 0
    for span in spans:
        parts.append(escape(text[done : span.start]))
        parts.append(
            f'<mark style="background:{_colour(span.label)};color:white;border-radius:.3em;padding:.1em .3em">'
            f'{escape(span.text)} <small style="opacity:.85">{escape(span.label)} {span.probability:.2f}</small></mark>'
        )
        done = span.end
    parts.append(escape(text[done:]))
    return f'<div style="line-height:1.9;white-space:pre-wrap">{"".join(parts)}</div>'


def explanations(all: Iterable[Explanation], examples: list[list[str]]) -> str:
    """For each span the examples that spoke for it, the warmer a word the louder it spoke."""
    return "".join(_explanation(why, examples) for why in all) or "<div>no span was found</div>"


def _explanation(why: Explanation, examples: list[list[str]]) -> str:
    loudest = max((abs(voice.score) for voice in why.voices), default=1.0) or 1.0
    of_sentence: dict[int, dict[int, float]] = {}
    rows = []
    for voice in why.voices:
        if voice.sentence is None or voice.word is None:
            rows.append(_heat("the label's name", voice.score, loudest))
        else:
            of_sentence.setdefault(voice.sentence, {})[voice.word] = voice.score
    for sentence, scores in of_sentence.items():
        words = (_heat(word, scores.get(at, 0.0), loudest) for at, word in enumerate(examples[sentence]))
        rows.append(" ".join(words))
    second = ""
    if why.runner_up:
        second = f"; next best: {escape(why.runner_up[0] or 'no label')}, {why.runner_up[1]:.2f} behind"
    head = (
        f'<b style="color:{_colour(why.span.label)}">{escape(why.span.text)} = {escape(why.span.label)}</b> '
        f"{why.span.probability:.2f} <small>score {why.score:.2f} = examples {why.examples:.2f} + "
        f"transitions {why.transitions:.2f}{second}</small>"
    )
    items = "".join(f'<li style="line-height:1.8">{row}</li>' for row in rows)
    return f"<div>{head}<ul>{items}</ul></div>"


def _heat(word: str, score: float, loudest: float) -> str:
    red, green, blue = (217, 72, 15) if score >= 0 else (37, 99, 235)
    strength = min(abs(score) / loudest, 1.0)
    return (
        f'<span title="{score:.2f}" style="background:rgba({red},{green},{blue},{strength:.2f});'
        f'border-radius:.2em;padding:.05em .15em">{escape(word)}</span>'
    )
