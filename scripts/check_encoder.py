"""Compares our encoder with `transformers` on 200 real sentences and pairs.

    python scripts/check_encoder.py encoders/minilm-l6 encoders/gte-small --data data

For each encoder: the word pieces (equal), the last hidden states (largest difference), the gradient of every
tensor (relative L2 error) and the losses of ten AdamW updates with clipping and schedule. The reference computes
in float64, so all differences are ours. Exit status 1 if a bound is missed. Needs torch, transformers, safetensors;
takes a few minutes per encoder. `--data` holds `snips/*.txt` and `ner/wnut17.txt`-like files: a word and its tag per
line, a blank line between sentences.
"""

import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import numpy
import torch
from safetensors.numpy import load_file
from transformers import AutoTokenizer, BertModel, get_linear_schedule_with_warmup

ROOT = pathlib.Path(__file__).resolve().parent.parent
MAX_HIDDEN, MAX_GRADIENT, MAX_LOSS = 2e-5, 1e-4, 1e-4
UPDATES, WARM_UP, PEAK, DECAY, CLIP = 10, 1, 1e-4, 0.01, 1.0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("encoders", nargs="+", type=pathlib.Path)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    command = ["cargo", "build", "--release", "--quiet", "--package", "fewtag", "--example", "encoder_worker"]
    subprocess.run(command, cwd=ROOT, check=True)
    samples = sample(arguments.data)
    print("| encoder | pieces | hidden, max difference | gradient, worst tensor | ten losses, max difference |")
    print("|---|---|---|---|---|")
    fine = [check(encoder, samples) for encoder in arguments.encoders]
    sys.exit(not all(fine))


def sample(data):
    """100 sentences and 100 pairs of sentences, from Snips and WNUT, each a list of one or two lists of words."""
    rng = random.Random(0)
    files = [*sorted((data / "snips").glob("*")), *sorted((data / "ner").glob("wnut17*"))]
    sentences = [[line.split("\t")[0] for line in block.splitlines()]
                 for file in files for block in file.read_text().split("\n\n") if block.strip()]
    sentences = [sentence for sentence in sentences if len(sentence) < 60]
    return [[rng.choice(sentences)] for _ in range(100)] + [rng.sample(sentences, 2) for _ in range(100)]


class Worker:
    """Our encoder as a process that takes commands; see crates/fewtag/examples/encoder_worker/main.rs."""

    def __init__(self, encoder, scratch):
        binary = ROOT / "target" / "release" / "examples" / "encoder_worker"
        self.scratch = scratch
        self.process = subprocess.Popen([binary, encoder, "2"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, command, *files):
        """Sends a command with files for its arguments: bytes are written, None is where an answer is expected."""
        paths = []
        for i, content in enumerate(files):
            paths.append(self.scratch / f"{command}-{i}")
            if content is not None:
                paths[-1].write_bytes(content)
        self.process.stdin.write(" ".join([command, *map(str, paths)]) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"no answer to `{command}`")
        return paths[-1] if files and files[-1] is None else json.loads(answer)


def check(encoder, samples):
    with tempfile.TemporaryDirectory() as scratch:
        worker = Worker(encoder, pathlib.Path(scratch))
        tokenizer = AutoTokenizer.from_pretrained(encoder)
        batch = [sequence(tokenizer, parts) for parts in samples]
        ours = json.loads(worker.ask("pieces", json.dumps(samples).encode(), None).read_text())
        same = ours == batch
        model = BertModel.from_pretrained(encoder, add_pooling_layer=False, dtype=torch.float64).eval()
        hidden, gradient = compare_pass(worker, model, batch)
        loss = compare_updates(worker, model, batch)
    print(f"| {encoder.name} | {'equal' if same else 'DIFFERENT'} | {hidden:.1e} | {gradient[0]:.1e} ({gradient[1]}) "
          f"| {loss:.1e} |", flush=True)
    return same and hidden <= MAX_HIDDEN and gradient[0] <= MAX_GRADIENT and loss <= MAX_LOSS


def sequence(tokenizer, parts):
    """[CLS] a [SEP] or [CLS] a [SEP] b [SEP], by the reference tokenizer."""
    encoded = tokenizer(*parts, is_split_into_words=True)
    return {"ids": encoded["input_ids"], "segments": encoded["token_type_ids"]}


def rows_of(model, batch):
    """The last hidden states of all pieces, sequence by sequence: [n_pieces, hidden]."""
    rows = [model(input_ids=torch.tensor([s["ids"]]), token_type_ids=torch.tensor([s["segments"]])) for s in batch]
    return torch.cat([row.last_hidden_state[0] for row in rows])


def targets_for(model, batch, seed):
    shape = (sum(len(s["ids"]) for s in batch), model.config.hidden_size)
    return numpy.random.default_rng(seed).standard_normal(shape, dtype=numpy.float32)


def compare_pass(worker, model, batch):
    """The largest difference of a hidden number, and (error, name) of the worst gradient."""
    target = targets_for(model, batch, 1)
    answer = worker.ask("pass", json.dumps(batch).encode(), target.tobytes(), None)
    ours = load_file(answer.with_suffix(".gradients"))
    our_rows = numpy.fromfile(answer.with_suffix(".hidden"), "<f4").reshape(target.shape)
    hidden, start = 0.0, 0
    model.zero_grad()
    for one in batch:  # One at a time: the graph of all 200 in float64 would not fit.
        rows = rows_of(model, [one])
        end = start + len(rows)
        hidden = max(hidden, float((rows.detach() - torch.tensor(our_rows[start:end])).abs().max()))
        (rows * torch.tensor(target[start:end])).sum().backward()
        start = end
    gradients = dict(model.named_parameters())
    errors = []
    for name, parameter in gradients.items():
        # A constant added to all keys changes no attention: the true gradient of the key bias is 0.
        scale = gradients[name.replace("self.key.bias", "self.query.bias")].grad.norm()
        errors.append((float((parameter.grad - torch.tensor(ours[name])).norm() / scale), name))
    return hidden, max(errors)


def compare_updates(worker, model, batch):
    """The largest difference of a loss, relative to the loss, over ten updates on ten parts of the batch."""
    parts = [batch[i::UPDATES] for i in range(UPDATES)]
    targets = [targets_for(model, part, 2 + i) for i, part in enumerate(parts)]
    training = dict(updates=UPDATES, warm_up=WARM_UP, peak_rate=PEAK, decay=DECAY, clip=CLIP)
    settings = json.dumps({"batches": parts, "training": training}).encode()
    ours = worker.ask("fit", settings, b"".join(target.tobytes() for target in targets))
    decayed = [p for p in model.parameters() if p.dim() == 2]
    rest = [p for p in model.parameters() if p.dim() == 1]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": DECAY}, {"params": rest, "weight_decay": 0.0}], lr=PEAK)
    schedule = get_linear_schedule_with_warmup(optimizer, WARM_UP, UPDATES)
    worst = 0.0
    for part, target, our_loss in zip(parts, targets, ours, strict=True):
        loss = ((rows_of(model, part) - torch.tensor(target)) ** 2).sum() / len(target)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        schedule.step()
        worst = max(worst, abs(our_loss - loss.item()) / loss.item())
    return worst


if __name__ == "__main__":
    main()
