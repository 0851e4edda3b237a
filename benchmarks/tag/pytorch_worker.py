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
from reference.model import Tagger  # noqa: E402


def main() -> None:
    torch.set_num_threads(int(sys.argv[3]))
    tagger = Tagger.load(Path(sys.argv[1]), "paired")
    support = [Sentence(words, tags) for words, tags in json.loads(Path(sys.argv[2]).read_text())]
    print("ready", flush=True)
    for line in sys.stdin:
        queries = [Sentence(words, ["O"] * len(words)) for words in json.loads(line)]
        print(json.dumps(tagger.tag(support, queries)), flush=True)


if __name__ == "__main__":
    main()
