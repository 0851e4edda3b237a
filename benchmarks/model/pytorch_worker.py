"""The PyTorch side of the comparison: one word per line on stdin, one JSON answer per line on stdout.

`train` and `evaluate` mean what `crates/fewtag/examples/model_worker.rs` says. A batch is padded to its longest
sequence; attention is `sdpa`, AdamW is fused.
"""

import json
import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
from reference import episodes  # noqa: E402
from reference.model import Settings, Tagger  # noqa: E402
from reference.scores import episode_scores  # noqa: E402
from reference.train import Optimisation, batch_loss, update, with_schedule  # noqa: E402

BATCH = 4
SETTINGS = {
    "paired": (Settings("paired", "nmn", "dot"), 0.05),
    "separate": (Settings("separate", "prototype", "projection"), 1.0),
}


class Worker:
    def __init__(self, encoder: Path, context: str, episode_file: Path):
        settings, scale = SETTINGS[context]
        self.tagger = Tagger(encoder, settings, scale, dropout=0.1)
        self.optimisation = Optimisation(updates=10_000, encoder_rate=1e-5, warm_up=1000)
        self.adamw, self.schedule = with_schedule(self.tagger, self.optimisation)
        self.episodes = episodes.read(episode_file)

    def train(self) -> int:
        self.tagger.train()
        for e in range(len(self.episodes)):
            loss = batch_loss(self.tagger, self.episodes, [(e, q) for q in range(BATCH)])
            update(self.tagger, self.adamw, self.schedule, loss, self.optimisation)
        return BATCH * len(self.episodes)

    def evaluate(self) -> int:
        self.tagger.eval()
        for episode in self.episodes:
            predicted = self.tagger.tag(episode.support, episode.queries)
            episode_scores([query.tags for query in episode.queries], predicted)
        return sum(len(episode.queries) for episode in self.episodes)


def main() -> None:
    torch.set_num_threads(int(sys.argv[4]))
    torch.manual_seed(0)
    worker = Worker(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
    print("ready", flush=True)
    for line in sys.stdin:
        start = time.perf_counter()
        samples = {"train": worker.train, "evaluate": worker.evaluate}[line.strip()]()
        print(json.dumps({"samples": samples, "seconds": time.perf_counter() - start}), flush=True)


if __name__ == "__main__":
    main()
