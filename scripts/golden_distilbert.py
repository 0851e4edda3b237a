"""Writes a tiny random DistilBERT into `testdata/` and what `transformers` computes with it.

    python scripts/golden_distilbert.py

    testdata/tiny-distilbert/                    5 thousand parameters of odd sizes, under DistilBERT's own names
    crates/fewtag/tests/golden/distilbert.json   its hidden states, computed in float64

Needs torch, transformers and safetensors. The same seed gives the same files.
"""

import json
import pathlib

import torch
import transformers
from safetensors.torch import save_file
from transformers import DistilBertConfig, DistilBertModel

ROOT = pathlib.Path(__file__).resolve().parent.parent
ENCODER = ROOT / "testdata" / "tiny-distilbert"
CONFIG = dict(dim=15, n_layers=2, n_heads=3, hidden_dim=21, vocab_size=31, max_position_embeddings=19, activation="gelu",
              sinusoidal_pos_embds=False, dropout=0.1, attention_dropout=0.1)


def main():
    model = DistilBertModel(DistilBertConfig(**CONFIG, attn_implementation="eager")).eval()
    generator = torch.Generator().manual_seed(21)
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            noise = torch.randn(tensor.shape, generator=generator)
            is_norm = "orm.weight" in name
            tensor.copy_(1 + 0.1 * noise if is_norm else 0.25 * noise)
    ENCODER.mkdir(parents=True, exist_ok=True)
    tensors = {f"distilbert.{name}": tensor.detach().contiguous().clone() for name, tensor in model.named_parameters()}
    save_file(tensors, ENCODER / "model.safetensors", metadata={"format": "pt"})
    (ENCODER / "config.json").write_text(json.dumps({"model_type": "distilbert", **CONFIG}, indent=2) + "\n")
    model = model.double()
    sequences = [torch.randint(0, CONFIG["vocab_size"], (length,), generator=generator) for length in (1, 7, 19)]
    with torch.no_grad():
        rows = [model(ids[None]).last_hidden_state[0] for ids in sequences]
    golden = {
        "origin": f"scripts/golden_distilbert.py, torch {torch.__version__}, transformers {transformers.__version__}, float64",
        "sequences": [{"ids": ids.tolist(), "hidden": [[round(x, 7) for x in row] for row in hidden.tolist()]}
                      for ids, hidden in zip(sequences, rows)],
    }
    path = ROOT / "crates" / "fewtag" / "tests" / "golden" / "distilbert.json"
    path.write_text(json.dumps(golden) + "\n")


if __name__ == "__main__":
    main()
