"""Collapsed transitions and the linear-chain CRF, one sentence at a time.

A forbidden step scores FORBIDDEN instead of -inf: in double precision its exponential is exactly 0 beside any
allowed path, so sums, paths and gradients are those of -inf, without autograd's NaNs.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from .tags import class_of, may_follow, slot_of

FORBIDDEN = -1e9
# Columns of the collapsed table: to O, to the same slot's B, another's B, the same slot's I, another's I.
TO_O, SAME_B, OTHER_B, SAME_I, OTHER_I = range(5)


@dataclass
class Transitions:
    """Expanded to a tag set: start [L], between [L, L] (from, to), end [L]."""

    start: Tensor
    between: Tensor
    end: Tensor


class Collapsed(nn.Module):
    """Scores shared by all tag sets: start [3], between [3, 5], end [3]; rows are from O, B, I."""

    def __init__(self):
        super().__init__()
        self.start = nn.Parameter(torch.randn(3) * 0.5)
        self.between = nn.Parameter(torch.randn(3, 5) * 0.5)
        self.end = nn.Parameter(torch.randn(3) * 0.5)

    def expand(self, tags: list[str]) -> Transitions:
        classes = [class_of(tag) for tag in tags]
        columns = [[_column(i, j) for j in tags] for i in tags]
        return Transitions(
            self.start[classes], self.between[torch.tensor(classes)[:, None], torch.tensor(columns)], self.end[classes]
        )


def _column(before: str, after: str) -> int:
    if after == "O":
        return TO_O
    same = before == "O" or slot_of(before) == slot_of(after)  # From O there is no other slot.
    return {"B": (OTHER_B, SAME_B), "I": (OTHER_I, SAME_I)}[after[0]][same]


def constrain(transitions: Transitions, tags: list[str]) -> Transitions:
    """The same with every step forbidden that strict BIO forbids."""
    legal = lambda previous: torch.tensor([may_follow(tag, previous) for tag in tags])
    return Transitions(
        transitions.start.masked_fill(~legal(None), FORBIDDEN),
        transitions.between.masked_fill(~torch.stack([legal(tag) for tag in tags]), FORBIDDEN),
        transitions.end,
    )


def path_score(emissions: Tensor, t: Transitions, path: list[int]) -> Tensor:
    score = t.start[path[0]] + t.end[path[-1]] + emissions[range(len(path)), path].sum()
    return score + t.between[path[:-1], path[1:]].sum()


def log_partition(emissions: Tensor, t: Transitions) -> Tensor:
    alpha = t.start + emissions[0]
    for row in emissions[1:]:
        alpha = torch.logsumexp(alpha[:, None] + t.between, 0) + row
    return torch.logsumexp(alpha + t.end, 0)


def loss(emissions: Tensor, t: Transitions, gold: list[int]) -> Tensor:
    return log_partition(emissions, t) - path_score(emissions, t, gold)


def viterbi(emissions: Tensor, t: Transitions) -> tuple[list[int], float]:
    """The best path and its score; of equal tags the lower one."""
    emissions, start, between, end = (x.detach().numpy() for x in (emissions, t.start, t.between, t.end))
    best, back = start + emissions[0], []
    for row in emissions[1:]:
        arrivals = best[:, None] + between
        back.append(arrivals.argmax(0))
        best = arrivals.max(0) + row
    path = [int((best + end).argmax())]
    for pointers in reversed(back):
        path.append(int(pointers[path[-1]]))
    return path[::-1], float((best + end).max())


def greedy(emissions: Tensor, tags: list[str]) -> list[int]:
    """Left to right, the best tag that strict BIO allows after the one just chosen."""
    path: list[int] = []
    for row in emissions.detach():
        previous = tags[path[-1]] if path else None
        allowed = torch.tensor([may_follow(tag, previous) for tag in tags])
        path.append(int(row.masked_fill(~allowed, -torch.inf).argmax()))
    return path
