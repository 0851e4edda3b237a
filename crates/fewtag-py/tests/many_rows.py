"""What the tests on Spark and Ray share: many rows, what one process answers for them, and who is at work on them.

The model is a tiny one, so that 100,000 rows take seconds and many of them are under way at any moment. What is tested is what becomes of
rows, and that is the same for every model. No two texts are alike, so that no row can pass for another.
"""

import json
import os
import pathlib
import random
import subprocess
import sys
from collections.abc import Iterable, Iterator

import fewtag

N = int(os.environ.get("FEWTAG_ENGINE_ROWS", "100000"))
#: With so many labels the tiny model finds spans in most rows.
EXAMPLES = [
    "play [jazz](genre) [mary](artist)",
    "[queen](artist) to [party](playlist)",
    "[pop](genre) [tonight](time)",
    "[rock](genre) [john](artist) [best list](playlist) [next week](time)",
]
#: Words of the tiny encoder, words that it knows by their letters only, and characters that take several bytes.
_WORDS = "play add some jazz pop rock by john mary queen to my best party list tonight next week Björk 大貫妙子 🎷 sade".split()

Row = tuple[int, str | None]


def tiny_model(directory: pathlib.Path) -> pathlib.Path:
    """A model with the scorer of the built-in one, trained for a moment."""
    testdata = pathlib.Path(__file__).parents[3] / "testdata"
    (directory / "train.toml").write_text(
        f"encoder = '{testdata}/tiny-encoder'\n"
        f"data.train = ['{testdata}/tiny-episodes.json']\n"
        "optimizer = { updates = 30, batch = 4, encoder_rate = 1e-3, head_rate = 1e-2 }\n"
        "[model]\ncontext = 'separate'\nscorer = 'fitted'\nsimilarity = 'projection'\nlabel_names = 0.5\n"
        "scale = 1.0\nconstrained = true\nlegal_loss = true\nborrow = true\n"
    )
    program = str(pathlib.Path(sys.executable).parent / "fewtag")
    command = [program, "train", "--config", str(directory / "train.toml"), "--out", str(directory / "model")]
    subprocess.run(command, check=True, capture_output=True)
    return directory / "model"


def rows(n: int) -> list[Row]:
    """Row number and text. A few are missing, a few blank, and one is too long to be tagged."""
    draw = random.Random(17)
    texts: list[str | None] = [f"{' '.join(draw.choices(_WORDS, k=draw.randint(2, 8)))} {i}" for i in range(n)]
    texts[3::97] = [None] * len(texts[3::97])
    texts[5::1001] = [" "] * len(texts[5::1001])
    texts[n // 2] = "play jazz " * 2**17
    return list(enumerate(texts))


def lines(rows: Iterable[tuple[int, str | None, object, str | None]]) -> bytes:
    """Rows with their spans and errors as bytes: a number has one way of being written, so equal bytes are equal bits."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def expected(domain: fewtag.Domain, given: list[Row]) -> bytes:
    """What one process answers, not by way of Arrow."""
    answers = domain.tag([text for _, text in given], on_error="none")
    return lines((i, text, found and found.to_dict()["spans"], _error(domain, text, found)) for (i, text), found in zip(given, answers))


def _error(domain: fewtag.Domain, text: str | None, found: fewtag.Answer | None) -> str | None:
    if text is None or found is not None:
        return None
    try:
        domain(text)
    except fewtag.TextError as error:
        return str(error)
    raise AssertionError("a text without an answer is refused")


def check_same(found: bytes, wanted: bytes) -> None:
    """Fails with the first line that differs, not with megabytes."""
    if found != wanted:
        ours, theirs = wanted.splitlines(), found.splitlines()
        at = next((i for i, pair in enumerate(zip(ours, theirs)) if pair[0] != pair[1]), min(len(ours), len(theirs)))
        raise AssertionError(f"{len(theirs)} lines for {len(ours)}, from line {at} on: {theirs[at : at + 1]} for {ours[at : at + 1]}")


def working() -> Iterator[int]:
    """The processes that this one started, or they in turn, in which a thread of fewtag is computing."""
    for entry in os.listdir("/proc"):
        try:
            if not entry.isdigit() or not _is_below(int(entry)):
                continue
            for thread in os.listdir(f"/proc/{entry}/task"):
                name, state = pathlib.Path(f"/proc/{entry}/task/{thread}/stat").read_text().rsplit(")", 1)
                if "(fewtag-" in name and state.split()[0] == "R":
                    yield int(entry)
                    break
        except (FileNotFoundError, ProcessLookupError):
            continue


def _is_below(pid: int) -> bool:
    """Whether a process descends from this one: another's must never be killed."""
    while pid > 1:
        pid = parent(pid)
        if pid == os.getpid():
            return True
    return False


def parent(pid: int) -> int:
    """The process that started another."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("PPid:"))
