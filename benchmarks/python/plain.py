"""The built-in model in plain PyTorch and transformers: same weights, same scorer (`fitted`), same decoding, one process.

It is what a careful person would write: the examples are read and the regression is solved once; texts go through `BertModel` in padded
batches with scaled dot-product attention; the tokenizer is the Rust one of `tokenizers`; scores of a batch are whole tensors, and so is
Viterbi. It gives spans without probabilities, which would cost it more. The formulas are those of docs/reference/method.md; tag sets,
names, transitions and the padded encoder come from `scripts/reference`.
"""

import re
import sys
from pathlib import Path

import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
from reference import crf  # noqa: E402
from reference.emission import membership, siblings  # noqa: E402
from reference.model import Tagger  # noqa: E402
from reference.tags import name_words, slot_of, tag_set  # noqa: E402

BATCH = 64
#: Words as Unicode has them, as far as the sentences of the benchmark go: Han characters, English endings, words, everything else alone.
_WORD = re.compile(r"[\u3400-\u9fff]|['’](?:s|m|d|ll|ve|re)\b|(?:(?![\u3400-\u9fff])\w)+|[^\w\s]")

Spans = list[tuple[int, int, str]]


class Plain:
    """A domain: what was learned from examples, each a text with its spans."""

    def __init__(self, model: Path, examples: list[tuple[str, Spans]]):
        """`model` is a model directory with weights in f32 (`fewtag model convert --storage f32`)."""
        self.tagger = Tagger.load(model)
        words = [[match.group() for match in _WORD.finditer(text)] for text, _ in examples]
        tags = [_tags(text, spans) for text, spans in examples]
        self.tags = tag_set(tags, borrow=True)
        with torch.inference_mode():
            self._learn(words, [tag for of_text in tags for tag in of_text])

    def _learn(self, words: list[list[str]], worn: list[str]) -> None:
        read, alone = self._rows(words)
        rows = torch.cat(read)
        members = membership(worn, self.tags, rows.dtype, borrow=True)
        hidden, pieces = self._hidden([name_words(tag) for tag in self.tags])
        names = torch.stack([h[1 : 1 + len(ids)].mean(0) for h, (ids, _, _) in zip(hidden, pieces)])
        mix = {name: value.detach() for name, value in self.tagger.mix.items()}
        self.alpha, self.beta, self.nu, self.rho = (mix[k].exp() for k in ("attention", "sharpness", "nearness", "regression"))
        self.gate = torch.sigmoid(mix["gate"])
        self.vectors = [torch.cat([rows[column > 0], name[None]]) for column, name in zip(members.T, names)]
        self.counts = [torch.cat([torch.zeros(len(v) - 1), mix["name"][None]]) for v in self.vectors]
        self.norms = [v.norm(dim=1) for v in self.vectors]
        # The regression: weights of a tag's vectors are divided by the root of their sum.
        weights = [c.exp() / c.exp().sum().sqrt() for c in self.counts]
        # It also sees words by themselves, and zeros for a name.
        themselves = [torch.cat([alone[column > 0], torch.zeros_like(alone[:1])]) for column in members.T]
        x, w = torch.cat([torch.cat(self.vectors), torch.cat(themselves)], 1), torch.cat(weights)[:, None]
        y = torch.block_diag(*[torch.ones(len(v), 1) for v in self.vectors])
        s = mix["ridge"].exp() * torch.eye(x.shape[1]) + (x * w).T @ x
        # The other tag of a slot is heard by half.
        share = self.tagger.settings.siblings
        self.regression = siblings(torch.linalg.solve(s, (x * w).T @ y), share, self.tags)
        self.between = crf.constrain(self.tagger.transitions.expand(self.tags), self.tags)

    @torch.inference_mode()
    def tag(self, texts: list[str]) -> list[Spans]:
        """The spans of each text."""
        found: list[Spans] = []
        for start in range(0, len(texts), BATCH):
            words = [list(_WORD.finditer(text)) for text in texts[start : start + BATCH]]
            rows, alone = self._rows([[match.group() for match in of_text] for of_text in words])
            scores = self.tagger.scale * self._emissions(torch.cat(rows), alone)
            lengths = [len(of_text) for of_text in words]
            paths = _viterbi(scores.split(lengths), self.between)
            found += [_spans([self.tags[t] for t in path], of_text) for path, of_text in zip(paths, words)]
        return found

    def _emissions(self, q: Tensor, alone: Tensor) -> Tensor:
        """Rows and the words by themselves, [n, d] each → [n, L]"""
        columns, lengths = [], q.norm(dim=1)[:, None]
        for vectors, counts, norms in zip(self.vectors, self.counts, self.norms):
            dots = q @ vectors.T
            cosines = dots / (lengths * norms)
            prototypes = torch.softmax(self.alpha * dots + counts, 1) @ vectors
            size = prototypes.norm(dim=1)
            projection = (q * prototypes).sum(1) / size - size / 2
            near = (torch.softmax(self.beta * cosines + counts, 1) * cosines).sum(1)
            columns.append((1 - self.gate) * projection + self.gate * self.nu * near)
        return torch.stack(columns, 1) + self.rho * (torch.cat([q, alone], 1) @ self.regression)

    def _rows(self, sentences: list[list[str]]) -> tuple[list[Tensor], Tensor]:
        """The row of each word's first piece, [n, d] for each sentence; and all words by themselves, [sum of n, d]."""
        hidden, pieces = self._hidden(sentences)
        return [rows[[1 + at for at in firsts]] for rows, (_, _, firsts) in zip(hidden, pieces)], self._alone(pieces)

    def _alone(self, pieces) -> Tensor:
        """The mean over a word's pieces of their embeddings without positions, normalised."""
        tables = self.tagger.encoder.bert.embeddings
        ids, types = (torch.tensor([x for of in pieces for x in of[part]]) for part in (0, 1))
        rows = tables.LayerNorm(tables.word_embeddings(ids) + tables.token_type_embeddings(types))
        lengths = [b - a for ids, _, firsts in pieces for a, b in zip(firsts, [*firsts[1:], len(ids)])]
        of_word = torch.repeat_interleave(torch.tensor(lengths))
        sums = torch.zeros(len(lengths), rows.shape[1]).index_add_(0, of_word, rows)
        return sums / torch.tensor(lengths)[:, None]

    def _hidden(self, sentences: list[list[str]]):
        encoder = self.tagger.encoder
        encoded = encoder.tokenizer.encode_batch(sentences, is_pretokenized=True, add_special_tokens=False)
        pieces = [_pieces(words, e.ids, e.word_ids, encoder.tokenizer) for words, e in zip(sentences, encoded)]
        # The tables of segments have a row for each way in which a word is written.
        return encoder._hidden([([encoder.cls, *ids, encoder.sep], [0, *types, 0]) for ids, types, _ in pieces]), pieces


def _pieces(words: list[str], ids: list[int], of_word: list[int], tokenizer) -> tuple[list[int], list[int], list[int]]:
    """Pieces, their segments and where words begin; a word of which nothing is left is unknown."""
    if set(of_word) != set(range(len(words))):
        alone = [tokenizer.encode(word, add_special_tokens=False).ids or [tokenizer.token_to_id("[UNK]")] for word in words]
        ids, of_word = sum(alone, []), [at for at, of in enumerate(alone) for _ in of]
    firsts = [at for at, word in enumerate(of_word) if at == 0 or of_word[at - 1] != word]
    shapes = [2 * _shape(word) for word in words]
    return ids, [shapes[at] for at in of_word], firsts


def _shape(word: str) -> int:
    """lower, Capitalised, SHOUTED, digits, mIxed, other: 0 to 5."""
    letters = [c for c in word if c.isalpha()]
    upper, digits = sum(c.isupper() for c in letters), any(c.isnumeric() for c in word)
    if not letters:
        return 3 if digits else 5
    if digits:
        return 4
    if upper == 0:
        return 0
    if upper == 1 and letters[0].isupper():
        return 1
    return 2 if upper == len(letters) else 4


def _viterbi(scores: tuple[Tensor, ...], t: crf.Transitions) -> list[list[int]]:
    """The best path of each sentence [n, L]; the batch goes forward together, and of equal tags the lower one wins."""
    lengths = torch.tensor([len(s) for s in scores])
    padded = torch.nn.utils.rnn.pad_sequence(list(scores), batch_first=True)
    best, back = t.start + padded[:, 0], []
    for at in range(1, padded.shape[1]):
        arrivals, pointers = (best[:, :, None] + t.between).max(1)
        back.append(pointers.tolist())
        best = torch.where((at < lengths)[:, None], arrivals + padded[:, at], best)
    last = (best + t.end).argmax(1).tolist()
    paths = []
    for row, (tag, length) in enumerate(zip(last, lengths.tolist())):
        path = [tag]
        for pointers in reversed(back[: length - 1]):
            path.append(pointers[row][path[-1]])
        paths.append(path[::-1])
    return paths


def _tags(text: str, spans: Spans) -> list[str]:
    """The tag of each word."""
    tags = []
    for match in _WORD.finditer(text):
        over = next(((start, label) for start, end, label in spans if start <= match.start() < end), None)
        tags.append("O" if over is None else ("B-" if match.start() == over[0] else "I-") + over[1])
    return tags


def _spans(tags: list[str], words: list[re.Match]) -> Spans:
    """Legal tags as spans of characters."""
    spans: Spans = []
    for tag, word in zip(tags, words):
        if tag[0] == "B":
            spans.append((word.start(), word.end(), slot_of(tag)))
        elif tag[0] == "I":
            start, _, label = spans[-1]
            spans[-1] = (start, word.end(), label)
    return spans
