"""What tests share: a domain, and many sentences made here."""

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
