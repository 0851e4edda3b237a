#!/usr/bin/env python3
"""Writes the golden file of the scores: random tag files, illegal sequences included, judged by two others.

    python scripts/golden_scores.py

`seqeval` in its default mode gives precision, recall and F1. The counts per slot come from the counting loop of the
official `conlleval.pl`, rewritten here; both must agree on every file or nothing is written.
Origin: crates/fewtag/tests/golden/scores.origin.md.
"""

import datetime
import json
import platform
import random
import warnings
from collections import defaultdict
from importlib.metadata import version
from pathlib import Path
from statistics import fmean

from seqeval.metrics.sequence_labeling import precision_recall_fscore_support

GOLDEN = Path(__file__).resolve().parent.parent / "crates/fewtag/tests/golden"
N_FILES = 2400
SLOTS = ["a", "b", "object-part.of/whole", "a-b"]

Sentence = list[str]


def split(tag: str) -> tuple[str, str]:
    kind, _, slot = tag.partition("-")
    return kind, slot


def ends(previous: tuple[str, str], tag: tuple[str, str]) -> bool:
    """`endOfChunk` of conlleval.pl, without the bracket and E/S tags."""
    if previous[0] in "BI" and tag[0] in "BO":
        return True
    return previous[0] != "O" and previous[1] != tag[1]


def starts(previous: tuple[str, str], tag: tuple[str, str]) -> bool:
    """`startOfChunk` of conlleval.pl, without the bracket and E/S tags."""
    if tag[0] == "B" or (previous[0] == "O" and tag[0] == "I"):
        return True
    return tag[0] != "O" and previous[1] != tag[1]


def conlleval(gold: list[Sentence], predicted: list[Sentence]) -> dict[str, list[int]]:
    """[correct, predicted, gold] by slot: the main loop of conlleval.pl, a sentence boundary being an `O`."""
    counts = defaultdict(lambda: [0, 0, 0])
    last_gold = last_predicted = ("O", "")
    in_correct = False
    for gold_sentence, predicted_sentence in zip(gold, predicted, strict=True):
        for g, p in zip([*gold_sentence, "O"], [*predicted_sentence, "O"], strict=True):
            g, p = split(g), split(p)
            gold_ends, predicted_ends = ends(last_gold, g), ends(last_predicted, p)
            if in_correct:
                if gold_ends and predicted_ends and last_gold[1] == last_predicted[1]:
                    in_correct = False
                    counts[last_gold[1]][0] += 1
                elif gold_ends != predicted_ends or g[1] != p[1]:
                    in_correct = False
            gold_starts, predicted_starts = starts(last_gold, g), starts(last_predicted, p)
            if gold_starts and predicted_starts and g[1] == p[1]:
                in_correct = True
            if gold_starts:
                counts[g[1]][2] += 1
            if predicted_starts:
                counts[p[1]][1] += 1
            last_gold, last_predicted = g, p
    return dict(sorted(counts.items()))


def seqeval(gold: list[Sentence], predicted: list[Sentence], average: str | None):
    return precision_recall_fscore_support(gold, predicted, average=average, zero_division=0)


def f1(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def sentence_macro(gold: list[Sentence], predicted: list[Sentence]) -> list[float]:
    """The paper's formula on seqeval's numbers of each sentence alone."""
    scores = [seqeval([g], [p], "micro")[:2] for g, p in zip(gold, predicted, strict=True)]
    precision, recall = (fmean(float(x) for x in column) for column in zip(*scores))
    return [precision, recall, f1(precision, recall)]


def bigrams(gold: list[Sentence], predicted: list[Sentence]) -> dict[str, list[int]]:
    """[correct, words] by the paper's rows; `inner` marks the two that lie within one span."""
    counts = defaultdict(lambda: [0, 0])
    for gold_sentence, predicted_sentence in zip(gold, predicted, strict=True):
        previous = "S"
        for g, p in zip(gold_sentence, predicted_sentence, strict=True):
            name = f"{previous[0]}-{g[0]}"
            if previous[0] in "BI" and g[0] in "BI":
                inner = g[0] == "I" and previous[2:] == g[2:]
                name = f"inner {name}" if inner else "B-I/I-B"
            counts[name][0] += g == p
            counts[name][1] += 1
            previous = g
    return dict(sorted(counts.items()))


def any_tags(rng: random.Random, n_words: int, slots: list[str]) -> Sentence:
    """Tags without any order: most such sentences are illegal."""
    return ["O" if rng.random() < 0.3 else f"{rng.choice('BI')}-{rng.choice(slots)}" for _ in range(n_words)]


def legal_tags(rng: random.Random, n_words: int, slots: list[str]) -> Sentence:
    tags = []
    while len(tags) < n_words:
        slot = rng.choice(slots)
        tags += ["O"] if rng.random() < 0.4 else [f"B-{slot}"] + [f"I-{slot}"] * rng.choice([0, 0, 1, 2])
    return tags[:n_words]


def noisy(rng: random.Random, tags: Sentence, slots: list[str], rate: float) -> Sentence:
    return [any_tags(rng, 1, slots)[0] if rng.random() < rate else tag for tag in tags]


def tag_file(rng: random.Random) -> tuple[list[Sentence], list[Sentence]]:
    slots = rng.sample(SLOTS, rng.randint(1, len(SLOTS)))
    make = rng.choice([any_tags, legal_tags])
    gold = [make(rng, rng.randint(1, 7), slots) for _ in range(rng.randint(1, 4))]
    rate = rng.choice([0.1, 0.3, 1.0])
    return gold, [noisy(rng, tags, slots, rate) for tags in gold]


def judged(gold: list[Sentence], predicted: list[Sentence]) -> dict:
    counts = conlleval(gold, predicted)
    precision, recall, _, support = seqeval(gold, predicted, None)
    for (slot, (correct, found, real)), p, r, n in zip(counts.items(), precision, recall, support, strict=True):
        assert n == real and p == (correct / found if found else 0) and r == (correct / real if real else 0), slot
    return {
        "gold": [" ".join(tags) for tags in gold],
        "predicted": [" ".join(tags) for tags in predicted],
        "slots": counts,
        "episode": [float(x) for x in seqeval(gold, predicted, "micro")[:3]],
        "sentence_macro": sentence_macro(gold, predicted),
        "bigrams": bigrams(gold, predicted),
    }


def main() -> None:
    warnings.simplefilter("ignore")
    rng = random.Random(2020)
    cases = [judged(*tag_file(rng)) for _ in range(N_FILES)]
    lines = [json.dumps(case, separators=(",", ":")) + "\n" for case in cases]
    (GOLDEN / "scores.jsonl").write_text("".join(lines))
    (GOLDEN / "scores.origin.md").write_text(
        f"""`scores.jsonl` is written by `scripts/golden_scores.py`, never by this crate: {N_FILES} random tag files, a line each.

- `episode`, `sentence_macro`: precision, recall and F1 by seqeval {version("seqeval")} (numpy {version("numpy")}), default mode
- `slots`: correct, predicted and gold spans by the loop of `conlleval.pl`, rewritten in Python; seqeval agrees on every file
- `bigrams`: correct and all words by the rows of the paper's table
- Python {platform.python_version()}, written on {datetime.date.today()}
"""
    )


if __name__ == "__main__":
    main()
