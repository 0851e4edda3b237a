#!/usr/bin/env python3
"""Is it worth labelling what `fewtag support suggest` suggests? F1 after adding suggested or random sentences.

    cargo build --release
    python3 benchmarks/suggest/run.py CORPUS.conll [...] [--seeds 12] [--shots 1] [--add 10] [--pool 400] [--queries 80]

For each seed: draw a support set and queries (`fewtag sample`), and a pool of other sentences; add to the support, with their
true tags, the suggested sentences or as many random ones, three times; judge all on the same queries (`fewtag evaluate`). Prints the
mean F1 over seeds, and the mean paired difference with its standard error over seeds; in the last row over all corpora and seeds.
"""

import argparse
import json
import math
import random
import subprocess
import tempfile
from pathlib import Path
from statistics import mean, stdev

ROOT = Path(__file__).resolve().parents[2]
FIRST_SEED = 100
DRAWS = 3


def sentences(path: Path) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    blocks = path.read_text(encoding="utf-8").strip().split("\n\n")
    pairs = [[line.split("\t") for line in block.splitlines()] for block in blocks]
    return [(tuple(word for word, _ in pair), tuple(tag for _, tag in pair)) for pair in pairs]


def part(chosen) -> dict:
    return {"seq_ins": [words for words, _ in chosen], "seq_outs": [tags for _, tags in chosen]}


def chosen_of(part: dict) -> list:
    return [(tuple(words), tuple(tags)) for words, tags in zip(part["seq_ins"], part["seq_outs"])]


def suggested(args, support, pool, directory: Path) -> list:
    lines = ("\n".join(f"{word}\t{tag}" for word, tag in zip(*sentence)) for sentence in support)
    (directory / "support.conll").write_text("\n\n".join(lines) + "\n", encoding="utf-8")
    tokens = "".join(json.dumps({"tokens": words}) + "\n" for words, _ in pool)
    (directory / "pool.jsonl").write_text(tokens, encoding="utf-8")
    command = [args.fewtag, "support", "suggest", directory / "support.conll", "--pool", directory / "pool.jsonl", "--jsonl"]
    output = subprocess.run([*command, "-n", str(args.add), "--format", "jsonl"], check=True, capture_output=True, text=True)
    return [pool[json.loads(line)["number"] - 1] for line in output.stdout.splitlines()]


def episodes(args, corpus: Path, seed: int, directory: Path) -> dict[str, dict]:
    """The same queries with the support alone, with suggested and with random sentences added."""
    drawn = directory / "drawn.json"
    sizes = ["--shots", str(args.shots), "--episodes", "1", "--queries", str(args.queries), "--seed", str(seed)]
    subprocess.run([args.fewtag, "sample", corpus, *sizes, "--out", drawn, "--force"], check=True, capture_output=True)
    [[episode]] = json.loads(drawn.read_text(encoding="utf-8")).values()
    support, queries = chosen_of(episode["support"]), chosen_of(episode["query"])
    others = sorted(set(sentences(corpus)) - set(support) - set(queries))
    shuffled = random.Random(seed)
    pool = shuffled.sample(others, min(args.pool, len(others)))
    arms = {"support": []} | {f"random {i}": shuffled.sample(pool, args.add) for i in range(DRAWS)}
    arms["suggested"] = suggested(args, support, pool, directory)
    return {arm: {"support": part(support + added), "query": part(queries)} for arm, added in arms.items()}


def f1(args, arms: list[dict], directory: Path) -> list[float]:
    """The F1 of each episode: each is a domain of its own."""
    path = directory / "episodes.json"
    path.write_text(json.dumps({f"seed {i}": [episode] for i, episode in enumerate(arms)}), encoding="utf-8")
    command = [args.fewtag, "evaluate", args.model, path, "--table", "scores", "--format", "json"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    rows = json.loads(output)["scores"]
    return [row["f1"] for row in rows if row["domain"].startswith("seed ")]


def scores_of(args, corpus: Path) -> dict[str, list[float]]:
    """The F1 of every seed, for the support alone, with random and with suggested sentences."""
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        of_seeds = [episodes(args, corpus, seed, directory) for seed in range(FIRST_SEED, FIRST_SEED + args.seeds)]
        scores = {arm: f1(args, [of[arm] for of in of_seeds], directory) for arm in of_seeds[0]}
    randoms = zip(*(scores[f"random {i}"] for i in range(DRAWS)))
    return {"support": scores["support"], "random": [mean(draws) for draws in randoms], "suggested": scores["suggested"]}


def row(name: str, scores: dict[str, list[float]]) -> str:
    gains = [s - r for s, r in zip(scores["suggested"], scores["random"])]
    error = stdev(gains) / math.sqrt(len(gains))
    means = " | ".join(f"{mean(of):.1f}" for of in scores.values())
    return f"| {name} | {means} | {mean(gains):+.1f} ± {error:.1f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="+", type=Path)
    for name, value in {"seeds": 12, "shots": 1, "add": 10, "pool": 400, "queries": 80}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--fewtag", type=Path, default=ROOT / "target/release/fewtag")
    parser.add_argument("--model", type=Path, default=ROOT / "models/default")
    args = parser.parse_args()
    print(f"| corpus | support | + {args.add} random | + {args.add} suggested | difference |\n|---|---:|---:|---:|---:|", flush=True)
    all_scores: dict[str, list[float]] = {}
    for corpus in args.corpora:
        scores = scores_of(args, corpus)
        print(row(corpus.stem, scores), flush=True)
        for arm, of in scores.items():
            all_scores.setdefault(arm, []).extend(of)
    print(row("all", all_scores))


if __name__ == "__main__":
    main()
