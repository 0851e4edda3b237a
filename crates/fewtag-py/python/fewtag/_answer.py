"""What is found in a text, and why."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import _html
from ._fewtag import FewtagError

if TYPE_CHECKING:
    from ._domain import Domain


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a text that carries a label.

    `start` and `end` count characters, so that `text[start:end]` is the span's text.
    """

    start: int
    end: int
    label: str
    text: str
    #: The probability that exactly these words form a span of this label, to four decimals.
    probability: float


class Answer:
    """A text and the spans found in it, from left to right.

    >>> import fewtag
    >>> music = fewtag.adapt(["play [nina simone](artist)", "put on some [jazz](genre)"])
    >>> found = music("could you play billie holiday")
    >>> [span.label for span in found]
    ['artist']
    """

    __slots__ = ("_domain", "spans", "text")

    text: str
    spans: tuple[Span, ...]

    def __init__(self, text: str, spans: tuple[Span, ...], domain: Domain | None = None) -> None:
        self.text = text
        self.spans = spans
        self._domain = domain

    def __iter__(self) -> Iterator[Span]:
        return iter(self.spans)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Answer) and (self.text, self.spans) == (other.text, other.spans)

    def __hash__(self) -> int:
        return hash((self.text, self.spans))

    def __reduce__(self) -> tuple[Any, ...]:
        return Answer, (self.text, self.spans)  # Without the domain: an answer is small.

    def __repr__(self) -> str:
        return f"<Answer {self}>"

    def __str__(self) -> str:
        """The text with its spans marked: `play [nina simone](artist 0.93)`."""
        line, done = [], 0
        for span in self.spans:
            line.append(f"{self.text[done:span.start]}[{span.text}]({span.label} {span.probability:.2f})")
            done = span.end
        return "".join(line) + self.text[done:]

    def _repr_html_(self) -> str:
        return _html.answer(self.text, self.spans)

    def to_dict(self) -> dict[str, Any]:
        """The answer as `fewtag tag --format json` prints it."""
        spans = [
            {"start": s.start, "end": s.end, "label": s.label, "text": s.text, "probability": s.probability}
            for s in self.spans
        ]
        return {"text": self.text, "spans": spans}

    def to_json(self) -> str:
        """The line that `fewtag tag --format jsonl` prints."""
        return json.dumps(self.to_dict(), ensure_ascii=False, separators=(",", ":"))

    def entities(self) -> list[dict[str, Any]]:
        """The spans in the shape of a token-classification pipeline of `transformers`."""
        return [
            {"entity_group": s.label, "score": s.probability, "word": s.text, "start": s.start, "end": s.end}
            for s in self.spans
        ]

    def explain(self) -> Explanations:
        """Why each span was tagged: which examples spoke for it, and what came second."""
        if self._domain is None:
            raise FewtagError("this answer came without its domain: ask the domain, `domain.explain(text)`")
        return self._domain.explain(self.text)


@dataclass(frozen=True, slots=True)
class Voice:
    """A word of an example that spoke for a span, or the label's name, then `sentence` and `word` are None."""

    score: float
    text: str | None
    sentence: int | None
    word: int | None
    #: How much of the score went to each word of the span.
    words: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a span was tagged: `score = examples + transitions`, and `examples` is the sum of the voices."""

    span: Span
    score: float
    examples: float
    transitions: float
    voices: tuple[Voice, ...]
    #: What came second, and how much lower its score is; the label None is no label.
    runner_up: tuple[str | None, float] | None


class Explanations(tuple[Explanation, ...]):
    """The explanations of a text, one for each span."""

    text: str
    examples: list[list[str]]

    @classmethod
    def of(cls, found: dict[str, Any], examples: list[list[str]]) -> Explanations:
        """From the JSON object that the command prints."""
        explanations = cls(_explanation(span) for span in found["spans"])
        explanations.text = found["text"]
        explanations.examples = examples
        return explanations

    def __str__(self) -> str:
        lines = []
        for why in self:
            parts = f"score {why.score:.2f} = examples {why.examples:.2f} + transitions {why.transitions:.2f}"
            lines.append(f"{why.span.text} = {why.span.label}   {parts}")
            for voice in why.voices[:3]:
                if voice.sentence is None:
                    said = "the label's name"
                else:
                    said = f'{voice.text} in "{" ".join(self.examples[voice.sentence])}"'
                lines.append(f"{voice.score:10.2f}  {said}")
            if len(why.voices) > 3:
                rest = sum(voice.score for voice in why.voices[3:])
                lines.append(f"{rest:10.2f}  {len(why.voices) - 3} more")
            if why.runner_up:
                lines.append(f"  next best: {why.runner_up[0] or 'no label'}, {why.runner_up[1]:.2f} behind")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return _html.explanations(self, self.examples)


def _explanation(span: dict[str, Any]) -> Explanation:
    why = span["explanation"]
    voices = tuple(
        Voice(one["score"], one.get("text"), one.get("sentence"), one.get("word"), tuple(one["words"]))
        for one in why["voices"]
    )
    second = why["runner_up"]
    runner_up = (second["label"], second["margin"]) if second else None
    plain = Span(span["start"], span["end"], span["label"], span["text"], span["probability"])
    return Explanation(plain, why["score"], why["examples"], why["transitions"], voices, runner_up)
