"""Emission scores: how well every query word fits every tag.

A *pair* is (Q, K): a query's word vectors [n, d] and the vectors [m, d] of the support words it is compared with.
Paired context has one pair per support sentence; separate context has a single pair whose K holds all support words.
`members` has one 0/1 matrix [m, L] per pair: which tag each support word wears.
"""

import torch
from torch import Tensor

SCORERS = ("mn", "nmn", "prototype", "nearest", "soft", "mixed", "fitted")
SIMILARITIES = ("dot", "cosine", "squared_distance", "projection")


def similarity(kind: str, q: Tensor, c: Tensor) -> Tensor:
    """sim(q_j, c_k) for all rows: [n, d] × [m, d] → [n, m]."""
    dot = q @ c.T
    match kind:
        case "dot":
            return dot
        case "cosine":
            return dot / (q.norm(dim=1)[:, None] * c.norm(dim=1))
        case "squared_distance":
            return -(q[:, None] - c).square().sum(2)
        case "projection":
            length = c.norm(dim=1)
            return dot / length - length / 2


def mixed(kind: str, query: Tensor, words: Tensor, name: Tensor | None, mix: dict[str, Tensor], near_worth: float) -> Tensor:
    """One tag: a prototype that attends to the query and the nearest words, whose share is multiplied by `near_worth`, [n]. `mix`
    holds logarithms, and a logit."""
    vectors, weights = words, torch.zeros(len(words), dtype=words.dtype)
    if name is not None:
        vectors, weights = torch.cat([words, name[None]]), torch.cat([weights, mix["name"][None]])
    dots, cosines = query @ vectors.T, similarity("cosine", query, vectors)
    attention = torch.softmax(mix["attention"].exp() * dots + weights, 1)
    prototypes = attention @ vectors
    near = torch.softmax(mix["sharpness"].exp() * cosines + weights, 1)
    gate = near_worth * torch.sigmoid(mix["gate"])
    prototype = torch.stack([similarity(kind, q[None], c[None])[0, 0] for q, c in zip(query, prototypes)])
    return (1 - gate) * prototype + gate * mix["nearness"].exp() * (near * cosines).sum(1)


def regression(query: Tensor, tags: list[tuple[Tensor, Tensor | None]], mix: dict[str, Tensor], columns: Tensor) -> Tensor:
    """[n, L]: weighted ridge regression from vectors to tags. `tags` has the words [m, d] and the name of every tag, `columns`
    what each of the d numbers is worth."""
    vectors, weights, targets = [], [], []
    for t, (words, name) in enumerate(tags):
        counts = torch.ones(len(words), dtype=query.dtype)
        if name is not None:
            words, counts = torch.cat([words, name[None]]), torch.cat([counts, mix["name"].exp()[None]])
        vectors.append(words)
        weights.append(counts / counts.sum().sqrt())
        targets.append(torch.nn.functional.one_hot(torch.full((len(words),), t), len(tags)).to(query.dtype))
    x, w, y = torch.cat(vectors) * columns, torch.cat(weights), torch.cat(targets)
    s = mix["ridge"].exp() * torch.eye(x.shape[1], dtype=x.dtype) + (x * w[:, None]).T @ x
    return query * columns @ torch.linalg.solve(s, (x * w[:, None]).T @ y)


def siblings(scores: Tensor, share: float, tag_set: list[str]) -> Tensor:
    """Every column with `share` of that of the other tag of its slot."""
    others = [{"B": "I", "I": "B", "O": ""}[tag[0]] + tag[1:] for tag in tag_set]
    zero = torch.zeros_like(scores[:, 0])
    return scores + share * torch.stack([scores[:, tag_set.index(o)] if o in tag_set else zero for o in others], 1)


def emissions(
    scorer: str,
    kind: str,
    pairs: list[tuple[Tensor, Tensor]],
    members: list[Tensor],
    names: tuple[float, Tensor] | None = None,
    mix: dict[str, Tensor] | None = None,
    share: tuple[float, list[str]] | None = None,
    lexical: bool = False,
    middle: tuple[int, float] = (0, 0.0),
    near_worth: float = 1.0,
) -> Tensor:
    """[n, L]. `names` = (weight, label-name vectors [L, d]) is mixed into prototypes; `mix` is what `mixed` and `fitted` learn.

    `share` = (σ, tags) lets the regression of `fitted` speak for the other tag of a slot; if `lexical`, only it sees the
    last part of every vector, and with `middle` = (number of layers, worth) that number of parts between. The share of the
    nearest words is multiplied by `near_worth`.
    """
    if scorer in ("mixed", "fitted"):
        query = torch.stack([q for q, _ in pairs]).mean(0)
        words, columns = torch.cat([k for _, k in pairs]), torch.cat(members).T
        name = lambda t: None if names is None else names[1][t]
        tags = [(words[c > 0], name(t)) for t, c in enumerate(columns)]
        width = query.shape[1] // (1 + middle[0] + lexical)
        first = lambda x: None if x is None else x[..., :width]
        near = mix, near_worth
        scores = torch.stack([mixed(kind, first(query), first(words), first(name), *near) for words, name in tags], 1)
        if scorer == "mixed":
            return scores
        columns = torch.ones(query.shape[1], dtype=query.dtype)
        columns[width : width * (1 + middle[0])] = middle[1]
        fitted = regression(query, tags, mix, columns)
        return scores + mix["regression"].exp() * (siblings(fitted, *share) if share else fitted)
    counts = sum(m.sum(0) for m in members)
    if scorer == "prototype":
        prototypes = sum(m.T @ k for (_, k), m in zip(pairs, members)) / counts[:, None]
        if names is not None:
            prototypes = (1 - names[0]) * prototypes + names[0] * names[1]
        query = torch.stack([q for q, _ in pairs]).mean(0)
        return similarity(kind, query, prototypes)
    if scorer in ("nearest", "soft"):
        scores = torch.cat([similarity(kind, q, k) for q, k in pairs], 1)  # [n, all support words]
        fold = (lambda x: x.amax(1)) if scorer == "nearest" else (lambda x: x.exp().mean(1).log())
        return torch.stack([fold(scores[:, column > 0]) for column in torch.cat(members).T], 1)
    total = sum(similarity(kind, q, k) @ m for (q, k), m in zip(pairs, members))
    return total / counts if scorer == "nmn" else total


def membership(tags: list[str], tag_set: list[str], dtype: torch.dtype, borrow: bool = False) -> Tensor:
    """[m, L]. With `borrow`, B words also count for an I that no word of `tags` wears: pass all support tags at once."""
    rows = [[float(tag == t) for t in tag_set] for tag in tags]
    if borrow:
        for column, t in enumerate(tag_set):
            if t[0] == "I" and t not in tags:
                for row, tag in zip(rows, tags):
                    row[column] = float(tag == "B" + t[1:])
    return torch.tensor(rows, dtype=dtype)
