"""Tuning: what it is worth is told, and the result is used like any other domain."""

import pickle

import pytest

import fewtag

WORDS = ["paris", "rome", "oslo", "lima", "cairo", "delhi"]
EXAMPLES = [f"go to [{city}](city) at [{hour}](time) please" for hour in ("noon", "nine", "ten") for city in WORDS]


@pytest.fixture(scope="module")
def tuned():
    return fewtag.adapt(EXAMPLES).tune(minutes=0.05, seed=1)


def test_what_it_was_worth_is_told(tuned):
    told = tuned.tuning
    assert told.verdict in {"tuned", "tuned_less", "not_worth_it", "stopped", "unknown"}
    assert 0 <= told.untuned <= 100 and told.judged > 0
    assert fewtag.adapt(EXAMPLES).tuning is None


def test_a_tuned_domain_is_saved_opened_and_pickled_like_any_other(tuned, tmp_path):
    text = "please go to madrid at eight"
    found = tuned(text)
    tuned.save(tmp_path / "travel.fewtag")
    again = fewtag.open(tmp_path / "travel.fewtag")
    assert again(text) == found and again.to_bytes() == tuned.to_bytes()
    assert pickle.loads(pickle.dumps(tuned))(text) == found
    assert (again.tuning is not None) == tuned.tuning.verdict.startswith("tuned")
    why = tuned.explain(text)
    assert all(one.score == pytest.approx(one.examples + one.transitions, abs=1e-3) for one in why)


def test_too_few_examples_are_refused_kindly():
    with pytest.raises(fewtag.ExamplesError, match="label more"):
        fewtag.adapt(EXAMPLES[:5]).tune()
    with pytest.raises(fewtag.ModelError, match="pairs"):
        fewtag.adapt(EXAMPLES, context="paired").tune()
