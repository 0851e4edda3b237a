"""The PyTorch side of the comparison: a JSON list of sentences per line on stdin, their tags per line on stdout.

    pytorch_worker.py MODEL_DIRECTORY SUPPORT.json THREADS

The same model as `fewtag tag --context paired`: encoder, λ and transitions of the model directory (in f32 storage), prototypes with
vector projection, legal BIO. A batch is padded to its longest sequence; attention is `sdpa`.
"""

import json
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
from reference.episodes import Sentence  # noqa: E402
from reference.model import Settings, Tagger  # noqa: E402


def load(directory: Path) -> Tagger:
    description = json.loads((directory / "fewtag.json").read_text())
    s, head = description["settings"], description["head"]
    settings = Settings(
        "paired", s["scorer"], s["similarity"], s["label_names"], s["transitions"], s["constrained"], s["borrow"]
    )
    tagger = Tagger(directory, settings, head["scale"])
    with torch.no_grad():
        for name, values in head["transitions"].items():
            getattr(tagger.transitions, name).copy_(torch.tensor(values))
    return tagger.eval()


def main() -> None:
    torch.set_num_threads(int(sys.argv[3]))
    tagger = load(Path(sys.argv[1]))
    support = [Sentence(words, tags) for words, tags in json.loads(Path(sys.argv[2]).read_text())]
    print("ready", flush=True)
    for line in sys.stdin:
        queries = [Sentence(words, ["O"] * len(words)) for words in json.loads(line)]
        print(json.dumps(tagger.tag(support, queries)), flush=True)


if __name__ == "__main__":
    main()
