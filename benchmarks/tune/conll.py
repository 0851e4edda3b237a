"""Sentences of (word, tag) as files of `word<TAB>tag`, and their spans."""


def read(path):
    with open(path) as file:
        blocks = file.read().strip("\n").split("\n\n")
    return [[tuple(line.split("\t")) for line in block.split("\n")] for block in blocks]


def write(path, sentences):
    with open(path, "w") as file:
        file.write("\n\n".join("\n".join(f"{word}\t{tag}" for word, tag in sentence) for sentence in sentences) + "\n")


def spans(tags):
    """(first word, one past the last, label)"""
    found, start = set(), None
    for at, tag in enumerate([*tags, "O"]):
        if start is not None and not (tag.startswith("I-") and tag[2:] == tags[start][2:]):
            found.add((start, at, tags[start][2:]))
            start = None
        if tag.startswith("B-") or (tag.startswith("I-") and start is None):
            start = at
    return found
