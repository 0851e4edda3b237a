#!/usr/bin/env python3
"""What is each part of the training worth? The recipe of the built-in model, each part taken away alone, trained anew.

    python3 benchmarks/accuracy/ablation.py --updates 1500 --shots 1 5 20
    python3 benchmarks/accuracy/ablation.py --without shapes     # one of them, beside the whole

Every run has the same seed and number of updates, fewer than the built-in model's; a killed one goes on where it stopped. λ of the emissions is
multiplied by what the recipe multiplies it by. The runs are judged in int8 on the dev domains by run.py, each beside the whole recipe; what this
command does not know is run.py's.
"""

import argparse
import json
import pathlib
import subprocess
import sys

from run import HERE, ROOT

RECIPE = ROOT / "configs" / "built-in.toml"
LIFELESS = ["data.vary_slots=false", "data.plain_support=0", "data.zero_shot=0", "data.odd_names=0", "data.lower_case=0", "data.upper_case=0"]
FEWER_DOMAINS = ["data/snips", "data/snips_raw_cased", "data/ner", "data/slots", "data/sgd"]
# MiniLM-L6 has half the layers, and its word vectors are twice as long.
OTHER_ENCODER = ["model.middle=[3, 4]", "model.scale=0.15", "mix.attention=-2.554", "mix.ridge=3.4657"]
WITHOUT = {
    "regression": ['model.scorer="mixed"', "model.lexical=false", "model.siblings=0", "model.middle=[]", "model.scale=1.2"],
    "transitions": ["optimizer.transition_rate=0"],
    "legal-loss": ["model.legal_loss=false"],
    "shapes": ["model.case=false"],
    "names": ["model.label_names=0", "data.zero_shot=0", "data.odd_names=0"],
    "lifelike": LIFELESS,
    "more-domains": [f"data.train={json.dumps(FEWER_DOMAINS)}"],
    "e5": OTHER_ENCODER,
    "upper-half": ["layers=6", "model.middle=[3, 4]"],
    "long-schedule": [],
}
SHORT = 5  # the run without the long schedule has so many times fewer updates


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--encoder", type=pathlib.Path, default=ROOT / "encoders" / "e5-small")
    parser.add_argument("--other-encoder", type=pathlib.Path, default=ROOT / "encoders" / "minilm-l6", help="for the run without e5-small")
    parser.add_argument("--updates", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--without", nargs="+", choices=WITHOUT, default=list(WITHOUT), help="these parts; all unless given")
    parser.add_argument("--scale", type=float, default=1.75, help="λ of the emissions times this, after training")
    parser.add_argument("--fewtag", default="fewtag", help="the command")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("ablation"), help="runs are kept here")
    arguments, for_run = parser.parse_known_args()
    arguments.work = arguments.work.resolve()  # The paths of the recipe are those of the repository.
    models = [f"whole={trained(arguments, 'whole', [])}@int8"]
    models += [f"no-{part}={trained(arguments, part, WITHOUT[part])}@int8" for part in arguments.without]
    judge = [sys.executable, HERE / "run.py", "--fewtag", arguments.fewtag, "--work", arguments.work / "judged", "--split", "dev", "--models", *models]
    subprocess.run([*judge, *for_run], check=True)


def trained(arguments, part, settings):
    """The directory of a model with these settings; where it was trained already, nothing is done."""
    out = arguments.work / f"{part}-{arguments.encoder.name}-{arguments.updates}-{arguments.seed}"
    learned, scaled = out / "learned.json", out / "fewtag.json"
    if not learned.exists():
        if not scaled.exists():
            train(arguments, part, settings, out)
        scaled.rename(learned)
    described = json.loads(learned.read_text())
    described["head"]["scale"] *= arguments.scale
    scaled.write_text(json.dumps(described, indent=2) + "\n")
    return out


def train(arguments, part, more, out):
    encoder = (arguments.other_encoder if part == "e5" else arguments.encoder).resolve()
    updates = arguments.updates // SHORT if part == "long-schedule" else arguments.updates
    settings = [f"encoder={encoder}", f"optimizer.updates={updates}", "evaluation.every=250", *more]
    command = [arguments.fewtag, "train", "--config", RECIPE, "--seed", str(arguments.seed), "--out", out]
    command += [word for setting in settings for word in ("--set", setting)]
    command += ["--resume"] if (out / "checkpoints").exists() else []
    subprocess.run(command, check=True, cwd=ROOT)


if __name__ == "__main__":
    main()
