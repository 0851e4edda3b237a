"""Tuning: what it is worth is told, and the result is used like any other domain."""

import pickle

import pytest

import fewtag

WORDS = ["paris", "jazz", "noon", "rome", "blues", "nine"]
CITIES = [f"go to [{city}](city) at [{hour}](time) please" for hour in ("noon", "nine") for city in ("paris", "rome", "oslo", "lima", "cairo")]
TEXT = "at rome go to jazz please99"


def example(i: int) -> str:
    """A sentence whose labels follow from the word before."""
    a, b = WORDS[i % 6], WORDS[(i // 2 + 1) % 6]
    if i % 3 == 0:
        return f"go to [{a}](city) now{i} and hear [{b}](genre)"
    return f"hear some [{b} {a}](genre) to day{i}" if i % 3 == 1 else f"at [{a}](time) go to [{b}](city) please{i}"


@pytest.fixture(scope="module")
def learned(tiny_model):
    """A domain of the tiny model, which has much to learn."""
    return fewtag.adapt([example(i) for i in range(24)], model=tiny_model)


@pytest.fixture(scope="module")
def tuned(learned):
    return learned.tune(seed=1)


def test_what_it_was_worth_is_told(learned, tuned):
    told = tuned.tuning
    assert told.verdict == "tuned" and told.judged == 24
    assert told.gain == told.tuned - told.untuned > told.spread > 0
    assert [label for label, *_ in told.labels] == ["city", "genre", "time"]
    assert learned.tuning is None and learned(TEXT) != tuned(TEXT)


def test_the_same_seed_gives_the_same_domain(learned, tuned):
    assert learned.tune(seed=1).to_bytes() == tuned.to_bytes()


def test_a_tuned_domain_is_saved_opened_and_pickled_like_any_other(tuned, tiny_model, tmp_path):
    found = tuned(TEXT)
    tuned.save(tmp_path / "travel.fewtag")
    again = fewtag.open(tmp_path / "travel.fewtag", model=tiny_model)
    assert again(TEXT) == found and again.to_bytes() == tuned.to_bytes()
    assert pickle.loads(pickle.dumps(tuned))(TEXT) == found
    assert (again.tuning.untuned, again.tuning.tuned) == (tuned.tuning.untuned, tuned.tuning.tuned)
    why = tuned.explain(TEXT)
    assert why and all(one.score == pytest.approx(one.examples + one.transitions, abs=1e-3) for one in why)


def test_the_built_in_model_is_tuned_for_as_long_as_told(capsys):
    told = fewtag.adapt(CITIES).tune(minutes=0.02, progress=True).tuning
    assert told.verdict in {"tuned", "tuned_less", "not_worth_it", "stopped", "unknown"}
    assert "of 100 per cent" in capsys.readouterr().err


def test_too_few_examples_are_refused_kindly():
    with pytest.raises(fewtag.ExamplesError, match="label more"):
        fewtag.adapt(CITIES[:5]).tune()
    with pytest.raises(fewtag.ModelError, match="pairs"):
        fewtag.adapt(CITIES, context="paired").tune()
