"""SimBERT on episode files: frozen encoder, separate context, the tag of the nearest support word by cosine.

    python -m reference.simbert ENCODER_DIRECTORY EPISODE_DIRECTORY > simbert.json

Run from `scripts/`. Prints the mean episode F1 and sentence-macro F1 of every `*/*.json` in the directory.
"""

import json
import sys
from pathlib import Path
from statistics import fmean

import torch
from torch import Tensor
from torch.nn.functional import normalize

from . import episodes
from .encoder import Encoder
from .scores import episode_scores


@torch.no_grad()
def vectors(encoder: Encoder, sentences: set[tuple[str, ...]], batch: int = 32) -> dict[tuple[str, ...], Tensor]:
    """Unit word vectors [n, d] of every sentence. Sorted by length: a batch then holds little padding."""
    queue, found = sorted(sentences, key=lambda words: (len(words), words)), {}
    for i in range(0, len(queue), batch):
        rows = encoder.separate([list(words) for words in queue[i : i + batch]])
        found |= {words: normalize(x.double()) for words, x in zip(queue[i : i + batch], rows)}
    return found


def simbert(encoder: Encoder, file: Path) -> dict[str, float]:
    read = episodes.read(file)
    known = vectors(encoder, {tuple(x.words) for e in read for x in e.support + e.queries})
    scores = []
    for episode in read:
        keys = torch.cat([known[tuple(x.words)] for x in episode.support])
        tags = [tag for x in episode.support for tag in x.tags]
        predicted = [[tags[i] for i in (known[tuple(x.words)] @ keys.T).argmax(1)] for x in episode.queries]
        scores.append(episode_scores([x.tags for x in episode.queries], predicted))
    micro, macro = zip(*scores)
    return {"domain": read[0].domain, "episode_f1": round(fmean(micro), 4), "sentence_macro_f1": round(fmean(macro), 4)}


def main() -> None:
    torch.set_num_threads(1)
    encoder = Encoder(Path(sys.argv[1])).eval()
    root = Path(sys.argv[2])
    results = {str(file.relative_to(root)): simbert(encoder, file) for file in sorted(root.glob("*/*.json"))}
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(result)}" for name, result in results.items())
    print(f"{{\n{lines}\n}}")


if __name__ == "__main__":
    main()
