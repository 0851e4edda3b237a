"""The peer: the same model in PyTorch behind FastAPI, with the two ways to tag that `fewtag serve` has.

    MODEL=DIRECTORY SUPPORT=FILE.json THREADS=2 uvicorn fastapi_app:app

Weights, scorer and decoding are those of the model directory (`scripts/reference`). Handlers are `async` and compute at once: PyTorch uses
all its threads for one request, and none is lost to another. The domain's support is read once, at the start.
"""

import json
import os
import sys
from pathlib import Path

import torch
from fastapi import FastAPI
from pydantic import BaseModel

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
from reference.emission import emissions, membership  # noqa: E402
from reference.episodes import Sentence  # noqa: E402
from reference.model import Tagger  # noqa: E402
from reference.scores import spans  # noqa: E402
from reference.tags import tag_set  # noqa: E402


class Span(BaseModel):
    start: int
    end: int
    label: str


class Example(BaseModel):
    text: str
    spans: list[Span] = []


class Texts(BaseModel):
    texts: list[str]


class TagRequest(Texts):
    support: list[Example]


def bounds(text: str) -> list[tuple[int, int]]:
    """Where the words stand; the benchmark's texts have single blanks and no punctuation."""
    ends = [at for at, char in enumerate(text) if char == " "] + [len(text)]
    return list(zip([0, *(end + 1 for end in ends[:-1])], ends))


def labelled(example: Example) -> Sentence:
    tags = []
    for start, end in bounds(example.text):
        span = next((s for s in example.spans if s.start <= start and end <= s.end), None)
        tags.append("O" if span is None else f"{'B' if span.start == start else 'I'}-{span.label}")
    return Sentence(example.text.split(" "), tags)


def plain(text: str) -> Sentence:
    words = text.split(" ")
    return Sentence(words, ["O"] * len(words))


class Support:
    """Examples that the encoder has read."""

    @torch.inference_mode()
    def __init__(self, examples: list[Example]):
        support = [labelled(example) for example in examples]
        settings = TAGGER.settings
        self.tags = tag_set([sentence.tags for sentence in support], settings.borrow)
        self.member = membership([t for s in support for t in s.tags], self.tags, torch.float32, settings.borrow)
        self.keys = torch.cat(TAGGER.encoder.separate([sentence.words for sentence in support]))

    @torch.inference_mode()
    def tag(self, queries: list[Sentence]) -> list[list[str]]:
        s = TAGGER.settings
        rows = TAGGER.encoder.separate([query.words for query in queries])
        scores = [emissions(s.scorer, s.similarity, [(row, self.keys)], [self.member]) for row in rows]
        return TAGGER.decode(self.tags, scores)


def results(texts: list[str], tags: list[list[str]]) -> dict:
    found = []
    for text, of in zip(texts, tags):
        at = bounds(text)
        chunks = [{"start": at[first][0], "end": at[last - 1][1], "label": label} for first, last, label in sorted(spans(of))]
        found.append({"text": text, "spans": [{**chunk, "text": text[chunk["start"] : chunk["end"]]} for chunk in chunks]})
    return {"results": found}


torch.set_num_threads(int(os.environ["THREADS"]))
TAGGER = Tagger.load(Path(os.environ["MODEL"]))
DOMAIN = Support([Example(**example) for example in json.loads(Path(os.environ["SUPPORT"]).read_text())])
app = FastAPI()


@app.post("/v1/tag")
async def tag(request: TagRequest) -> dict:
    with torch.inference_mode():
        support, queries = [labelled(example) for example in request.support], [plain(text) for text in request.texts]
        return results(request.texts, TAGGER.tag(support, queries))


@app.post("/v1/domains/music/tag")
async def tag_domain(request: Texts) -> dict:
    return results(request.texts, DOMAIN.tag([plain(text) for text in request.texts]))
