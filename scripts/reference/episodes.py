"""Episode files in the authors' JSON layout."""

import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Sentence:
    words: list[str]
    tags: list[str]


@dataclass(frozen=True)
class Episode:
    domain: str
    support: list[Sentence]
    queries: list[Sentence]


def read(path: Path) -> list[Episode]:
    """All episodes of a file, in its order."""
    domains = json.loads(Path(path).read_text(encoding="utf-8"))
    return [
        Episode(name, _sentences(episode["support"]), _sentences(episode.get("query") or episode["batch"]))
        for name, episodes in domains.items()
        for episode in episodes
    ]


def _sentences(part: dict) -> list[Sentence]:
    return [Sentence(w, t) for w, t in zip(part["seq_ins"], part["seq_outs"], strict=True)]
