#!/usr/bin/env python3
"""What is each part of the training worth? The recipe of the built-in model, each part taken away alone, trained anew.

    python3 benchmarks/accuracy/ablation.py --updates 1000
    python3 benchmarks/accuracy/ablation.py --without shapes     # one of them, beside the whole
    python3 benchmarks/accuracy/ablation.py --page               # nothing is run: the page from what is kept

Every run has the same seed and number of updates, fewer than the built-in model's; a killed one goes on where it stopped. λ of the emissions is
multiplied by what the recipe multiplies it by. The runs are judged in int8 on the episodes of run.py, of the dev domains. The F1 of every episode is
kept in results/ablation.json and not judged again; several of these commands may run side by side, each with other parts.
"""

import argparse
import json
import pathlib
import subprocess

from run import HERE, ROOT, chosen, difference, group_mean, judged

RECIPE = ROOT / "configs" / "built-in.toml"
CELLS = HERE / "results" / "ablation.json"
LIFELESS = ["data.vary_slots=false", "data.plain_support=0", "data.zero_shot=0", "data.odd_names=0", "data.lower_case=0", "data.upper_case=0"]
FEWER_DOMAINS = ["data/snips", "data/snips_raw_cased", "data/ner", "data/slots", "data/sgd"]
# MiniLM-L6 has half the layers, and its word vectors are twice as long.
OTHER_ENCODER = ["model.middle=[3, 4]", "model.scale=0.15", "mix.attention=-2.554", "mix.ridge=3.4657"]
WHOLE = "whole"
WITHOUT = {
    "more-domains": [f"data.train={json.dumps(FEWER_DOMAINS)}"],
    "long-schedule": [],
    "upper-half": ["layers=6", "model.middle=[3, 4]"],
    "e5": OTHER_ENCODER,
    "lifelike": LIFELESS,
    "names": ["model.label_names=0", "data.zero_shot=0", "data.odd_names=0"],
    "shapes": ["model.case=false"],
    "transitions": ["optimizer.transition_rate=0"],
    "regression": ['model.scorer="mixed"', "model.lexical=false", "model.siblings=0", "model.middle=[]", "model.scale=1.2"],
    "legal-loss": ["model.legal_loss=false"],
}
MEANS = {
    "more-domains": "the 131 domains of `data/more`",
    "long-schedule": "four fifths of the updates",
    "upper-half": "the upper six layers",
    "e5": "e5-small (MiniLM-L6 instead)",
    "lifelike": "lifelike episodes",
    "names": "label names",
    "shapes": "how words are written",
    "transitions": "learned transitions",
    "regression": "the regression (`mixed` instead)",
    "legal-loss": "the loss that knows legal BIO",
}
SHORT = 5  # the run without the long schedule has so many times fewer updates


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--encoder", type=pathlib.Path, default=ROOT / "encoders" / "e5-small")
    parser.add_argument("--other-encoder", type=pathlib.Path, default=ROOT / "encoders" / "minilm-l6", help="for the run without e5-small")
    parser.add_argument("--updates", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--shots", nargs="+", type=int, default=[1, 5, 20])
    parser.add_argument("--without", nargs="+", choices=WITHOUT, default=list(WITHOUT), help="these parts; all unless given")
    parser.add_argument("--scale", type=float, default=1.75, help="λ of the emissions times this, after training")
    parser.add_argument("--data", type=pathlib.Path, default=ROOT / "data")
    parser.add_argument("--fewtag", default="fewtag", help="the command")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("ablation"), help="runs are kept here")
    parser.add_argument("--page", action="store_true", help="run nothing")
    arguments = parser.parse_args()
    arguments.queries, arguments.odd_names = None, False
    arguments.work = arguments.work.resolve()  # The paths of the recipe are those of the repository.
    arguments.work.mkdir(parents=True, exist_ok=True)
    groups = chosen("dev", None)
    if not arguments.page:
        for part in [WHOLE, *arguments.without]:
            keep(arguments, groups, part)
    print("\n".join(page(arguments, groups)))


def keep(arguments, groups, part):
    """Trains and judges what is not kept yet."""
    for shots in arguments.shots:
        key = f"{part} {shots} {arguments.updates} {arguments.seed}"
        if key in kept():
            continue
        model = f"{trained(arguments, part)}@int8"
        judge = lambda name: [round(f1, 2) for f1 in judged(arguments, model, name, shots)]
        cell = {name: judge(name) for names in groups.values() for name in names}
        cells = kept() | {key: cell}  # Another of these commands may have kept something meanwhile.
        written = CELLS.with_suffix(f".{part}")
        written.write_text("{\n" + ",\n".join(f"{json.dumps(key)}: {json.dumps(cells[key])}" for key in sorted(cells)) + "\n}\n")
        written.replace(CELLS)


def kept():
    return json.loads(CELLS.read_text()) if CELLS.exists() else {}


def trained(arguments, part):
    """The directory of a model; where it was trained already, nothing is done."""
    out = arguments.work / f"{part}-{arguments.encoder.name}-{arguments.updates}-{arguments.seed}"
    learned, scaled = out / "learned.json", out / "fewtag.json"
    if not learned.exists():
        if not scaled.exists():
            train(arguments, part, out)
        scaled.rename(learned)
    described = json.loads(learned.read_text())
    described["head"]["scale"] *= arguments.scale
    scaled.write_text(json.dumps(described, indent=2) + "\n")
    return out


def train(arguments, part, out):
    encoder = (arguments.other_encoder if part == "e5" else arguments.encoder).resolve()
    updates = arguments.updates // SHORT if part == "long-schedule" else arguments.updates
    settings = [f"encoder={encoder}", f"optimizer.updates={updates}", "evaluation.every=250", *WITHOUT.get(part, [])]
    command = [arguments.fewtag, "train", "--config", RECIPE, "--seed", str(arguments.seed), "--out", out]
    command += [word for setting in settings for word in ("--set", setting)]
    command += ["--resume"] if (out / "checkpoints").exists() else []
    subprocess.run(command, check=True, cwd=ROOT)


def page(arguments, groups):
    """A row for each part: how much F1 is lost without it."""
    cells, shots = kept(), arguments.shots
    of = lambda part: [cells.get(f"{part} {n} {arguments.updates} {arguments.seed}") for n in shots]
    everything = [name for names in groups.values() for name in names]
    apart = {"not dialogue": [name for group, names in groups.items() if group != "dialogue" for name in names], "dialogue": groups["dialogue"]}
    columns = [f"{group}, {n}" for group in apart for n in shots]
    yield f"| {arguments.updates} updates, seed {arguments.seed}; without | F1 of all: {', '.join(map(str, shots))} shots | " + " | ".join(columns) + " |"
    yield "|---|---|" + "---:|" * len(columns)
    whole = of(WHOLE)
    for part in [WHOLE, *WITHOUT]:
        if None in whole + of(part):
            continue
        means = ", ".join(group_mean(scores, everything).strip("*") for scores in of(part))
        lost = [difference(before, after, names) for names in apart.values() for before, after in zip(whole, of(part))]
        yield f"| {MEANS.get(part, '(the whole)')} | {means} | " + " | ".join(lost if part != WHOLE else [""] * len(lost)) + " |"


if __name__ == "__main__":
    main()
