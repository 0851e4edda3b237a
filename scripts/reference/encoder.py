"""Words to vectors with a BERT of `transformers`: padded batches, scaled dot-product attention."""

from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn
from transformers import BertModel
from transformers.utils import logging

logging.set_verbosity_error()  # It would report the pooler, which nobody reads here.
logging.disable_progress_bar()


class Pieces:
    """One sentence cut word by word: all its pieces, and where each word's first piece stands."""

    def __init__(self, tokenizer: Tokenizer, words: list[str]):
        self.ids: list[int] = []
        self.firsts: list[int] = []
        for word in words:
            self.firsts.append(len(self.ids))
            self.ids += tokenizer.encode(word, add_special_tokens=False).ids or [tokenizer.token_to_id("[UNK]")]


class Encoder(nn.Module):
    def __init__(self, directory: Path, dropout: float = 0.0, lexical: bool = False, middle: tuple[int, ...] = ()):
        """Every vector is followed by the rows above the `middle` layers and, if `lexical`, by the mean of its pieces'
        embeddings; both have no gradient, and a name has zeros there."""
        super().__init__()
        self.lexical, self.middle = lexical, middle
        self.bert = BertModel.from_pretrained(
            directory,
            add_pooling_layer=False,
            attn_implementation="sdpa",
            dtype=torch.float32,
            hidden_dropout_prob=dropout,
            attention_probs_dropout_prob=dropout,
        )
        self.tokenizer = Tokenizer.from_file(str(Path(directory) / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        self.cls, self.sep = (self.tokenizer.token_to_id(name) for name in ("[CLS]", "[SEP]"))

    def separate(self, sentences: list[list[str]]) -> list[Tensor]:
        """`[CLS] x [SEP]` for every sentence: the rows of its words, [n, d] each."""
        pieces = [Pieces(self.tokenizer, words) for words in sentences]
        hidden = self._hidden([([self.cls, *p.ids, self.sep], [0] * (len(p.ids) + 2)) for p in pieces])
        return [self._with_words(rows[[1 + at for at in p.firsts]], p, 0) for rows, p in zip(hidden, pieces)]

    def paired(self, queries: list[list[str]], support: list[list[str]]) -> list[list[tuple[Tensor, Tensor]]]:
        """`[CLS] q [SEP] s [SEP]` for every query and support sentence: per query the list of (Q_i, K_i)."""
        query_pieces, support_pieces = ([Pieces(self.tokenizer, x) for x in part] for part in (queries, support))
        couples = [(q, s) for q in query_pieces for s in support_pieces]
        hidden = self._hidden(
            [
                ([self.cls, *q.ids, self.sep, *s.ids, self.sep], [0] * (len(q.ids) + 2) + [1] * (len(s.ids) + 1))
                for q, s in couples
            ]
        )
        rows = [
            (
                self._with_words(h[[1 + at for at in q.firsts]], q, 0),
                self._with_words(h[[len(q.ids) + 2 + at for at in s.firsts]], s, 1),
            )
            for h, (q, s) in zip(hidden, couples)
        ]
        return [rows[i : i + len(support)] for i in range(0, len(rows), len(support))]

    def means(self, phrases: list[list[str]]) -> Tensor:
        """One vector per phrase, read alone: the mean over all its pieces, [len(phrases), d]."""
        pieces = [Pieces(self.tokenizer, words).ids for words in phrases]
        hidden = self._hidden([([self.cls, *ids, self.sep], [0] * (len(ids) + 2)) for ids in pieces])
        d = self.bert.config.hidden_size
        zeros = torch.zeros(d * (len(self.middle) + self.lexical))
        return torch.stack([torch.cat([rows[1 : 1 + len(ids), :d].mean(0), zeros]) for rows, ids in zip(hidden, pieces)])

    def _with_words(self, rows: Tensor, pieces: Pieces, segment: int) -> Tensor:
        """The rows of a sentence's words, followed by the words by themselves if they are wanted."""
        if not self.lexical:
            return rows
        ends = [*pieces.firsts[1:], len(pieces.ids)]
        alone = self._alone(pieces.ids, segment)
        return torch.cat([rows, torch.stack([alone[a:b].mean(0) for a, b in zip(pieces.firsts, ends)])], 1)

    @torch.no_grad()
    def _alone(self, ids: list[int], segment: int) -> Tensor:
        """Embeddings without positions, normalised: [len(ids), d]."""
        tables, ids = self.bert.embeddings, torch.tensor(ids)
        sums = tables.word_embeddings(ids) + tables.token_type_embeddings(torch.full_like(ids, segment))
        return tables.LayerNorm(sums)

    def _hidden(self, sequences: list[tuple[list[int], list[int]]]) -> Tensor:
        """The last layer and the middle ones, [n_sequences, longest, d·(1 + middle)]; rows past a sequence's end mean nothing."""
        longest = max(len(ids) for ids, _ in sequences)
        pad = lambda rows: torch.tensor([row + [0] * (longest - len(row)) for row in rows])
        read = self.bert(
            input_ids=pad([ids for ids, _ in sequences]),
            token_type_ids=pad([segments for _, segments in sequences]),
            attention_mask=pad([[1] * len(ids) for ids, _ in sequences]),
            output_hidden_states=True,
        )
        return torch.cat([read.last_hidden_state, *(read.hidden_states[layer].detach() for layer in self.middle)], 2)
