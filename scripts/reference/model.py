"""The whole tagger: encoder, emission scorer, λ, collapsed transitions, CRF."""

import json
import math
from dataclasses import dataclass, fields
from pathlib import Path

import torch
from torch import Tensor, nn

from . import crf
from .emission import emissions, membership
from .encoder import Encoder
from .episodes import Sentence
from .tags import name_words, tag_set


# Where the mixed scorer starts: α = 0.2, β = ν = 20, g = 0.3, κ = ½, ρ = 5, λ = 50, as logarithms and a logit.
MIX = {
    "attention": math.log(0.2),
    "sharpness": math.log(20),
    "nearness": math.log(20),
    "gate": math.log(0.3 / 0.7),
    "name": math.log(0.5),
    "regression": math.log(5),
    "ridge": math.log(50),
}


@dataclass(frozen=True)
class Settings:
    context: str = "separate"  # paired | separate
    scorer: str = "prototype"  # mn | nmn | prototype | nearest | soft | mixed | fitted
    similarity: str = "dot"  # dot | cosine | squared_distance | projection
    label_names: float = 0.0  # the weight of label-name vectors in prototypes
    transitions: str = "transfer"  # transfer | rule | none
    constrained: bool = False  # decode legal BIO only
    borrow: bool = False  # an I the support lacks borrows the words of its B
    lexical: bool = False  # the regression of `fitted` also sees words by themselves
    middle: tuple[int, ...] = ()  # and the rows above these layers
    siblings: float = 0.0  # what it says for a tag that it says for the other tag of the slot
    fade: float = 0.0  # the power of the examples per label by which the share of the nearest words falls


class Tagger(nn.Module):
    def __init__(self, directory: Path, settings: Settings, scale: float = 1.0, dropout: float = 0.0):
        super().__init__()
        self.settings = settings
        self.encoder = Encoder(directory, dropout, settings.lexical, tuple(settings.middle))
        self.scale = nn.Parameter(torch.tensor(scale))  # λ
        self.transitions = crf.Collapsed()
        self.mix = nn.ParameterDict({name: torch.tensor(value) for name, value in MIX.items()})

    @classmethod
    def load(cls, directory: Path, context: str | None = None) -> "Tagger":
        """A model directory with weights in f32 (`fewtag model convert --storage f32`), in its own context or another."""
        description = json.loads((directory / "fewtag.json").read_text())
        known, head = description["settings"], description["head"]
        settings = {field.name: known[field.name] for field in fields(Settings) if field.name in known}
        settings |= {"context": context} if context else {}
        tagger = cls(directory, Settings(**settings), head["scale"])
        with torch.no_grad():
            for name, values in head["transitions"].items():
                getattr(tagger.transitions, name).copy_(torch.tensor(values))
            for name, value in head.get("mix", {}).items():
                tagger.mix[name].copy_(torch.tensor(value))
        return tagger.eval()

    def emissions(self, support: list[Sentence], queries: list[Sentence]) -> tuple[list[str], list[Tensor]]:
        """The tag set and per query the emissions [n, L], before λ. In separate context the support is encoded once."""
        s = self.settings
        tags = tag_set([x.tags for x in support], s.borrow)
        support_words, query_words = ([x.words for x in part] for part in (support, queries))
        all_tags = [tag for x in support for tag in x.tags]
        member = membership(all_tags, tags, self.scale.dtype, s.borrow)
        names = (s.label_names, self.encoder.means([name_words(t) for t in tags])) if s.label_names else None
        if s.context == "separate":
            rows = self.encoder.separate(support_words + query_words)
            keys = torch.cat(rows[: len(support)])
            pairs, members = [[(q, keys)] for q in rows[len(support) :]], [member]
        else:
            pairs = self.encoder.paired(query_words, support_words)
            members = list(member.split([len(words) for words in support_words]))
        share = (s.siblings, tags) if s.siblings else None
        n = sum(tag.startswith("B") for tag in all_tags) / sum(tag.startswith("B") for tag in tags)  # examples per label
        beside = s.lexical, (len(s.middle), max(0.0, 1 - n**-0.5)), max(1.0, n) ** -s.fade
        return tags, [emissions(s.scorer, s.similarity, p, members, names, self.mix, share, *beside) for p in pairs]

    def losses(self, support: list[Sentence], queries: list[Sentence]) -> list[Tensor]:
        """One loss per query; every gold tag must be in the support."""
        tags, scores = self.emissions(support, queries)
        gold = [[tags.index(tag) for tag in query.tags] for query in queries]
        if self.settings.transitions == "transfer":
            between = self.transitions.expand(tags)
            return [crf.loss(self.scale * e, between, y) for e, y in zip(scores, gold)]
        cross_entropy = nn.functional.cross_entropy
        return [cross_entropy(self.scale * e, torch.tensor(y), reduction="sum") for e, y in zip(scores, gold)]

    @torch.no_grad()
    def tag(self, support: list[Sentence], queries: list[Sentence]) -> list[list[str]]:
        return self.decode(*self.emissions(support, queries))

    def decode(self, tags: list[str], scores: list[Tensor]) -> list[list[str]]:
        """The best tags for each query's emissions [n, L], before λ."""
        return [[tags[i] for i in self._path(self.scale * e, tags)] for e in scores]

    def _path(self, scores: Tensor, tags: list[str]) -> list[int]:
        match self.settings.transitions:
            case "none":
                return scores.argmax(1).tolist()
            case "rule":
                return crf.greedy(scores, tags)
            case "transfer":
                between = self.transitions.expand(tags)
                return crf.viterbi(scores, crf.constrain(between, tags) if self.settings.constrained else between)[0]
