#!/usr/bin/env python3
"""F1 against the number of labelled sentences: fewtag as it is and tuned, a fine-tuned token classifier, spaCy.

    python3 benchmarks/tune/run.py --fewtag target/release/fewtag --corpora reported more --sizes 5 20 100 --seeds 1
    python3 benchmarks/tune/run.py --page            # nothing is run: the page and the picture from the cells that are kept

A cell is one corpus, number of sentences per label, seed and system. All systems get the same sentences and are judged on the
same 300 others, by `fewtag score`. What was run is kept in results/cells.json and not run again. The corpora are laid out by
scripts/fetch_data.py; the classifier and spaCy run in an environment that is made once (`torch`, `transformers`, `spacy`).
"""

import argparse
import json
import pathlib
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE.parent), str(HERE)]
from common import ROOT, commit, environment, processor  # noqa: E402
from conll import read, write  # noqa: E402

CELLS = HERE / "results" / "cells.json"
SYSTEMS = ["untuned", "tuned", "classifier", "spacy"]
PACKAGES = ["torch", "transformers", "tokenizers", "safetensors", "spacy"]
# No sentence of theirs, nor of a corpus like them, was trained on (configs/built-in.toml).
CORPORA = {
    "reported": [
        *["snips/weather", "snips/searchscreen", "slots/restaurant8k", "sgd/banks_1", "sgd/media_1", "sgd/homes_1", "more/nlupp/hotels"],
        *["more/web/grobid_ner", "more/multiconer/multiconer2_en", "more/legal/indian_judgments", "more/business/products"],
        *["ner/wnut17", "more/tweets/tweebank_ner", "more/reddit/drugs", "more/reddit/cooking_ingredients"],
        *["more/bio/infectious_diseases", "more/space/mars_targets", "more/maintenance/maintie_coarse", "more/scholarly/funding"],
    ],
    "more": [
        *["snips/book", "slots/hwu_recommendation", "slots/hwu_transport", "sgd/travel_1"],
        *["more/multiconer/multiconer1_en", "more/maintenance/maintie_fine"],
    ],
}
TEST, LONGEST = 300, 100


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fewtag", default="fewtag", help="the command")
    parser.add_argument("--data", type=pathlib.Path, default=ROOT / "data")
    parser.add_argument("--encoder", type=pathlib.Path, default=ROOT / "encoders" / "minilm-l6", help="what the classifier starts from")
    parser.add_argument("--corpora", nargs="+", default=["reported", "more"], help="groups, or names such as snips/weather")
    parser.add_argument("--sizes", nargs="+", type=int, default=[5, 10, 20, 50, 100, 500], help="sentences per label")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=SYSTEMS)
    parser.add_argument("--page", action="store_true", help="run nothing")
    arguments = parser.parse_args()
    CELLS.parent.mkdir(exist_ok=True)
    cells = json.loads(CELLS.read_text()) if CELLS.exists() else {}
    if not arguments.page:
        run(arguments, cells)
    (HERE / "results" / "README.md").write_text("\n".join(page(cells)) + "\n")
    if len({size for _, size in averages(cells)}) > 1:
        (HERE / "results" / "curves.svg").write_text(curves(averages(cells)))


def run(arguments, cells):
    """Every cell that is missing, small ones first, so that an interrupted run has something of every corpus."""
    names = [name for group in arguments.corpora for name in CORPORA.get(group, [group])]
    for size in arguments.sizes:
        for seed in range(arguments.seeds):
            for name in names:
                drawn = split(read(arguments.data / f"{name}.conll"), size, seed)
                if drawn is None:
                    continue  # No label has so many sentences: a smaller size says the same.
                for system in arguments.systems:
                    key = f"{name} {size} {seed} {system}"
                    if key not in cells:
                        cells[key] = cell(arguments, system, seed, *drawn)
                        print(key, cells[key], flush=True)
                        keep(cells)


def keep(cells):
    written = CELLS.with_suffix(".new")
    written.write_text("{\n" + ",\n".join(f"{json.dumps(key)}: {json.dumps(cells[key])}" for key in sorted(cells)) + "\n}\n")
    written.replace(CELLS)


def labels(sentence):
    return {tag[2:] for _, tag in sentence if tag != "O"}


def split(corpus, size, seed):
    """Sentences to learn from, at least `size` for each label or all that there are, and others to be judged on."""
    draw = random.Random(f"{seed}")
    distinct = list({tuple(word for word, _ in sentence): sentence for sentence in corpus if len(sentence) <= LONGEST}.values())
    draw.shuffle(distinct)
    n_test = min(TEST, len(distinct) // 3)
    test, pool = distinct[:n_test], distinct[n_test:]
    counts, support = {}, []
    for sentence in pool:
        if any(counts.get(label, 0) < size for label in labels(sentence)):
            support.append(sentence)
            for label in labels(sentence):
                counts[label] = counts.get(label, 0) + 1
    if not counts or max(counts.values()) < size:
        return None
    # A label that was never shown cannot be found: it is no label, as in life.
    test = [[(word, tag if tag == "O" or tag[2:] in counts else "O") for word, tag in sentence] for sentence in test]
    return support, test


def cell(arguments, system, seed, support, test):
    """F1, the seconds that learning took, those of the processor for learning and the answers, and the number of sentences."""
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        learn, gold, found = scratch / "learn.conll", scratch / "gold.conll", scratch / "found.conll"
        write(learn, support)
        write(gold, test)
        start, used = time.monotonic(), processor_seconds()
        if system in ("untuned", "tuned"):
            domain = scratch / "domain.fewtag"
            save = ["domain", "save", "--support", learn, domain]
            tune = ["tune", "--support", learn, "--out", domain, "--seed", seed]
            if system == "untuned" or not fewtag(arguments, *tune, may_refuse=True):
                fewtag(arguments, *save)  # Also where there are too few sentences to tune to.
            seconds = time.monotonic() - start
            fewtag(arguments, "evaluate", "--domain", domain, gold, "--predictions", found)
        else:
            python = environment("venv-tune", PACKAGES)
            command = [python, HERE / f"{system}_worker.py", learn, gold, found, str(seed)]
            command += [arguments.encoder] if system == "classifier" else []
            seconds = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])
        used = processor_seconds() - used
        answer = fewtag(arguments, "score", gold, found, "--table", "scores", "--format", "json")
        (scores,) = json.loads(answer)["scores"]
        return {"f1": round(scores["f1"], 2), "seconds": round(seconds, 1), "processor": round(used, 1), "sentences": len(support)}


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def fewtag(arguments, *command, may_refuse=False):
    """What the command prints; None if it says that there are too few sentences, where that may be."""
    answer = subprocess.run([arguments.fewtag, *map(str, command)], capture_output=True, text=True)
    if answer.returncode and may_refuse and "sentences" in answer.stderr:
        return None
    if answer.returncode:
        raise SystemExit(f"fewtag {' '.join(map(str, command))}\n{answer.stderr}")
    return answer.stdout


def averages(cells):
    """(system, size) -> mean over corpora of the mean over seeds, for corpora that every system has at that size."""
    by = {}
    for key, value in cells.items():
        name, size, _, system = key.split(" ")
        by.setdefault((int(size), name), {}).setdefault(system, []).append(value)
    means = {}
    for (size, _), of in by.items():
        if set(SYSTEMS) <= set(of):
            for system, values in of.items():
                means.setdefault((system, size), []).append(values)
    return means


def page(cells):
    means = averages(cells)
    sizes = sorted({size for _, size in means})
    yield "# F1 against the number of labelled sentences\n"
    yield f"Written by `python3 benchmarks/tune/run.py --page` from [cells.json](cells.json), commit {commit()}, {processor()}. Mean over corpora that all systems have at a size; ± is the"
    yield "standard deviation over seeds of that mean, where there are several. Seconds: of the processor, for learning and the answers, median over cells. Where there are"
    yield "fewer than ten sentences, `tuned` is `untuned`: `fewtag tune` takes ten.\n"
    if len(sizes) > 1:
        yield "![F1 of four systems against sentences per label](curves.svg)\n"
    yield "| sentences per label | corpora | " + " | ".join(SYSTEMS) + " | tuned − untuned | seconds, tuned | classifier | spaCy |"
    yield "|---:|---:|" + "---:|" * (len(SYSTEMS) + 4)
    for size in sizes:
        f1 = {system: mean_and_spread(means[system, size]) for system in SYSTEMS}
        gain = statistics.mean(statistics.mean(v["f1"] for v in values) for values in means["tuned", size]) - statistics.mean(
            statistics.mean(v["f1"] for v in values) for values in means["untuned", size])
        seconds = [f"{statistics.median(v['processor'] for values in means[system, size] for v in values):.0f}" for system in SYSTEMS[1:]]
        yield f"| {size} | {len(means['tuned', size])} | " + " | ".join(f1[system] for system in SYSTEMS) + f" | {gain:+.1f} | " + " | ".join(seconds) + " |"
    yield "\n## Per corpus\n"
    yield "| corpus | per label | sentences | " + " | ".join(SYSTEMS) + " |"
    yield "|---|---:|---:|" + "---:|" * len(SYSTEMS)
    rows = sorted({(key.split(" ")[0], int(key.split(" ")[1])) for key in cells})
    for name, size in rows:
        of = {system: [v for key, v in cells.items() if key.split(" ")[0] == name and key.split(" ")[1] == str(size) and key.endswith(f" {system}")] for system in SYSTEMS}
        n = next(values[0]["sentences"] for values in of.values() if values)
        yield f"| {name} | {size} | {n} | " + " | ".join(mean_and_spread([values]) if values else "–" for values in of.values()) + " |"


def mean_and_spread(of_corpora):
    """The mean over corpora; ± the deviation over seeds of that mean if all have as many seeds."""
    n_seeds = min(len(values) for values in of_corpora)
    of_seeds = [statistics.mean(values[seed]["f1"] for values in of_corpora) for seed in range(n_seeds)]
    return f"{statistics.mean(of_seeds):.1f}" + (f" ± {statistics.stdev(of_seeds):.1f}" if n_seeds > 1 else "")


COLOURS = {"untuned": "#1f77b4", "tuned": "#d62728", "classifier": "#2ca02c", "spacy": "#9467bd"}


def curves(means):
    """The table as a picture."""
    import math

    width, height, left, top, right, bottom = 560, 300, 48, 16, 110, 44
    sizes = sorted({size for _, size in means})
    first, last = math.log(sizes[0]), math.log(sizes[-1])
    across = lambda size: left + (math.log(size) - first) / (last - first) * (width - left - right)
    up = lambda f1: height - bottom - f1 / 100 * (height - top - bottom)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
             f'<rect width="{width}" height="{height}" fill="white"/>']
    for y in range(0, 101, 20):
        parts.append(f'<path d="M{left} {up(y):.1f}H{width - right}" stroke="#ddd"/><text x="{left - 6}" y="{up(y) + 4:.1f}" text-anchor="end">{y}</text>')
    for size in sizes:
        parts.append(f'<text x="{across(size):.1f}" y="{height - bottom + 18}" text-anchor="middle">{size}</text>')
    ends = []
    for system in SYSTEMS:
        points = [(across(size), up(statistics.mean(statistics.mean(v["f1"] for v in values) for values in means[system, size]))) for size in sizes]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{COLOURS[system]}" stroke-width="2"/>')
        ends.append((points[-1][1], system))
    below = -math.inf
    for y, system in sorted(ends):
        below = max(y, below + 14)
        parts.append(f'<text x="{width - right + 8}" y="{below + 4:.1f}" fill="{COLOURS[system]}">{system}</text>')
    parts.append(f'<text x="{(width - right + left) / 2}" y="{height - 8}" text-anchor="middle">labelled sentences per label</text>')
    parts.append(f'<text transform="translate(14 {height / 2}) rotate(-90)" text-anchor="middle">F1</text>')
    return "\n".join(parts) + "\n</svg>\n"


if __name__ == "__main__":
    main()
