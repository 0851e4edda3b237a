"""What there is to say about examples: a report on them, and which texts to label next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._answer import Answer


@dataclass(frozen=True, slots=True)
class LabelReport:
    """One label. Scores are fractions, None if no span of it could be judged."""

    label: str
    n_sentences: int
    n_spans: int
    n_judged: int
    precision: float | None
    recall: float | None
    f1: float | None


@dataclass(frozen=True, slots=True)
class Finding:
    """Something to look at; sentences are counted from 1."""

    severity: str
    kind: str
    labels: tuple[str, ...]
    sentences: tuple[int, ...]
    message: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Report:
    """What `fewtag support check` says of the examples: each was tagged from all the others."""

    n_sentences: int
    n_judged: int
    labels: tuple[LabelReport, ...]
    findings: tuple[Finding, ...]

    @classmethod
    def of(cls, report: dict[str, Any]) -> Report:
        """From the JSON object that the command prints."""
        labels = tuple(LabelReport(**one) for one in report["labels"])
        findings = tuple(
            Finding(**{**one, "labels": tuple(one["labels"]), "sentences": tuple(one["sentences"])})
            for one in report["findings"]
        )
        return cls(report["n_sentences"], report["n_judged"], labels, findings)

    def __str__(self) -> str:
        lines = [f"{'label':<20} {'spans':>6} {'f1':>6}"]
        for one in self.labels:
            f1 = "" if one.f1 is None else f"{100 * one.f1:.1f}"
            lines.append(f"{one.label:<20} {one.n_spans:>6} {f1:>6}")
        for found in self.findings:
            lines.append(f"{found.severity}: {found.message}\n  {found.remedy}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A text worth labelling, with the labels that it would get now."""

    answer: Answer
    #: Its place in the pool, from 0.
    number: int
    #: For how many unsure words of the pool it stands.
    stands_for: int
    #: The word that the tagger is least sure of, from 0, and the probability of its tag.
    word: int
    probability: float
    #: How far its words are from all examples, from 0 to 1.
    new: float
