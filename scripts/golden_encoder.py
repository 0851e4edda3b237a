"""Writes the tiny random encoder of `testdata/` and what PyTorch computes with it.

    python scripts/golden_encoder.py

    testdata/tiny-encoder/                 a BERT of 13 thousand parameters with odd sizes, as a Hugging Face directory
    crates/fewtag/tests/golden/encoder.*   its hidden states, gradients and ten AdamW updates, with their origin

The reference is `transformers` with eager attention in float64, so the golden numbers carry no rounding of
their own. Needs torch, transformers, tokenizers and safetensors (versions: see encoder.origin.md). The same
seed gives the same files.
"""

import datetime
import json
import pathlib
import platform
import random

import safetensors
import tokenizers
import torch
import transformers
from safetensors.torch import save_file
from tokenizers import BertWordPieceTokenizer
from transformers import BertConfig, BertModel, get_linear_schedule_with_warmup

ROOT = pathlib.Path(__file__).resolve().parent.parent
ENCODER = ROOT / "testdata" / "tiny-encoder"
GOLDEN = ROOT / "crates" / "fewtag" / "tests" / "golden"

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = """the a an in on at to of for and is it me my i you we this that with from by
play add book find show rate give get set put what when where will be can please want need like some
song music album artist playlist track movie film book restaurant table weather rain snow sun sunny cold hot
city paris london new york tokyo berlin spring park street today tomorrow tonight morning evening next week
one two three four five six star stars points out people party best good bar cafe food italian chinese pizza
flight ticket hotel room train bus alarm timer reminder meeting john mary anna jazz rock pop blues queen""".split()
SUFFIXES = "##s ##ing ##ed ##er ##y ##ly ##est ##ion ##al ##an".split()
CHARACTERS = "abcdefghijklmnopqrstuvwxyz0123456789"

# Nothing is a multiple of 8 or 16, and the large epsilon shows if a layer norm ignores it.
CONFIG = dict(hidden_size=20, num_hidden_layers=2, num_attention_heads=4, intermediate_size=36,
              max_position_embeddings=128, type_vocab_size=2, hidden_act="gelu", layer_norm_eps=1e-3,
              hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1)
UPDATES, WARM_UP, PEAK, DECAY, CLIP = 10, 3, 1e-2, 0.01, 1.0


def vocabulary():
    pieces = SPECIAL + list(".,!?'-:/&") + list(CHARACTERS) + ["##" + c for c in CHARACTERS] + SUFFIXES + WORDS
    return list(dict.fromkeys(pieces))


def write_encoder(pieces):
    ENCODER.mkdir(parents=True, exist_ok=True)
    (ENCODER / "vocab.txt").write_text("".join(piece + "\n" for piece in pieces))
    tokenizer = BertWordPieceTokenizer({piece: i for i, piece in enumerate(pieces)}, lowercase=True)
    tokenizer.save(str(ENCODER / "tokenizer.json"), pretty=False)
    config = BertConfig(vocab_size=len(pieces), **CONFIG)
    model = BertModel(config, add_pooling_layer=False)
    generator = torch.Generator().manual_seed(20)
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            noise = torch.randn(tensor.shape, generator=generator)
            # Far larger than a usual initialisation: every term of every gradient must weigh something.
            tensor.copy_(1 + 0.1 * noise if name.endswith("LayerNorm.weight") else 0.25 * noise)
    save_file({name: tensor.detach().contiguous() for name, tensor in model.named_parameters()},
              ENCODER / "model.safetensors", metadata={"format": "pt"})
    kept = {"architectures": ["BertModel"], "model_type": "bert", "vocab_size": len(pieces), **CONFIG}
    (ENCODER / "config.json").write_text(json.dumps(kept, indent=2) + "\n")
    return model.double()


def random_batch(rng, n_pieces, lengths):
    """Sequences of pieces; the second part of each pair is segment 1."""
    batch = []
    for first, second in lengths:
        ids = [rng.randrange(5, n_pieces) for _ in range(first + second)]
        batch.append({"ids": ids, "segments": [0] * first + [1] * second})
    return batch


def hidden_rows(model, batch):
    """The last hidden states of all real pieces, one sequence after the other: [n_pieces, hidden]."""
    rows = []
    for sequence in batch:
        ids = torch.tensor([sequence["ids"]])
        segments = torch.tensor([sequence["segments"]])
        rows.append(model(input_ids=ids, token_type_ids=segments).last_hidden_state[0])
    return torch.cat(rows)


def adamw_losses(model, batches, targets):
    """Mean squared distance to `targets` before each of the updates, alternating between the batches."""
    decayed = [p for n, p in model.named_parameters() if not n.endswith("bias") and "LayerNorm" not in n]
    rest = [p for n, p in model.named_parameters() if n.endswith("bias") or "LayerNorm" in n]
    groups = [{"params": decayed, "weight_decay": DECAY}, {"params": rest, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=PEAK, betas=(0.9, 0.999), eps=1e-8)
    schedule = get_linear_schedule_with_warmup(optimizer, WARM_UP, UPDATES)
    losses, norms, rates = [], [], []
    for update in range(UPDATES):
        target = targets[update % len(batches)]
        loss = ((hidden_rows(model, batches[update % len(batches)]) - target) ** 2).sum() / len(target)
        optimizer.zero_grad()
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP).item())
        rates.append(schedule.get_last_lr()[0])
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses, norms, rates


def main():
    pieces = vocabulary()
    model = write_encoder(pieces).eval()
    rng = random.Random(7)
    # One piece alone, lengths around the vector width, pairs, and one long sequence.
    batches = [random_batch(rng, len(pieces), [(1, 0), (3, 4), (8, 0), (9, 8), (5, 12), (31, 0)]),
               random_batch(rng, len(pieces), [(2, 1), (64, 64), (1, 1)])]
    generator = torch.Generator().manual_seed(21)
    sizes = [sum(len(s["ids"]) for s in batch) for batch in batches]
    # Rounded to f32 first, so that both sides start from the same numbers.
    targets = [torch.randn(n, CONFIG["hidden_size"], generator=generator).double() for n in sizes]

    tensors = {f"target.{i}": target.float() for i, target in enumerate(targets)}
    for activation in ["gelu", "gelu_new", "relu"]:
        for layer in model.encoder.layer:
            layer.intermediate.intermediate_act_fn = transformers.activations.ACT2FN[activation]
        tensors[f"hidden.{activation}"] = hidden_rows(model, batches[0]).detach().float()
        # The gradient of Σ hidden · target: the rows that enter the backward pass are `target.0`.
        model.zero_grad()
        (hidden_rows(model, batches[0]) * targets[0]).sum().backward()
        for name, parameter in model.named_parameters():
            tensors[f"gradient.{activation}.{name}"] = parameter.grad.float()
    for layer in model.encoder.layer:
        layer.intermediate.intermediate_act_fn = transformers.activations.ACT2FN["gelu"]

    losses, norms, rates = adamw_losses(model, batches, targets)
    for name, parameter in model.named_parameters():
        tensors[f"updated.{name}"] = parameter.detach().float()

    GOLDEN.mkdir(parents=True, exist_ok=True)
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, GOLDEN / "encoder.safetensors")
    training = {"updates": UPDATES, "warm_up": WARM_UP, "peak_rate": PEAK, "decay": DECAY, "clip": CLIP,
                "losses": losses, "gradient_norms": norms, "rates": rates}
    text = json.dumps({"batches": batches, "training": training})
    (GOLDEN / "encoder.json").write_text(text + "\n")
    (GOLDEN / "encoder.origin.md").write_text(
        f"""`encoder.json` and `encoder.safetensors` are written by `scripts/golden_encoder.py`, never by this crate.

Reference: `transformers` `BertModel` (eager attention, float64), `torch.optim.AdamW`, `clip_grad_norm_`,
`get_linear_schedule_with_warmup`, on the encoder in `testdata/tiny-encoder`.
Date: {datetime.date.today()}. Python {platform.python_version()}, torch {torch.__version__}, \
transformers {transformers.__version__}, tokenizers {tokenizers.__version__}, safetensors {safetensors.__version__}.
""")


if __name__ == "__main__":
    main()
