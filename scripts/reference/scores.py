"""The two measures of the paper, on spans by conlleval's rules.

Written after the state machine of the official Perl script: `in_tag`, start and end of a chunk decided from two
neighbouring tags, a correct chunk is one whose start, end and type agree.
"""

from statistics import fmean


def spans(tags: list[str]) -> set[tuple[int, int, str]]:
    """(first word, one past the last, slot) of every chunk."""
    found, start = set(), None
    previous = ("O", "")
    for t, tag in enumerate([*tags, "O"]):
        kind, _, slot = tag.partition("-")
        ends = previous[0] != "O" and (kind in ("B", "O") or slot != previous[1])
        starts = kind != "O" and (kind == "B" or previous[0] == "O" or slot != previous[1])
        if ends:
            found.add((start, t, previous[1]))
        if starts:
            start = t
        previous = (kind, slot)
    return found


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _f1(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def episode_scores(gold: list[list[str]], predicted: list[list[str]]) -> tuple[float, float]:
    """(episode F1, sentence-macro F1) of one episode, in percent."""
    pairs = [(spans(g), spans(p)) for g, p in zip(gold, predicted, strict=True)]
    correct, found, real = (sum(x) for x in zip(*((len(g & p), len(p), len(g)) for g, p in pairs)))
    micro = _f1(_ratio(correct, found), _ratio(correct, real))
    precision = fmean(_ratio(len(g & p), len(p)) for g, p in pairs)
    recall = fmean(_ratio(len(g & p), len(g)) for g, p in pairs)
    return 100 * micro, 100 * _f1(precision, recall)
