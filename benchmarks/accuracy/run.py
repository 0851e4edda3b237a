#!/usr/bin/env python3
"""F1 of models on whole domains that nobody trained on, group by group, with paired bootstrap intervals.

    python3 benchmarks/accuracy/run.py --models old=models/before new=models/default --split reported --shots 1 5 20
    python3 benchmarks/accuracy/run.py --models f32=models/default@f32 int8=models/default@int8     # one model, two precisions
    python3 benchmarks/accuracy/run.py --models simbert=encoders/minilm-l6@simbert new=models/default     # an untrained encoder
    python3 benchmarks/accuracy/run.py --models new=models/default --queries upper     # examples as they are, queries shouted
    python3 benchmarks/accuracy/run.py --models new=models/default --odd-names     # labels called slot_1, slot_2 …

Draws 20 episodes of 20 queries for each domain of domains.toml and number of shots (0: the 1-shot episodes with all
examples taken away), judges every model on the same episodes and writes a Markdown page. The corpora are laid out
by scripts/fetch_data.py. What was judged is kept in --work and not judged again.
"""

import argparse
import hashlib
import json
import pathlib
import random
import statistics
import subprocess
import tomllib

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
SEED = 7
SIMBERT = ["--untrained", "--set", "scorer=nearest", "--set", "similarity=cosine", "--set", "transitions=none", "--set", "context=separate"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", required=True, metavar="NAME=DIR[@PRECISION]", help="the first is compared with the others; @simbert reads an encoder's directory")
    parser.add_argument("--split", default="dev", choices=["dev", "reported"])
    parser.add_argument("--only", nargs="+", help="only these domains of the split")
    parser.add_argument("--shots", nargs="+", type=int, default=[1, 5, 20])
    parser.add_argument("--queries", choices=["lower", "upper"], help="how all words of the queries are written, if not as they are")
    parser.add_argument("--odd-names", action="store_true", help="labels have names that say nothing")
    parser.add_argument("--data", type=pathlib.Path, default=ROOT / "data")
    parser.add_argument("--fewtag", default="fewtag", help="the command")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("accuracy"), help="episodes and scores are kept here")
    parser.add_argument("--out", type=pathlib.Path, help="where the page is written; standard output if not given")
    parser.add_argument("--card", action="store_true", help="measure the last model's card on the same episodes (fewtag model card)")
    arguments = parser.parse_args()
    groups = chosen(arguments.split, arguments.only)
    models = dict(model.split("=", 1) for model in arguments.models)
    arguments.work.mkdir(parents=True, exist_ok=True)
    scores = {
        (model, shots): {name: judged(arguments, directory, name, shots) for names in groups.values() for name in names}
        for shots in arguments.shots
        for model, directory in models.items()
    }
    if arguments.card:
        write_card(arguments, list(models.values())[-1], [name for names in groups.values() for name in names])
    page = "\n".join(pages(arguments, groups, list(models), scores))
    if arguments.out:
        arguments.out.write_text(page + "\n")
    else:
        print(page)


def chosen(split, only):
    """The domains of a split by group; only some of them, if asked."""
    groups = tomllib.loads((HERE / "domains.toml").read_text())[split]
    wanted = {group: [name for name in names if not only or name in only] for group, names in groups.items()}
    return {group: names for group, names in wanted.items() if names}


def judged(arguments, model, name, shots):
    """The F1 of every episode; None where a model cannot answer (an old one without examples)."""
    episodes, written = drawn(arguments, name, max(shots, 1)), ""
    for way in filter(None, [arguments.queries, "odd" if arguments.odd_names else None]):
        episodes, written = rewritten(episodes, way), f"{written}-{way}"
    return episode_f1(arguments, model, episodes, f"{name.replace('/', '-')}-{shots}{written}", shots == 0)


def episode_f1(arguments, model, episodes, key, names_only=False):
    """The F1 of every episode of a file; what was judged is kept under its key."""
    if model.endswith("@simbert") and names_only:
        return None
    model, _, way = model.partition("@")
    described = "config.json" if way == "simbert" else "fewtag.json"
    kept = hashlib.sha256((pathlib.Path(model) / described).read_bytes()).hexdigest()[:16] + way
    results = arguments.work / f"{kept}-{key}.json"
    if not results.exists():
        command = [arguments.fewtag, "evaluate", model, str(episodes), "--results", str(results), "--table", "scores"]
        command += SIMBERT if way == "simbert" else ["--precision", way] if way else []
        answer = subprocess.run(command + ["--names-only"] * names_only, capture_output=True, text=True)
        if answer.returncode and "reads no label names" in answer.stderr:
            return None
        if answer.returncode:
            raise SystemExit(f"{' '.join(command)}\n{answer.stderr}")
    (domain,) = json.loads(results.read_text())["episode f1"][0].values()
    return domain


def write_card(arguments, model, names):
    """How honest the model's probabilities are, and its transitions, into the card in its directory."""
    model, _, precision = model.partition("@")
    command = [arguments.fewtag, "model", "card", model] + (["--precision", precision] if precision else [])
    for shots in arguments.shots:
        for name in names:
            command += ["--shots", f"{shots}={drawn(arguments, name, max(shots, 1))}"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def drawn(arguments, name, shots):
    episodes = arguments.work / f"{name.replace('/', '-')}-{shots}shot.json"
    if not episodes.exists():
        corpus = arguments.data / f"{name}.conll"
        settings = ["--episodes", "20", "--queries", "20", "--seed", str(SEED), "--shots", str(shots)]
        subprocess.run([arguments.fewtag, "sample", str(corpus), *settings, "--out", str(episodes)], check=True, capture_output=True)
    return episodes


def rewritten(episodes, way):
    """The same episodes with all words of the queries lower-cased or shouted, or with names that say nothing."""
    written = episodes.with_suffix(f".{way}.json")
    if not written.exists():
        drawn = json.loads(episodes.read_text())
        for episode in (episode for of_domain in drawn.values() for episode in of_domain):
            if way == "odd":
                rename(episode)
            else:
                query = episode["query"]
                query["seq_ins"] = [[getattr(word, way)() for word in sentence] for sentence in query["seq_ins"]]
        written.write_text(json.dumps(drawn))
    return written


def rename(episode):
    """Labels become slot_1, slot_2 …"""
    tagged = [sentence for part in (episode["support"], episode["query"]) for sentence in part["seq_outs"]]
    slots = sorted({tag[2:] for sentence in tagged for tag in sentence if tag != "O"})
    numbers = {slot: number for number, slot in enumerate(slots, 1)}
    for sentence in tagged:
        sentence[:] = [tag if tag == "O" else f"{tag[:2]}slot_{numbers[tag[2:]]}" for tag in sentence]


def pages(arguments, groups, models, scores):
    command = f"python3 benchmarks/accuracy/run.py --split {arguments.split} --shots {' '.join(map(str, arguments.shots))}"
    command += f" --queries {arguments.queries}" if arguments.queries else ""
    command += " --odd-names" if arguments.odd_names else ""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    yield f"`{command}` at {commit}: mean F1 over 20 episodes of 20 queries a domain, seed {SEED}.\n"
    header = [f"{model}, {shots}" for shots in arguments.shots for model in models]
    yield "| domain (model, shots) | " + " | ".join(header) + " |"
    yield "|---|" + "---:|" * len(header)
    for group, names in groups.items():
        for name in names:
            yield row(name, [mean(scores[model, shots][name]) for shots in arguments.shots for model in models])
        yield row(f"**{group}**", [group_mean(scores[model, shots], names) for shots in arguments.shots for model in models])
    everything = [name for names in groups.values() for name in names]
    yield row("**all**", [group_mean(scores[model, shots], everything) for shots in arguments.shots for model in models])
    yield ""
    yield from comparisons(arguments, groups, models, scores)


def comparisons(arguments, groups, models, scores):
    """Differences from the first model; 95 % intervals of 2,000 paired bootstrap draws of episodes within domains."""
    if len(models) < 2:
        return
    yield "| difference | " + " | ".join(f"{shots} shots" for shots in arguments.shots) + " |"
    yield "|---|" + "---:|" * len(arguments.shots)
    others = {"not dialogue": [name for group, names in groups.items() if group != "dialogue" for name in names]}
    others = {group: names for group, names in others.items() if names}
    for model in models[1:]:
        for group, names in (groups | others).items():
            cells = [difference(scores[models[0], shots], scores[model, shots], names) for shots in arguments.shots]
            yield row(f"{model} − {models[0]}, {group}", cells)


def difference(before, after, names):
    if any(before[name] is None or after[name] is None for name in names):
        return "–"
    draw = random.Random(SEED)
    pairs = {name: list(zip(before[name], after[name])) for name in names}
    gain = lambda drawn: statistics.mean(statistics.mean(b - a for a, b in pairs) for pairs in drawn)
    gains = sorted(gain([draw.choices(p, k=len(p)) for p in pairs.values()]) for _ in range(2000))
    return f"{gain(pairs.values()):+.1f} [{gains[50]:+.1f}, {gains[1949]:+.1f}]"


def mean(f1):
    return "–" if f1 is None else f"{statistics.mean(f1):.1f}"


def group_mean(scores, names):
    known = [scores[name] for name in names]
    return "–" if None in known else f"**{statistics.mean(map(statistics.mean, known)):.1f}**"


def row(name, cells):
    return f"| {name} | " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
