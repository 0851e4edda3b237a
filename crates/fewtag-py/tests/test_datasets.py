"""Hugging Face datasets: examples in, a column in, a column out."""

import pytest
from conftest import sentences

import fewtag

datasets = pytest.importorskip("datasets")


def test_a_column_in_a_column_out(music):
    texts = sentences(20)
    dataset = datasets.Dataset.from_dict({"text": texts})
    spans = [found.to_dict()["spans"] for found in music.tag(texts)]
    added = dataset.map(lambda batch: {"spans": music.tag_column(batch["text"])}, batched=True, batch_size=7)
    assert [row["spans"] for row in added] == spans
    assert [found.text for found in music.tag(dataset["text"])] == texts


def test_examples_with_numbered_tags():
    names = datasets.ClassLabel(names=["O", "B-artist", "I-artist"])
    features = datasets.Features({"tokens": datasets.Sequence(datasets.Value("string")), "ner_tags": datasets.Sequence(names)})
    rows = {"tokens": [["play", "nina", "simone"]], "ner_tags": [[0, 1, 2]]}
    learned = fewtag.adapt(datasets.Dataset.from_dict(rows, features=features))
    assert learned.examples == [("play nina simone", [(5, 16, "artist")])]
