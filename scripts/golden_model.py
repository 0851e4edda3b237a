#!/usr/bin/env python3
"""Writes the golden files of the CRF, the emission scorers and the whole model with the PyTorch reference.

    python scripts/golden_model.py [ENCODER_DIRECTORY [EPISODE_FILE]]

Everything is computed in double precision from seeded numbers. Origin: crates/fewtag/tests/golden/model.origin.md.
"""

import datetime
import hashlib
import itertools
import json
import platform
import sys
from dataclasses import asdict
from pathlib import Path

import tokenizers
import torch
import transformers
from torch import Tensor

from reference import crf, episodes
from reference.emission import SCORERS, SIMILARITIES, emissions, membership
from reference.model import Settings, Tagger
from reference.tags import may_follow, name_words, tag_set
from reference.train import Batch, Optimisation, batch_loss, train

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "crates/fewtag/tests/golden"
CONTEXTS = ("paired", "separate")
MIX = {"attention": -0.7, "sharpness": 0.9, "nearness": 0.4, "gate": -0.3, "name": 0.5, "regression": 0.6, "ridge": 0.8}  # Logarithms, and a logit.
TAGS = ["O", "B-a", "I-a", "B-b", "B-c", "I-c"]  # `b` has no I, as happens with small supports.


def numbers(x: Tensor | float):
    """Nested lists with nine significant digits (all that `f32` can use); a forbidden score becomes null."""
    if isinstance(x, Tensor):
        x = x.tolist()
    if isinstance(x, list):
        return [numbers(y) for y in x]
    return None if x <= crf.FORBIDDEN / 2 else float(f"{x:.9g}")


def write(name: str, value: list | dict) -> None:
    """One line per case, so that a change shows up as a readable difference."""
    lines = lambda cases: "[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]"
    if isinstance(value, list):
        text = lines(value)
    else:
        field = lambda k, v: f"{json.dumps(k)}: {lines(v) if k == 'cases' else json.dumps(v)}"
        text = "{\n" + ",\n".join(field(k, v) for k, v in value.items()) + "\n}"
    (GOLDEN / name).write_text(text + "\n", encoding="utf-8")
    print(f"{name}: {len(text) / 1024:.0f} KiB")


def write_origin(encoder: Path) -> None:
    digest = hashlib.sha256((encoder / "model.safetensors").read_bytes()).hexdigest()
    (GOLDEN / "model.origin.md").write_text(
        f"""`crf.json`, `transitions.json`, `emission.json` and `model_*.json` are written by `scripts/golden_model.py`
with the PyTorch implementation in `scripts/reference`, never by this crate.

- torch {torch.__version__}, transformers {transformers.__version__}, tokenizers {tokenizers.__version__}, Python {platform.python_version()}
- double precision, one thread, no dropout but in `model_dropout.json`; inputs are exact `f32` numbers; `null` is minus infinity
- encoder: `testdata/tiny-encoder`, sha256 of its weights {digest}
- episodes: `testdata/tiny-episodes.json`
- written on {datetime.date.today()}
""",
        encoding="utf-8",
    )


def normal(*shape: int) -> Tensor:
    """Standard normal numbers that `f32` holds exactly, so that both sides start from the same ones."""
    return torch.randn(*shape, dtype=torch.float32).double()


# The CRF on random numbers.


def crf_case(name: str, scores: Tensor, transitions: crf.Transitions, gold: list[int]) -> dict:
    leaves = [scores, transitions.start, transitions.between, transitions.end]
    for leaf in leaves:
        leaf.requires_grad_()
    loss = crf.loss(scores, transitions, gold)
    log_partition = crf.log_partition(scores, transitions)
    gradients = torch.autograd.grad(loss, leaves)
    (marginals,) = torch.autograd.grad(log_partition, scores)  # ∂ log Z / ∂ emission = p(tag)
    path, best = crf.viterbi(scores, transitions)
    check_by_enumeration(scores, transitions, log_partition, best)
    values = dict(zip(("emissions", "start", "between", "end"), leaves))
    results = dict(log_partition=log_partition, loss=loss, best_score=best, marginals=marginals)
    results |= dict(zip(("d_emissions", "d_start", "d_between", "d_end"), gradients))
    return {"name": name, "gold": gold, "best_path": path} | {
        key: numbers(x.detach() if isinstance(x, Tensor) else x) for key, x in (values | results).items()
    }


def check_by_enumeration(scores: Tensor, transitions: crf.Transitions, log_partition: Tensor, best: float) -> None:
    """The reference is held to the definition, too, wherever all paths can be listed."""
    n_words, n_tags = scores.shape
    if n_tags**n_words <= 10_000:
        paths = itertools.product(range(n_tags), repeat=n_words)
        with torch.no_grad():
            path_scores = torch.stack([crf.path_score(scores, transitions, list(path)) for path in paths])
        torch.testing.assert_close(path_scores.logsumexp(0), log_partition.detach(), rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(path_scores.max(), torch.tensor(best), rtol=1e-12, atol=1e-12)


def crf_cases() -> list[dict]:
    torch.manual_seed(1)
    cases = []
    for n_words, n_tags, size in ((1, 2, 1), (1, 5, 1), (2, 2, 1), (4, 3, 1), (7, 6, 3), (12, 11, 1), (5, 4, 40), (3, 6, 300)):
        random = lambda *shape: normal(*shape) * size
        between = crf.Transitions(random(n_tags), random(n_tags, n_tags), random(n_tags))
        gold = torch.randint(n_tags, (n_words,)).tolist()
        cases.append(crf_case(f"{n_words} words, {n_tags} tags, size {size}", random(n_words, n_tags), between, gold))
    for n_words in (1, 3, 8):
        between = crf.constrain(crf.Transitions(normal(6), normal(6, 6), normal(6)), TAGS)
        cases.append(crf_case(f"strict BIO, {n_words} words", normal(n_words, 6), between, legal_path(n_words)))
    between = crf.Transitions(normal(6), normal(6, 6), normal(6))
    between.end[1], between.between[:, 2] = crf.FORBIDDEN, crf.FORBIDDEN
    scores = normal(5, 6)
    scores[0, 2] = scores[1:, 3] = crf.FORBIDDEN
    cases.append(crf_case("forbidden emissions, end and a whole column", scores, between, [0, 1, 4, 5, 0]))
    nothing = crf.Transitions(torch.zeros(4), torch.zeros(4, 4), torch.zeros(4))
    cases.append(crf_case("all paths equal", torch.zeros(3, 4), nothing, [1, 2, 3]))
    return cases


def legal_path(n_words: int) -> list[int]:
    path: list[int] = []
    for _ in range(n_words):
        allowed = [i for i, tag in enumerate(TAGS) if may_follow(tag, TAGS[path[-1]] if path else None)]
        path.append(allowed[int(torch.randint(len(allowed), ()))])
    return path


def transition_cases() -> list[dict]:
    torch.manual_seed(2)
    cases = []
    for tags in (["O", "B-a"], TAGS, ["O", "I-a", "B-a.b", "B-z-1", "I-z-1"]):
        collapsed = crf.Collapsed().float().double()
        expanded = collapsed.expand(tags)
        above = [normal(*x.shape) for x in (expanded.start, expanded.between, expanded.end)]
        below = torch.autograd.grad([expanded.start, expanded.between, expanded.end], list(collapsed.parameters()), above)
        names = ("start", "between", "end")
        case = {"tags": tags, "collapsed": {k: numbers(p) for k, p in collapsed.named_parameters()}}
        case["expanded"] = {k: numbers(getattr(expanded, k)) for k in names}
        case["above"] = dict(zip(names, map(numbers, above)))
        case["below"] = dict(zip(names, map(numbers, below)))
        cases.append(case)
    return cases


# Emission scorers on random vectors.


def emission_file() -> dict:
    """One set of random vectors [·, 5]; results for every scorer, similarity and context."""
    torch.manual_seed(3)
    sentences = [["O", "B-a", "I-a", "O"], ["B-b", "O", "O"], ["I-c", "B-c", "B-a", "I-a", "I-c", "B-c"]]
    n_words, width = 3, 5
    queries = normal(len(sentences), n_words, width)
    keys = [normal(len(tags), width) for tags in sentences]
    names = normal(len(TAGS), width)
    above = normal(n_words, len(TAGS))
    cases = [
        emission_case(context, scorer, kind, weight, sentences, queries, keys, names, above)
        for context, scorer, kind in itertools.product(CONTEXTS, SCORERS, SIMILARITIES)
        for weight in ((0.0, 0.5) if scorer in ("prototype", "mixed", "fitted") else (0.0,))
    ]
    cases += [
        emission_case(context, "fitted", "projection", weight, sentences, queries, keys, names, above, 0.4)
        for context, weight in itertools.product(CONTEXTS, (0.0, 0.5))
    ]
    cases += [
        emission_case(context, scorer, "projection", 0.5, sentences, queries, keys, names, above, fade=0.7)
        for context, scorer in itertools.product(CONTEXTS, ("mixed", "fitted"))
    ]
    vectors = {"queries": numbers(queries), "keys": [numbers(k) for k in keys], "names": numbers(names)}
    return {"tags": TAGS, "support": sentences} | vectors | {"above": numbers(above), "mix": MIX, "cases": cases}


def emission_case(context, scorer, kind, weight, sentences, queries, keys, names, above, share=0.0, fade=0.0) -> dict:
    """`d_*`: the gradient of Σ above · emissions. Separate context reads the query once: the first of `queries`."""
    leaves = [x.clone().requires_grad_() for x in [queries, names, *keys]]
    q, c, k = leaves[0], leaves[1], leaves[2:]
    members = [membership(tags, TAGS, torch.float64) for tags in sentences]
    pairs = list(zip(q, k)) if context == "paired" else [(q[0], torch.cat(k))]
    members = members if context == "paired" else [torch.cat(members)]
    mix = {name: torch.tensor(value, dtype=torch.float64, requires_grad=True) for name, value in MIX.items()}
    begins = lambda tags: sum(tag[0] == "B" for tag in tags)
    examples = sum(map(begins, sentences)) / begins(TAGS)  # per label
    others = {"share": (share, TAGS) if share else None, "near_worth": examples**-fade}
    scores = emissions(scorer, kind, pairs, members, (weight, c) if weight else None, mix, **others)
    below = torch.autograd.grad((scores * above).sum(), leaves + list(mix.values()), materialize_grads=True)
    below, d_mix = below[: len(leaves)], below[len(leaves) :]
    case = {"context": context, "scorer": scorer, "similarity": kind, "label_names": weight}
    case |= ({"siblings": share} if share else {}) | ({"fade": fade} if fade else {})
    case |= {"emissions": numbers(scores), "d_queries": numbers(below[0] if context == "paired" else below[0][:1])}
    case |= {"d_keys": [numbers(x) for x in below[2:]], "d_names": numbers(below[1]) if weight else None}
    return case | ({"d_mix": dict(zip(MIX, map(numbers, d_mix)))} if scorer in ("mixed", "fitted") else {})


# The whole model on the tiny encoder.


def seeded_tagger(encoder: Path, settings: Settings, scale: float, dropout: float = 0.0) -> Tagger:
    """Encoder as stored, transitions from a seed; in evaluation mode."""
    torch.set_default_dtype(torch.float32)  # Transitions are f32 numbers, so that every side starts from the same ones.
    torch.manual_seed(4)
    tagger = Tagger(encoder, settings, scale, dropout).double().eval()
    torch.set_default_dtype(torch.float64)
    return tagger


def head(tagger: Tagger, of=lambda parameter: parameter) -> dict:
    """λ, the collapsed transitions and the mix, or what `of` makes of them."""
    transitions = {name: numbers(of(p)) for name, p in tagger.transitions.named_parameters()}
    mix = {name: numbers(of(p)) for name, p in tagger.mix.items()}
    return {"scale": numbers(of(tagger.scale)), "transitions": transitions, "mix": mix}


def model_file(encoder: Path, read: list[episodes.Episode]) -> dict:
    """Emissions and tags of all episodes' queries, for every context, scorer and similarity."""
    cases = []
    for context, scorer, kind in itertools.product(CONTEXTS, SCORERS, SIMILARITIES):
        cases.append(answers(encoder, read, Settings(context, scorer, kind)))
    for context, transitions in itertools.product(CONTEXTS, ("rule", "none")):
        cases.append(answers(encoder, read, Settings(context, transitions=transitions)))
        cases.append(answers(encoder, read, Settings(context, "prototype", "projection", 0.5, transitions)))
    for context in CONTEXTS:
        cases.append(answers(encoder, read, Settings(context, "prototype", "projection", 0.5, constrained=True)))
        cases.append(answers(encoder, read, Settings(context, "nmn", "dot", borrow=True)))
        cases += [answers(encoder, read, fitted(context, label_names)) for label_names in (0.0, 0.5)]
        cases.append(answers(encoder, read, fitted(context, 0.5, (1,))))
    tagger = seeded_tagger(encoder, Settings(), SCALE)
    slots = sorted({tag for e in read for tag in tag_set([x.tags for x in e.support])})
    return {"head": head(tagger), "label_names": {tag: name_words(tag) for tag in slots}, "cases": cases}


SCALE = 0.5


def fitted(context: str, label_names: float, middle: tuple[int, ...] = ()) -> Settings:
    """The regression with words by themselves and siblings, and rows of middle layers with nearest words that fade."""
    beyond = {"lexical": True, "middle": middle, "siblings": 0.5, "fade": 0.5 if middle else 0.0}
    return Settings(context, "fitted", "projection", label_names, borrow=True, **beyond)


def answers(encoder: Path, read: list[episodes.Episode], settings: Settings) -> dict:
    tagger = seeded_tagger(encoder, settings, SCALE)
    results = []
    for episode in read:
        with torch.no_grad():
            tags, scores = tagger.emissions(episode.support, episode.queries)
            losses = tagger.losses(episode.support, episode.queries)
        predicted = tagger.tag(episode.support, episode.queries)
        results.append({"tags": tags, "emissions": [numbers(e) for e in scores], "losses": [numbers(x) for x in losses]})
        results[-1]["predicted"] = predicted
    return {"settings": asdict(settings), "episodes": results}


def combinations() -> list[Settings]:
    """Paired and separate, each scorer, each transition mode, each similarity at least once; label names both ways."""
    return [
        Settings(context, scorer, kind, weight, transitions)
        for context in CONTEXTS
        for scorer, kind, weight, transitions in (
            ("mn", "cosine", 0.0, "transfer"),
            ("nmn", "dot", 0.0, "transfer"),
            ("nmn", "squared_distance", 0.0, "rule"),
            ("prototype", "projection", 0.0, "transfer"),
            ("prototype", "projection", 0.5, "transfer"),
            ("prototype", "dot", 0.5, "none"),
            ("nearest", "cosine", 0.0, "transfer"),
            ("soft", "projection", 0.0, "transfer"),
            ("mixed", "projection", 0.5, "transfer"),
            ("fitted", "projection", 0.5, "transfer"),
        )
    ] + [fitted(context, 0.5, middle) for context in CONTEXTS for middle in ((), (1,))]


def gradient_file(encoder: Path, read: list[episodes.Episode]) -> dict:
    """The loss of one batch and its gradient: the norm of every tensor, and all numbers of the small ones."""
    cases = []
    for settings in combinations():
        tagger = seeded_tagger(encoder, settings, SCALE)
        loss = batch_loss(tagger, read, all_queries(read))
        loss.backward()
        gradients = {name: p.grad for name, p in tagger.encoder.bert.named_parameters()}
        small = {name: numbers(g.flatten()) for name, g in gradients.items() if g.numel() <= 40}
        norms = {name: numbers(g.norm()) for name, g in gradients.items()}
        cases.append({"settings": asdict(settings), "loss": numbers(loss), "norms": norms, "small": small})
        cases[-1]["head"] = head(tagger, lambda p: torch.zeros_like(p) if p.grad is None else p.grad)
    return {"head": head(tagger), "cases": cases}


def training_file(encoder: Path, read: list[episodes.Episode]) -> dict:
    """Ten updates without dropout: loss and gradient norm before each, and the head after the last."""
    optimisation = Optimisation(updates=10, encoder_rate=3e-3, head_rate=1e-2, warm_up=3)
    start = head(seeded_tagger(encoder, Settings(), SCALE))
    runs = [(settings, len(read)) for settings in combinations()]
    runs.append((combinations()[4], 1))
    cases = []
    for settings, n_episodes in runs:
        tagger = seeded_tagger(encoder, settings, SCALE)
        batch = all_queries(read[:n_episodes])
        losses, norms = train(tagger, read, [batch] * optimisation.updates, optimisation)
        cases.append({"settings": asdict(settings), "episodes": n_episodes, "losses": numbers(losses)})
        cases[-1] |= {"gradient_norms": numbers(norms), "head": head(tagger)}
    return {"head": start, "optimisation": asdict(optimisation), "cases": cases}


def dropout_file(encoder: Path, read: list[episodes.Episode]) -> dict:
    """The loss of one batch and the norm of its gradient under dropout: moments over many draws."""
    rate, draws, cases = 0.1, 400, []
    for settings in (combinations()[1], combinations()[13]):
        tagger = seeded_tagger(encoder, settings, SCALE, rate).train()
        torch.manual_seed(5)
        samples = []
        for _ in range(draws):
            tagger.zero_grad()
            loss = batch_loss(tagger, read, all_queries(read))
            loss.backward()
            norm = torch.stack([p.grad.norm() for p in tagger.parameters() if p.grad is not None]).norm()
            samples.append(torch.stack([loss.detach(), norm]))
        moments = {"mean": numbers(torch.stack(samples).mean(0)), "sd": numbers(torch.stack(samples).std(0))}
        cases.append({"settings": asdict(settings)} | moments)
    return {"head": head(tagger), "rate": rate, "draws": draws, "cases": cases}


def all_queries(read: list[episodes.Episode]) -> Batch:
    """One batch of everything: no order of drawing can change it."""
    return [(e, q) for e, episode in enumerate(read) for q in range(len(episode.queries))]


def main() -> None:
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    encoder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "testdata/tiny-encoder"
    read = episodes.read(sys.argv[2] if len(sys.argv) > 2 else ROOT / "testdata/tiny-episodes.json")
    write_origin(encoder)
    write("crf.json", crf_cases())
    write("transitions.json", transition_cases())
    write("emission.json", emission_file())
    write("model_answers.json", model_file(encoder, read))
    write("model_gradients.json", gradient_file(encoder, read))
    write("model_training.json", training_file(encoder, read))
    write("model_dropout.json", dropout_file(encoder, read))


if __name__ == "__main__":
    main()
