"""BIO tags, the tag set of a support set, and the words that name a tag."""

import re

CLASSES = ("O", "B", "I")


def class_of(tag: str) -> int:
    """0, 1, 2 for O, B, I."""
    return CLASSES.index(tag[0])


def slot_of(tag: str) -> str | None:
    """What follows the first hyphen; slots may contain hyphens themselves."""
    return None if tag == "O" else tag.split("-", 1)[1]


def tag_set(support_tags: list[list[str]], borrow: bool = False) -> list[str]:
    """`O` plus the tags of the support: slots sorted by name, B before I.

    With `borrow`, a slot that has B but no I gets an I, too.
    """
    seen = {tag for tags in support_tags for tag in tags} - {"O"}
    if borrow:
        seen |= {"I-" + slot_of(tag) for tag in seen}
    return ["O"] + sorted(seen, key=lambda tag: (slot_of(tag), tag[0]))


def may_follow(tag: str, previous: str | None) -> bool:
    """Strict BIO: `I-x` only after `B-x` or `I-x`; `previous` is None at the start of a sentence."""
    return tag[0] != "I" or (previous is not None and slot_of(previous) == slot_of(tag))


def name_words(tag: str) -> list[str]:
    """The phrase that names a tag: `B-timeRange` → begin time Range."""
    if tag == "O":
        return ["ordinary"]
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", re.sub(r"[_\-./]", " ", slot_of(tag)))
    return [{"B": "begin", "I": "inner"}[tag[0]], *spaced.split()]
