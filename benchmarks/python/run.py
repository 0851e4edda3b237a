#!/usr/bin/env python3
"""The Python package against the command and against PyTorch, interleaved. Prints Markdown.

    python benchmarks/python/run.py [--n 10000] [--rounds 5] [--threads 1] [--core 1] [--pytorch MODEL_DIR]

Needs the wheel in the Python that runs this; `--pytorch` also torch, transformers and tokenizers in the same process. The sentences are made here.
Rate of `tag`: one process each, which has tagged 100 sentences before the clock starts, so that loading and import stand in rows of
their own. The command is the one of the wheel. A ratio is the median over rounds, each of which runs every side once, in turn.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import ROOT, commit, processor  # noqa: E402

sys.path.insert(0, str(ROOT / "crates/fewtag-py/tests"))
from conftest import EXAMPLES, sentences  # noqa: E402

import fewtag  # noqa: E402


def python_seconds(music: fewtag.Domain, texts: list[str]) -> float:
    start = time.perf_counter()
    n = sum(1 for _ in music.tag(texts))
    assert n == len(texts)
    return time.perf_counter() - start


def arrow_seconds(music: fewtag.Domain, texts: list[str]) -> float:
    import pyarrow

    column = pyarrow.array(texts)
    start = time.perf_counter()
    assert len(music.tag_arrow(column)) == len(texts)
    return time.perf_counter() - start


class Command:
    """`fewtag tag`, running and warm."""

    def __init__(self, domain: Path, environment: dict):
        program = Path(sys.executable).parent / "fewtag"
        command = [str(program), "tag", "--domain", str(domain), "--format", "jsonl"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        self.seconds(sentences(100))

    def seconds(self, texts: list[str]) -> float:
        import threading

        data = "".join(text + "\n" for text in texts).encode()
        start = time.perf_counter()
        writer = threading.Thread(target=lambda: (self.process.stdin.write(data), self.process.stdin.flush()))
        writer.start()
        for _ in texts:
            self.process.stdout.readline()
        writer.join()
        return time.perf_counter() - start


def pytorch(model: Path, threads: int):
    """A plain implementation over the same encoder: separate context, padded batches of 64, nearest prototype. In this process."""
    import torch
    from safetensors.torch import load_file
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    torch.set_num_threads(threads)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_file=str(model / "tokenizer.json"), pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]", unk_token="[UNK]"
    )
    encoder = BertModel(BertConfig.from_json_file(model / "config.json"), add_pooling_layer=False)
    # Only speed is compared: the values of the weights do not matter to it, and ours are stored as int8.
    encoder.eval()

    @torch.inference_mode()
    def vectors(texts: list[str]):
        batch = tokenizer(texts, padding=True, truncation=True, max_length=512, return_tensors="pt")
        return encoder(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).last_hidden_state

    prototypes = torch.randn(11, encoder.config.hidden_size)

    def seconds(texts: list[str]) -> float:
        start = time.perf_counter()
        for i in range(0, len(texts), 64):
            (vectors(texts[i : i + 64]) @ prototypes.T).argmax(-1).tolist()
        return time.perf_counter() - start

    return seconds


def started(code: str, environment: dict) -> float:
    program = f"import time; start = time.perf_counter()\n{code}\nprint(time.perf_counter() - start)"
    return float(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--core", type=int, help="run everything on this core")
    parser.add_argument("--pytorch", type=Path, metavar="MODEL_DIR")
    args = parser.parse_args()
    if args.core is not None:
        os.sched_setaffinity(0, {args.core})
    environment = {**os.environ, "RAYON_NUM_THREADS": str(args.threads)}
    fewtag.set_threads(args.threads)
    music, texts = fewtag.adapt(EXAMPLES), sentences(args.n)
    list(music.tag(texts[:100]))
    with tempfile.TemporaryDirectory() as directory:
        music.save(f"{directory}/music.fewtag")
        command = Command(Path(directory) / "music.fewtag", environment)
        sides = {"command": command.seconds, "tag": lambda t: python_seconds(music, t), "tag_arrow": lambda t: arrow_seconds(music, t)}
        if args.pytorch:
            sides["PyTorch"] = pytorch(args.pytorch, args.threads)
        rounds = []
        for i in range(args.rounds):
            names = list(sides) if i % 2 == 0 else list(reversed(sides))
            rounds.append({name: sides[name](texts) for name in names})
            print(json.dumps(rounds[-1]), file=sys.stderr)
        command.process.stdin.close()
    print(f"# {time.strftime('%Y-%m-%d')}, {processor()}, {args.threads} thread(s), commit {commit()}\n")
    print(f"{args.n:,} sentences of 5 to 12 words, {len(EXAMPLES)} examples, {args.rounds} rounds.\n")
    print("| side | sentences a second | rate beside the command |\n|---|---:|---:|")
    for name in sides:
        rate = median(args.n / of[name] for of in rounds)
        ratio = median(of["command"] / of[name] for of in rounds)
        print(f"| {name} | {rate:.0f} | {ratio:.2f} |")
    imports = median(started("import fewtag", environment) for _ in range(7))
    first = "import fewtag\nfewtag.adapt(['play [nina simone](artist)'])('put on some miles davis')"
    print(f"| `import fewtag` | {1e3 * imports:.0f} ms | |")
    print(f"| import, learn, first answer | {1e3 * median(started(first, environment) for _ in range(7)):.0f} ms | |")


if __name__ == "__main__":
    main()
