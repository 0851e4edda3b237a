"""The shape of a token-classification pipeline, beside a real one of transformers; it needs PyTorch, so it is left out where that is not."""

import pathlib

import pytest

transformers = pytest.importorskip("transformers")
pytest.importorskip("torch")

TEXT = "play some jazz by john"


def test_entities_are_what_a_pipeline_answers(music):
    directory = pathlib.Path(__file__).parents[3] / "testdata/tiny-encoder"
    names = dict(enumerate(["B-artist", "I-artist", "B-genre"]))
    model = transformers.BertForTokenClassification.from_pretrained(directory, num_labels=3, id2label=names)
    tokenizer = transformers.BertTokenizerFast(str(directory / "vocab.txt"), tokenizer_file=str(directory / "tokenizer.json"))
    theirs = transformers.pipeline("token-classification", model=model, tokenizer=tokenizer, aggregation_strategy="simple")
    of_one, of_many = theirs(TEXT), theirs([TEXT, TEXT])
    ours, ours_of_many = music.pipeline(TEXT), music.pipeline([TEXT, TEXT])
    assert of_one and ours
    for answer, many in ((of_one, of_many), (ours, ours_of_many)):
        assert many == [answer, answer]
        for entity in answer:
            assert list(entity) == list(of_one[0])
            assert TEXT[entity["start"] : entity["end"]] == entity["word"]
            assert 0 <= float(entity["score"]) <= 1 and isinstance(entity["entity_group"], str)
