"""What tests share: domains, and many sentences made here."""

import many_rows
import pytest

import fewtag

EXAMPLES = [
    "play [nina simone](artist)",
    "i want to hear [blue in green](track) [tonight](time)",
    "put on some [jazz](genre) by [miles davis](artist)",
    "add [ella fitzgerald](artist) to my [sunday morning](playlist) list",
    "start my [road trip](playlist) list at [noon](time)",
]
_WHO = ["billie holiday", "john coltrane", "Björk", "the beatles", "duke ellington", "大貫妙子", "sade"]
_WHAT = ["play {}", "could you play some {} this evening", "add {} to my party list", "I'd like {} — now!", "{} 🎷 please"]


def sentences(n: int) -> list[str]:
    """So many sentences, all different."""
    return [_WHAT[i % len(_WHAT)].format(_WHO[i // len(_WHAT) % len(_WHO)]) + f" number {i}" for i in range(n)]


@pytest.fixture(scope="session")
def music() -> fewtag.Domain:
    return fewtag.adapt(EXAMPLES)


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory):
    return many_rows.tiny_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session")
def tiny(tiny_model) -> fewtag.Domain:
    """A domain of a tiny model."""
    return fewtag.adapt(many_rows.EXAMPLES, model=tiny_model)


@pytest.fixture(scope="session")
def given() -> list[many_rows.Row]:
    """The rows that engines are given."""
    return many_rows.rows(many_rows.N)


@pytest.fixture(scope="session")
def wanted(tiny, given) -> bytes:
    """What one process answers for them."""
    lines = many_rows.expected(tiny, given)
    assert lines.count(b'"label"') > many_rows.N / 2 and all(lines.count(f'"label": "{label}"'.encode()) > 100 for label in tiny.labels)
    return lines
