"""The peers of the encoder benchmark, each a process that reads commands on standard input.

    python peers.py torch      CONFIG.json THREADS
    python peers.py torch-int8 CONFIG.json THREADS     linear layers quantised dynamically
    python peers.py onnx       CONFIG.json THREADS
    python peers.py onnx-int8  CONFIG.json THREADS     matrices quantised dynamically, per channel

Commands and answers, one line each, are those of `crates/fewtag/examples/encoder_worker/main.rs`:

    batch FILE   sets the batch: [{"ids": [...], "segments": [...]}, ...]     -> ok
    forward      one forward pass without gradients                           -> seconds
    each         the same, one sequence after the other and so without padding -> seconds
    train        one training step: forward with dropout, backward, clipping, AdamW  -> seconds
    memory       the largest resident memory so far                           -> bytes

Both peers get the batch as they want it: padded to its longest sequence, without a mask if no padding is needed.
"""

import json
import pathlib
import sys
import tempfile
import time

import torch
from transformers import BertConfig, BertModel


def peak_memory():
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("no VmHWM in /proc/self/status")


def padded(batch):
    """ids, mask, segments: [n_sequences, longest]."""
    longest = max(len(sequence["ids"]) for sequence in batch)
    pad = lambda values: values + [0] * (longest - len(values))
    ids = torch.tensor([pad(sequence["ids"]) for sequence in batch])
    mask = torch.tensor([pad([1] * len(sequence["ids"])) for sequence in batch])
    segments = torch.tensor([pad(sequence["segments"]) for sequence in batch])
    return ids, mask, segments


class Torch:
    """PyTorch with its scaled-dot-product attention and fused AdamW, dropout 0.1 in training."""

    def __init__(self, config, threads):
        torch.manual_seed(0)
        torch.set_num_threads(threads)
        config = BertConfig.from_json_file(config)
        config._attn_implementation = "sdpa"
        self.model = BertModel(config, add_pooling_layer=False)
        self.optimizer = None

    def batch(self, batch):
        ids, mask, segments = padded(batch)
        self.inputs = {"input_ids": ids, "token_type_ids": segments}
        if not mask.all():
            self.inputs["attention_mask"] = mask
        generator = torch.Generator().manual_seed(1)
        rows = torch.randn(*ids.shape, self.model.config.hidden_size, generator=generator)
        self.gradient_rows = rows * mask[..., None]

    def batch_each(self, batch):
        self.alone = [dict(zip(["input_ids", "attention_mask", "token_type_ids"], padded([one]))) for one in batch]
        for one in self.alone:
            del one["attention_mask"]

    def forward(self):
        self.model.eval()
        with torch.inference_mode():
            self.model(**self.inputs)

    def each(self):
        self.model.eval()
        with torch.inference_mode():
            for one in self.alone:
                self.model(**one)

    def train(self):
        if self.optimizer is None:
            self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-5, weight_decay=0.01, fused=True)
        self.model.train()
        self.optimizer.zero_grad()
        self.model(**self.inputs).last_hidden_state.backward(self.gradient_rows)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()


class TorchInt8(Torch):
    """PyTorch with its dynamic quantisation of linear layers."""

    def __init__(self, config, threads):
        super().__init__(config, threads)
        self.model = torch.ao.quantization.quantize_dynamic(self.model.eval(), {torch.nn.Linear}, dtype=torch.qint8)


class Onnx:
    """ONNX Runtime in fp32 on the graph that its own BERT optimiser fuses."""

    quantised = False

    def __init__(self, config, threads):
        import onnxruntime
        from onnxruntime.transformers import optimizer

        config = BertConfig.from_json_file(config)
        config._attn_implementation = "eager"
        names = ["input_ids", "attention_mask", "token_type_ids"]
        axes = {name: {0: "sequence", 1: "piece"} for name in [*names, "hidden"]}
        example = torch.ones(2, 8, dtype=torch.long)
        with tempfile.TemporaryDirectory() as scratch:
            exported, fused = f"{scratch}/exported.onnx", f"{scratch}/fused.onnx"
            torch.onnx.export(Exported(BertModel(config, add_pooling_layer=False)).eval(), (example,) * 3, exported,
                              input_names=names, output_names=["hidden"], dynamic_axes=axes, dynamo=False,
                              opset_version=17)
            optimizer.optimize_model(exported, model_type="bert", num_heads=config.num_attention_heads,
                                     hidden_size=config.hidden_size).save_model_to_file(fused)
            if self.quantised:
                fused = self.in_bytes(fused, f"{scratch}/int8.onnx")
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = threads
            self.session = onnxruntime.InferenceSession(fused, options, providers=["CPUExecutionProvider"])

    @staticmethod
    def in_bytes(model, path):
        import onnx
        from onnxruntime.quantization import QuantType, quantize_dynamic

        # The fused operators have no shape inference of their own.
        options = {"DefaultTensorType": onnx.TensorProto.FLOAT}
        quantize_dynamic(model, path, per_channel=True, weight_type=QuantType.QInt8, extra_options=options)
        return path

    def batch(self, batch):
        self.inputs = self.named(batch)

    def batch_each(self, batch):
        self.alone = [self.named([one]) for one in batch]

    def named(self, batch):
        names = ["input_ids", "attention_mask", "token_type_ids"]
        return {name: tensor.numpy() for name, tensor in zip(names, padded(batch))}

    def forward(self):
        self.session.run(None, self.inputs)

    def each(self):
        for one in self.alone:
            self.session.run(None, one)


class OnnxInt8(Onnx):
    """ONNX Runtime with its dynamic quantisation, per channel."""

    quantised = True


class Exported(torch.nn.Module):
    """Makes the mask by hand: the tracing exporter gets the library's own one wrong."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids, mask, segments):
        bias = (1.0 - mask[:, None, None, :].float()) * -1e9
        return self.model(input_ids=ids, attention_mask=bias, token_type_ids=segments).last_hidden_state


def main():
    kind, config, threads = sys.argv[1:]
    # The answers must be the only lines on standard output.
    answers, sys.stdout = sys.stdout, sys.stderr
    peers = {"torch": Torch, "torch-int8": TorchInt8, "onnx": Onnx, "onnx-int8": OnnxInt8}
    peer = peers[kind](config, int(threads))
    for line in sys.stdin:
        command, _, argument = line.strip().partition(" ")
        if command == "batch":
            batch = json.loads(pathlib.Path(argument).read_text())
            peer.batch(batch)
            peer.batch_each(batch)
            answer = "ok"
        elif command == "memory":
            answer = peak_memory()
        else:
            start = time.perf_counter()
            getattr(peer, command)()
            answer = time.perf_counter() - start
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
