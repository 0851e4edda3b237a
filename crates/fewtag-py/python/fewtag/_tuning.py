"""What tuning was worth."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

from . import _fewtag
from ._progress import Progress


@dataclass(frozen=True)
class Tuning:
    """F1 in per cent on examples that were left out in turn, before and after tuning.

    `verdict` is `tuned` or, where the model stayed as it was, `not_worth_it`; `tuned` is then the best that was tried. If `minutes` were
    over first it may be `tuned_less` (with fewer updates than gained most), `stopped` (it would have been worth it) or `unknown` (nothing
    was judged). `gain` has the standard error `spread`; `labels` has (label, spans, untuned, tuned) rows. Of a domain that was opened
    from a file, gain's error and rows are not known.
    """

    verdict: str
    untuned: float
    tuned: float | None
    judged: int
    spread: float | None = None
    labels: tuple[tuple[str, int, float, float | None], ...] = ()

    @property
    def gain(self) -> float | None:
        """What tuning adds."""
        return None if self.tuned is None else self.tuned - self.untuned

    @classmethod
    def of_report(cls, report: dict[str, Any]) -> Tuning:
        """What a finished tuning says."""
        best = None if report["best"] is None else report["candidates"][report["best"]]
        rows = ((row["label"], row["n_spans"], row["untuned"], row["tuned"]) for row in report["labels"])
        return cls(
            report["verdict"],
            report["untuned"]["f1"],
            None if best is None else best["score"]["f1"],
            report["judged"],
            None if best is None else best["gain"]["spread"],
            tuple(rows),
        )

    @classmethod
    def of_figures(cls, figures: str | None) -> Tuning | None:
        """What a saved domain says."""
        if figures is None:
            return None
        known = json.loads(figures)
        return cls("tuned", known["untuned"]["f1"], known["tuned"]["f1"], known["judged"])


def tune(
    core: _fewtag.Core, minutes: float | None, full: bool, seed: int, progress: bool | None
) -> tuple[_fewtag.Core, Tuning]:
    """Runs a tuning to its end, or until its time is over."""
    tuning = _fewtag.Tuning(core, minutes=minutes, full=full, seed=seed)
    start, decided, shown = time.monotonic(), False, 0
    bar = Progress(progress, 100, "per cent")
    while (done := tuning.advance()) is not None:
        bar.add(int(100 * done) - shown)
        shown = int(100 * done)
        gone = 0.0 if minutes is None else (time.monotonic() - start) / (60 * minutes)
        if gone > 1.0:
            break
        if gone > tuning.trial_share and not decided:
            decided = True
            tuning.decide()
    bar.close()
    tuned, report = tuning.finish(core)
    return tuned, Tuning.of_report(json.loads(report))
