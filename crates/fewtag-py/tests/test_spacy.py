"""A component in a real spaCy pipeline, and spaCy Docs as examples."""

import pytest
from conftest import EXAMPLES

import fewtag

spacy = pytest.importorskip("spacy")

TEXT = "could you play some billie holiday this evening"


def pairs(doc):
    return [(ent.label_, ent.text) for ent in doc.ents]


def test_it_sets_entities(music):
    nlp = spacy.blank("en")
    nlp.add_pipe("fewtag", config={"examples": EXAMPLES})
    expected = [(span.label, span.text) for span in music(TEXT)]
    assert expected and pairs(nlp(TEXT)) == expected
    docs = list(nlp.pipe([TEXT, "", "play sade"] * 50))
    assert pairs(docs[0]) == pairs(docs[-3]) == expected and pairs(docs[1]) == []


def test_a_span_group_labels_alone_and_a_saved_domain(music, tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("fewtag", config={"labels": ["person", "city"], "key": "found"})
    doc = nlp("Angela Merkel lives in Berlin")
    assert {span.label_ for span in doc.spans["found"]} == {"person", "city"} and not doc.ents
    music.save(tmp_path / "music.fewtag")
    saved = spacy.blank("en")
    saved.add_pipe("fewtag", config={"domain": str(tmp_path / "music.fewtag"), "threshold": 1.0})
    assert not saved(TEXT).ents


def test_entities_that_are_there_stay_unless_told_otherwise():
    for overwrite in (False, True):
        nlp = spacy.blank("en")
        ruler = nlp.add_pipe("entity_ruler")
        ruler.add_patterns([{"label": "WORD", "pattern": "some billie"}])
        nlp.add_pipe("fewtag", config={"examples": EXAMPLES, "overwrite": overwrite})
        found = dict((text, label) for label, text in pairs(nlp(TEXT)))
        assert ("some billie" in found) is not overwrite
        assert ("billie holiday" in found) is overwrite


def test_a_pipeline_goes_to_disk_and_comes_back(tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("fewtag", config={"examples": EXAMPLES})
    nlp.to_disk(tmp_path / "pipeline")
    assert pairs(spacy.load(tmp_path / "pipeline")(TEXT)) == pairs(nlp(TEXT))
    empty = spacy.blank("en")
    empty.add_pipe("fewtag")
    with pytest.raises(ValueError, match="nothing to learn from"):
        empty(TEXT)


def test_docs_are_examples():
    doc = spacy.blank("en")("play nina simone")
    doc.ents = [doc.char_span(5, 16, label="artist")]
    assert fewtag.adapt([doc]).examples == [("play nina simone", [(5, 16, "artist")])]
