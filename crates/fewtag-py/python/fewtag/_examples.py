"""Examples in whatever form people have them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from ._fewtag import Examples, ExamplesError

_FORMS = (
    "give `play [nina simone](artist)`, a (text, spans) pair, a mapping with `text` and `spans` or with `tokens` and `tags`, "
    "or a spaCy Doc"
)


def gather(examples: Any) -> Examples:
    """A file, a text, an iterable of examples, a data frame or a `datasets.Dataset`."""
    gathered = Examples()
    if examples is None:
        return gathered
    if isinstance(examples, os.PathLike):
        gathered.add_file(examples)
    elif isinstance(examples, str):
        if "\n" in examples or "](" in examples:
            gathered.add_inline(examples)
        else:
            gathered.add_file(examples)
    else:
        names = _tag_names(examples)
        for example in _rows(examples):
            _add(gathered, example, names)
    return gathered


def _rows(examples: Any) -> Iterable[Any]:
    """The rows of a frame as mappings; everything else as it is."""
    if hasattr(examples, "to_pylist"):  # pyarrow
        return list(examples.to_pylist())
    if hasattr(examples, "iter_rows") and hasattr(examples, "columns"):  # polars
        return list(examples.iter_rows(named=True))
    if hasattr(examples, "to_dict") and hasattr(examples, "columns"):  # pandas
        return list(examples.to_dict("records"))
    return list(examples)


def _tag_names(examples: Any) -> list[str] | None:
    """The names of the tags that a `datasets.Dataset` keeps as numbers."""
    features = getattr(examples, "features", None)
    if not isinstance(features, Mapping):
        return None
    for column in ("tags", "ner_tags"):
        names = getattr(getattr(features.get(column), "feature", None), "names", None)
        if names is not None:
            return list(names)
    return None


def _add(gathered: Examples, example: Any, names: list[str] | None) -> None:
    if isinstance(example, str):
        gathered.add_inline(example)
    elif isinstance(example, Mapping):
        _add_mapping(gathered, example, names)
    elif isinstance(example, tuple) and len(example) == 2 and isinstance(example[0], str):
        gathered.add_text(example[0], _spans(example[1]))
    elif hasattr(example, "ents") and hasattr(example, "text"):  # a spaCy Doc
        spans = [(ent.start_char, ent.end_char, ent.label_) for ent in example.ents]
        gathered.add_text(example.text, spans)
    elif hasattr(example, "spans") and hasattr(example, "text"):  # an Answer, perhaps corrected
        gathered.add_text(example.text, _spans(example.spans))
    else:
        raise ExamplesError(f"a {type(example).__name__} is no example: {_FORMS}")


def _add_mapping(gathered: Examples, example: Mapping[str, Any], names: list[str] | None) -> None:
    if "text" in example:
        spans = next((example[key] for key in ("spans", "entities", "label") if key in example), ())
        gathered.add_text(example["text"], _spans(spans))
        return
    words = next((example[key] for key in ("tokens", "words") if key in example), None)
    tags = next((example[key] for key in ("tags", "ner_tags") if key in example), None)
    if words is None or tags is None:
        raise ExamplesError(f"an example with the keys {', '.join(map(str, example))} is not understood: {_FORMS}")
    if names is not None:
        tags = [names[tag] if isinstance(tag, int) else tag for tag in tags]
    gathered.add_words(list(words), [str(tag) for tag in tags])


def _spans(spans: Any) -> list[tuple[int, int, str]]:
    if isinstance(spans, Mapping):  # spaCy's {"entities": […]}
        spans = spans.get("entities", ())
    return [_span(span) for span in (() if spans is None else spans)]


def _span(span: Any) -> tuple[int, int, str]:
    if isinstance(span, Mapping):
        label = span.get("label", span.get("entity_group"))
        return int(span["start"]), int(span["end"]), str(label)
    if hasattr(span, "label"):
        return span.start, span.end, str(span.label)
    start, end, label = span[:3]
    return int(start), int(end), str(label)
