#!/usr/bin/env python3
"""Lays the public corpora that our configs and results speak of out under `data/`, which git ignores.

    python3 scripts/fetch_data.py                     # downloads what has an address: the paper's episodes, Snips, WNUT 17
    python3 scripts/fetch_data.py --from DIR          # takes all that is in a directory laid out alike
    python3 scripts/fetch_data.py --list              # what there is, with licences and homes

`scripts/corpora.tsv` lists every file with its licence, its home and the SHA-256 of the file as we use it: a word and its
BIO tag a line, a blank line between sentences; or the authors' episode JSON. What comes out is compared with that checksum, so
that a download that changed, or that is converted in another way, is not taken for the corpus. Corpora without an address
here must be given with `--from`: their homes change, or cut sentences into words differently. No corpus is part of fewtag;
each has the licence of its home.
"""

import argparse
import csv
import hashlib
import io
import sys
import urllib.request
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EPISODES = "https://atmahou.github.io/attachments/ACL2020data.zip"
SNIPS = "https://raw.githubusercontent.com/MiuLab/SlotGated-SLU/master/data/snips"
WNUT17 = "https://raw.githubusercontent.com/leondz/emerging_entities_17/master"
INTENTS = {
    "AddToPlaylist": "playlist",
    "BookRestaurant": "restaurant",
    "GetWeather": "weather",
    "PlayMusic": "music",
    "RateBook": "book",
    "SearchCreativeWork": "creativework",
    "SearchScreeningEvent": "searchscreen",
}


@dataclass
class Entry:
    """A line of `corpora.tsv`."""

    file: str
    sha256: str
    licence: str
    home: str


def entries() -> list[Entry]:
    with (ROOT / "scripts/corpora.tsv").open(encoding="utf-8") as lines:
        return [Entry(**row) for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)]


def get(address: str) -> bytes:
    print(f"downloading {address}", file=sys.stderr)
    with urllib.request.urlopen(address, timeout=60) as answer:
        return answer.read()


def episodes() -> Iterator[tuple[str, bytes]]:
    """The authors' files are used as they are."""
    names = {Path(entry.file).name: entry.file for entry in entries() if entry.file.startswith("episodes/")}
    with zipfile.ZipFile(io.BytesIO(get(EPISODES))) as archive:
        for member in archive.namelist():
            if (name := Path(member).name) in names and "__MACOSX" not in member:
                yield names[name], archive.read(member)


def snips() -> Iterator[tuple[str, bytes]]:
    """Words, tags and intents lie in three files; an intent is a domain, and the three parts of the corpus are one."""
    domains: dict[str, list[str]] = {name: [] for name in INTENTS.values()}
    for part in ("train", "valid", "test"):
        files = [get(f"{SNIPS}/{part}/{name}").decode().splitlines() for name in ("seq.in", "seq.out", "label")]
        for words, tags, intent in zip(*files, strict=True):
            pairs = zip(words.split(), tags.split(), strict=True)
            domains[INTENTS[intent.strip()]].append("".join(f"{word}\t{tag}\n" for word, tag in pairs))
    for name, sentences in domains.items():
        yield f"snips/{name}.conll", "\n".join(sentences).encode()


def wnut17() -> Iterator[tuple[str, bytes]]:
    """Columns already; blank lines may hold blanks."""
    sentences: list[list[str]] = [[]]
    for name in ("wnut17train.conll", "emerging.dev.conll", "emerging.test.annotated"):
        for line in [*get(f"{WNUT17}/{name}").decode().split("\n"), ""]:
            if line.strip():
                sentences[-1].append("\t".join(line.strip().split("\t")) + "\n")
            elif sentences[-1]:
                sentences.append([])
    yield "ner/wnut17.conll", "\n".join("".join(sentence) for sentence in sentences if sentence).encode()


DOWNLOADS = {"episodes": episodes, "snips": snips, "wnut17": wnut17}


def lay_out(entry: Entry, content: bytes, out: Path) -> str | None:
    """Writes a file if it is the expected one; says what is wrong otherwise."""
    # The last sentence of a file may or may not be closed by a blank line.
    for candidate in (content, content + b"\n"):
        if hashlib.sha256(candidate).hexdigest() == entry.sha256:
            path = out / entry.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(candidate)
            return None
    return f"{entry.file}: not the expected content; its home is {entry.home}"


def from_directory(source: Path, out: Path) -> list[str]:
    problems = []
    for entry in entries():
        if not (source / entry.file).is_file():
            problems.append(f"{entry.file}: not in {source}; its home is {entry.home}")
        elif problem := lay_out(entry, (source / entry.file).read_bytes(), out):
            problems.append(problem)
    return problems


def from_homes(names: list[str], out: Path) -> list[str]:
    known = {entry.file: entry for entry in entries()}
    problems = []
    for name in names:
        try:
            problems += [problem for file, content in DOWNLOADS[name]() if (problem := lay_out(known[file], content, out))]
        except OSError as error:
            problems.append(f"{name}: cannot be downloaded: {error}")
    return problems


def readme(out: Path) -> tuple[str, int]:
    """A page about what is there."""
    here = [entry for entry in entries() if (out / entry.file).is_file()]
    lines = ["# Corpora", "", "Not part of fewtag: each has the licence of its home.", "", "| file | licence | home |", "|---|---|---|"]
    lines += [f"| `{entry.file}` | {entry.licence} | {entry.home} |" for entry in here]
    return "\n".join(lines) + "\n", len(here)


def main() -> int:
    parser = argparse.ArgumentParser(description="Lay the public corpora out under `data/`.")
    parser.add_argument("names", nargs="*", choices=[*DOWNLOADS, []], help="what to download; all of these unless given")
    parser.add_argument("--from", dest="source", type=Path, metavar="DIR", help="take the files of this directory")
    parser.add_argument("--out", type=Path, default=ROOT / "data")
    parser.add_argument("--list", action="store_true", help="only list the files")
    arguments = parser.parse_args()
    if arguments.list:
        for entry in entries():
            print(entry.file, entry.licence, entry.home, sep="\t")
        return 0
    if arguments.source:
        problems = from_directory(arguments.source, arguments.out)
    else:
        problems = from_homes(arguments.names or list(DOWNLOADS), arguments.out)
    page, n = readme(arguments.out)
    if n:
        (arguments.out / "README.md").write_text(page, encoding="utf-8")
    print("\n".join([*problems, f"{n} of {len(entries())} files in {arguments.out}, their licences in its README.md"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
