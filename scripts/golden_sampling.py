#!/usr/bin/env python3
"""Writes the golden file of support sizes: Algorithm 1 of the paper, written once more, drawn with Python's generator.

    python3 scripts/golden_sampling.py

A k-shot support set has every BIO tag in k sentences or in all there are; of the sentences that are not needed for that, one in
five is kept. Origin: crates/fewtag/tests/golden/sampling.origin.md.
"""

import datetime
import json
import platform
import random
from collections import Counter
from pathlib import Path
from statistics import fmean

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "crates/fewtag/tests/golden"
CORPORA = ["examples/weather.conll", "testdata/corpora/flights.conll"]
N_DRAWS = 100_000
KEEP = 0.2


def tags_by_sentence(path: Path) -> list[set[str]]:
    sentences = path.read_text(encoding="utf-8").strip().split("\n\n")
    return [{line.split("\t")[1] for line in sentence.split("\n")} for sentence in sentences]


def support_size(sentences: list[set[str]], shots: int, generator: random.Random) -> int:
    available = Counter(tag for tags in sentences for tag in tags)
    needed = {tag: min(shots, n) for tag, n in available.items()}
    support: list[int] = []
    count: Counter[str] = Counter()
    for tag in generator.sample(sorted(available), len(available)):
        while count[tag] < needed[tag]:
            left = [s for s, tags in enumerate(sentences) if tag in tags and s not in support]
            support.append(generator.choice(left))
            count.update(sentences[support[-1]])
    size = 0
    for tags in (sentences[s] for s in support):
        superfluous = all(count[tag] > needed[tag] for tag in tags)
        if superfluous and generator.random() >= KEEP:
            count.subtract(tags)
        else:
            size += 1
    return size


def main() -> None:
    generator = random.Random(0)
    cases = []
    for corpus in CORPORA:
        sentences = tags_by_sentence(ROOT / corpus)
        for shots in (1, 2, 5):
            mean = fmean(support_size(sentences, shots, generator) for _ in range(N_DRAWS))
            cases.append({"corpus": corpus, "shots": shots, "mean_support": mean})
    (GOLDEN / "sampling.json").write_text(json.dumps(cases, indent=1) + "\n", encoding="utf-8")
    (GOLDEN / "sampling.origin.md").write_text(
        f"`sampling.json` is written by `scripts/golden_sampling.py` with Python {platform.python_version()} and nothing else, on "
        f"{datetime.date.today()}: means of {N_DRAWS:,} draws each, generator seeded with 0.\n",
        encoding="utf-8",
    )


main()
