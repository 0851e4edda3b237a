"""A learned domain: what people hold, call and save."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from . import _fewtag
from ._answer import Answer, Explanations, Span
from ._examples import gather
from ._progress import Progress
from ._report import Report, Suggestion
from ._tuning import Tuning, tune

#: One least probability for all labels, or one for each (others have 0).
Threshold = float | Mapping[str, float]
Path = str | os.PathLike[str]

#: At most how many texts are read ahead.
_BATCH = 256


def adapt(
    examples: Any = None,
    *,
    labels: Iterable[str] = (),
    meanings: Mapping[str, str | None] | None = None,
    threshold: Threshold = 0.0,
    context: str | None = None,
    model: Path | None = None,
    precision: str | None = None,
) -> Domain:
    """Learns a domain from a few labelled sentences, without training.

    `examples` may be a list of sentences with marked spans, (text, spans) pairs, mappings with `text` and `spans` or with `tokens`
    and `tags`, spaCy Docs, a data frame or `datasets.Dataset` with such columns, or the path of a file in any format that fewtag
    reads. `labels` are looked for by their names alone; `meanings` says what a label means where its name does not.
    The encoder computes in `precision`: "int8" unless told otherwise, or "f32", which takes several times as long.

    >>> import fewtag
    >>> music = fewtag.adapt([("play nina simone", [(5, 16, "artist")])], labels=["genre"])
    >>> music.labels
    ['artist', 'genre']
    """
    options: _fewtag._Options = {
        "labels": list(labels),
        "meanings": dict(meanings or {}),
        "thresholds": _thresholds(threshold),
        "context": context,
        "model": None if model is None else os.fspath(model),
        "precision": precision,
    }
    return Domain(_fewtag.Core(gather(examples), options))


def open(path: Path, *, model: Path | None = None, precision: str | None = None) -> Domain:
    """Opens a domain that was saved here, by `fewtag domain save` or by the server's export; `model` and `precision` as in `adapt`."""
    return Domain(_fewtag.Core.read(path, None if model is None else os.fspath(model), precision))


def _thresholds(threshold: Threshold) -> tuple[float, dict[str, float]]:
    if isinstance(threshold, Mapping):
        return 0.0, {str(label): float(least) for label, least in threshold.items()}
    return float(threshold), {}


#: A domain as it travels: its saved file, where its model lies unless it is the built-in one, and its precision.
State = tuple[bytes, str | None, str | None]


def _restore(data: bytes, model: str | None = None, precision: str | None = None) -> Domain:
    return Domain(_fewtag.Core.open(data, "pickle", model, precision))


def _checked(text: Any) -> str:
    """A text that UTF-8 can hold, and no subclass of `str` with other ideas."""
    if not isinstance(text, str):
        raise TypeError(f"a text is a str, not a {type(text).__name__}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        message = f"character {error.start} of the text is a lone surrogate: it is no Unicode text"
        raise _fewtag.TextError(message) from None
    return text


class Domain:
    """What was learned from examples: call it with a text, or let it tag many.

    >>> import fewtag
    >>> music = fewtag.adapt(["play [nina simone](artist)", "put on some [jazz](genre)"])
    >>> print(music("put on some techno").spans[0].label)
    genre
    >>> for found in music.tag(["play miles davis", "play some blues"]):
    ...     print([span.text for span in found])
    ['miles davis']
    ['blues']

    It is pickled as its saved file: kilobytes, not the model.
    """

    __slots__ = ("__weakref__", "_core", "_tuning")

    def __init__(self, core: _fewtag.Core, tuning: Tuning | None = None) -> None:
        self._core, self._tuning = core, tuning

    def __reduce__(self) -> tuple[Any, State]:
        return _restore, self._state()

    def _state(self) -> State:
        model = self._core.model
        return self.to_bytes(), None if model is None else os.fspath(model), self._core.precision

    def __repr__(self) -> str:
        return f"<Domain of {len(self._core.words)} examples: {', '.join(self.labels)}>"

    @property
    def labels(self) -> list[str]:
        """The labels, sorted."""
        return self._core.labels

    @property
    def examples(self) -> list[tuple[str, list[tuple[int, int, str]]]]:
        """The examples as (text, spans) pairs, which `fewtag.adapt` takes."""
        return self._core.examples

    @property
    def context(self) -> str:
        """`separate`, or `paired`: how a text and the examples are read."""
        return self._core.context

    @property
    def precision(self) -> str:
        """`int8` or `f32`: in which numbers the encoder computes."""
        return self._core.precision

    @property
    def model(self) -> str | None:
        """The checksum of the model."""
        return self._core.checksum

    def save(self, path: Path) -> None:
        """Saves the domain in one small file, which the command, the server and `fewtag.open` read."""
        self._core.save(path)

    def to_bytes(self) -> bytes:
        """What `save` writes."""
        return self._core.to_bytes()

    def tune(
        self, *, minutes: float | None = None, full: bool = False, seed: int = 0, progress: bool | None = None
    ) -> Domain:
        """The domain with a model that its own examples have moved a little, if that is worth it; see `tuning`.

        It takes ten examples or more, and by default a minute for 50 and at most 15. Every way of tuning is judged on examples
        that are left out, beside the model as it is. `full` moves all layers, for thousands of examples. The same seed gives the same
        domain, unless `minutes` were over before all was tried.
        """
        return Domain(*tune(self._core, minutes, full, seed, progress))

    @property
    def tuning(self) -> Tuning | None:
        """What tuning was worth; None for a domain that was never tuned."""
        return self._tuning or Tuning.of_figures(self._core.figures)

    def __call__(self, text: str, *, threshold: Threshold | None = None) -> Answer:
        """Tags one text."""
        found = self._tag([_checked(text)], threshold)[0]
        if not isinstance(found, Answer):
            raise _fewtag.TextError(found)
        return found

    def tag(
        self,
        texts: Iterable[str | None],
        *,
        threshold: Threshold | None = None,
        on_error: str = "raise",
        progress: bool | None = None,
    ) -> Iterator[Answer | None]:
        """Tags texts as they are asked for, on all cores, without the GIL; at most 256 are read ahead.

        None stays None. A text that cannot be tagged raises `TextError`, or with `on_error="none"` becomes None.
        """
        if isinstance(texts, str):
            raise TypeError("texts is one text: give a list of texts, or call the domain")
        if on_error not in ("raise", "none"):
            raise ValueError('on_error is "raise" or "none"')
        return self._answers(iter(texts), threshold, on_error, Progress(progress, _length(texts)))

    def _answers(
        self, texts: Iterator[str | None], threshold: Threshold | None, on_error: str, progress: Progress
    ) -> Iterator[Answer | None]:
        size = 1  # The first answer does not wait for many texts.
        done = 0
        while batch := list(islice(texts, size)):
            for at, found in enumerate(self._tag(batch, threshold)):
                if isinstance(found, str):
                    if on_error == "raise":
                        raise _fewtag.TextError(f"text {done + at}: {found}")
                    found = None
                yield found
            done += len(batch)
            progress.add(len(batch))
            size = min(2 * size, _BATCH)
        progress.close()

    def _tag(self, texts: list[Any], threshold: Threshold | None) -> list[Any]:
        """An answer, None, or the reason why there is none for each text."""
        results: list[Any] = [None] * len(texts)
        good = []
        for at, text in enumerate(texts):
            if text is None:
                continue
            try:
                good.append((at, _checked(text)))
            except _fewtag.TextError as error:
                results[at] = str(error)
        thresholds = None if threshold is None else _thresholds(threshold)
        for (at, text), found in zip(good, self._core.tag([text for _, text in good], thresholds), strict=True):
            if isinstance(found, str):
                results[at] = found
            else:
                results[at] = Answer(text, tuple(Span(*span) for span in found), self)
        return results

    async def atag(
        self,
        texts: Iterable[str | None] | AsyncIterable[str | None],
        *,
        threshold: Threshold | None = None,
        on_error: str = "raise",
    ) -> list[Answer | None]:
        """As `tag` beside an event loop, which goes on meanwhile; it can be cancelled."""
        import asyncio

        if isinstance(texts, AsyncIterable):
            texts = [text async for text in texts]
        answers = self.tag(texts, threshold=threshold, on_error=on_error, progress=False)
        all: list[Answer | None] = []
        while part := await asyncio.to_thread(lambda: list(islice(answers, _BATCH))):
            all += part
        return all

    def tag_arrow(
        self, data: Any, column: str | None = None, *, threshold: Threshold | None = None
    ) -> _fewtag.Tagged:
        """Tags a column of texts of pandas, polars, pyarrow or DuckDB, or the `column` of a table, without copying it.

        What comes back is a table for any of them (`pyarrow.table(…)`, `polars.DataFrame(…)`): `spans`, a list of structs, and
        `error`. A null stays null; a text that cannot be tagged is a null with its reason in `error`.
        """
        return self._core.tag_arrow(data, column, None if threshold is None else _thresholds(threshold))

    def tag_column(self, texts: Iterable[str | None], *, threshold: Threshold | None = None) -> list[Any]:
        """A column in, a column out, as lists of plain objects: for `datasets.Dataset.map` and `add_column`."""
        answers = self.tag(texts, threshold=threshold)
        return [None if found is None else found.to_dict()["spans"] for found in answers]

    def pipeline(self, texts: str | Iterable[str], **_options: Any) -> Any:
        """Answers as a token-classification pipeline of `transformers` does: `entity_group, score, word, start, end`."""
        if isinstance(texts, str):
            return self(texts).entities()
        return [[] if found is None else found.entities() for found in self.tag(texts)]

    def explain(self, text: str, *, threshold: Threshold | None = None) -> Explanations:
        """Why each span of a text is tagged: which examples speak for it, and what comes second."""
        thresholds = None if threshold is None else _thresholds(threshold)
        return Explanations.of(json.loads(self._core.explain(_checked(text), thresholds)), self._core.words)

    def check(self) -> Report:
        """What is wrong or weak in the examples: each is tagged from all the others."""
        return Report.of(json.loads(self._core.check()))

    def suggest(self, pool: Iterable[str], n: int = 10) -> list[Suggestion]:
        """The texts of a pool that would teach most if they were labelled next, best first."""
        texts = [_checked(text) for text in pool if text is not None]
        suggestions = []
        for one in json.loads(self._core.suggest(texts, n)):
            spans = tuple(Span(s["start"], s["end"], s["label"], s["text"], s["probability"]) for s in one["spans"])
            reason = one["reason"]
            answer = Answer(one["text"], spans, self)
            suggestions.append(
                Suggestion(
                    answer, one["number"], reason["stands_for"], reason["word"], reason["probability"], reason["new"]
                )
            )
        return suggestions


def _length(texts: Any) -> int | None:
    try:
        return len(texts)
    except TypeError:
        return None
