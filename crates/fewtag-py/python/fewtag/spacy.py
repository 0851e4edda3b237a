"""A component for spaCy: `nlp.add_pipe("fewtag", config={"examples": ["play [nina simone](artist)"]})`.

It sets `doc.ents`, or `doc.spans[key]` with `config={"key": …}`. Where one of its spans overlaps an entity that is there already, the
entity stays, unless `overwrite` says otherwise. Spans that cut a token of spaCy's grow to whole tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import filter_spans

from ._domain import Domain, _restore, adapt, open


@Language.factory(
    "fewtag",
    assigns=["doc.ents", "doc.spans"],
    default_config={
        "examples": None,
        "labels": [],
        "domain": None,
        "threshold": 0.0,
        "key": None,
        "overwrite": False,
    },
)
def make(
    nlp: Language,
    name: str,
    examples: list[str] | str | None,
    labels: list[str],
    domain: str | None,
    threshold: float,
    key: str | None,
    overwrite: bool,
) -> Tagger:
    """The component: from examples, a file of them, labels alone, or a saved domain."""
    if domain is not None:
        learned: Domain | None = open(domain)
    elif examples or labels:
        learned = adapt(examples, labels=labels)
    else:
        learned = None  # It comes from disk or bytes when the whole pipeline is loaded.
    return Tagger(learned, threshold, key, overwrite)


class Tagger:
    """Tags the texts of Docs."""

    def __init__(self, domain: Domain | None, threshold: float, key: str | None, overwrite: bool) -> None:
        self.domain, self.threshold, self.key, self.overwrite = domain, threshold, key, overwrite

    def __call__(self, doc: Doc) -> Doc:
        return next(self.pipe([doc]))

    def pipe(self, docs: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Tags many Docs, a batch at a time."""
        if self.domain is None:
            raise ValueError("fewtag has nothing to learn from: give `examples`, `labels` or `domain` in its config")
        stream = iter(docs)
        while batch := list(islice(stream, batch_size)):
            texts = [doc.text for doc in batch]
            for doc, found in zip(batch, self.domain.tag(texts, threshold=self.threshold), strict=True):
                self._set(doc, () if found is None else found.spans)
                yield doc

    def _set(self, doc: Doc, found: Iterable[Any]) -> None:
        spans = []
        for one in found:
            span = doc.char_span(one.start, one.end, label=one.label, alignment_mode="expand")
            if span is not None:
                spans.append(span)
        if self.key is not None:
            doc.spans[self.key] = filter_spans(spans)
        elif self.overwrite:
            doc.ents = filter_spans(spans)
        else:
            taken = {token for ent in doc.ents for token in range(ent.start, ent.end)}
            free = [span for span in spans if not taken.intersection(range(span.start, span.end))]
            doc.ents = filter_spans([*doc.ents, *free])

    def to_bytes(self, **_options: Any) -> bytes:
        """The saved domain."""
        return b"" if self.domain is None else self.domain.to_bytes()

    def from_bytes(self, data: bytes, **_options: Any) -> Tagger:
        """Opens a saved domain."""
        self.domain = _restore(data) if data else None
        return self

    def to_disk(self, path: Any, **_options: Any) -> None:
        """Writes the saved domain."""
        Path(path).write_bytes(self.to_bytes())

    def from_disk(self, path: Any, **_options: Any) -> Tagger:
        """Opens the saved domain."""
        return self.from_bytes(Path(path).read_bytes())
