"""Learning, tagging, explaining, saving: the package as a person uses it."""

import asyncio
import doctest
import json
import pathlib
import pickle
import subprocess
import sys

import pytest
from conftest import EXAMPLES, sentences

import fewtag
from fewtag import _answer, _domain, _worker


def test_the_five_lines(music, tmp_path):
    found = music("could you play billie holiday")
    (span,) = found.spans
    assert (span.label, span.text, span.start, span.end) == ("artist", "billie holiday", 15, 29)
    assert found.text[span.start : span.end] == span.text
    assert 0 < span.probability <= 1
    why = found.explain()
    assert why[0].span == span
    assert why[0].score == pytest.approx(why[0].examples + why[0].transitions, abs=1e-3)
    assert sum(voice.score for voice in why[0].voices) == pytest.approx(why[0].examples, abs=1e-3)
    report = music.check()
    assert report.n_sentences == 5 and {one.label for one in report.labels} == set(music.labels)
    pool = ["play some funk", "turn it up", "", "play nina simone"]
    suggestions = music.suggest(pool, n=2)
    assert len(suggestions) == 2 and all(pool[one.number] == one.answer.text for one in suggestions)
    music.save(tmp_path / "music.fewtag")
    again = fewtag.open(tmp_path / "music.fewtag")
    assert again("could you play billie holiday") == found
    assert again.examples == music.examples and again.to_bytes() == music.to_bytes()
    assert (tmp_path / "music.fewtag").stat().st_size < 10_000


def test_docstrings_are_true():
    for module in (fewtag, _domain, _answer):
        result = doctest.testmod(module)
        assert result.attempted > 0 and result.failed == 0


def test_answers_are_those_of_the_command_byte_for_byte(music, tmp_path):
    texts = sentences(500)
    music.save(tmp_path / "music.fewtag")
    command = [str(pathlib.Path(sys.executable).parent / "fewtag"), "tag", "--domain", str(tmp_path / "music.fewtag")]
    lines = "\n".join(texts).encode()
    printed = subprocess.run([*command, "--format", "jsonl"], input=lines, capture_output=True, check=True).stdout
    ours = "".join(found.to_json() + "\n" for found in music.tag(texts))
    assert ours.encode() == printed
    explained = subprocess.run(
        [*command, "--format", "jsonl", "--explain"], input=texts[0].encode(), capture_output=True, check=True
    ).stdout
    assert music._core.explain(texts[0]).encode() == explained.strip()
    assert str(music("play miles davis")).startswith("play [miles davis](artist 0.")


def test_tag_is_lazy_and_keeps_order(music):
    asked = []

    def endless():
        for i in range(10**9):
            asked.append(i)
            yield f"play song {i}"

    stream = music.tag(endless())
    assert next(stream).text == "play song 0"
    assert len(asked) == 1, "the first answer waits for one text"
    assert [next(stream).text for _ in range(600)] == [f"play song {i}" for i in range(1, 601)]
    assert len(asked) <= 601 + 256


def test_each_answer_is_the_one_it_gets_alone(music):
    texts = sentences(40)
    assert list(music.tag(texts)) == [music(text) for text in texts]


def test_atag_does_not_stop_the_loop(music):
    async def main():
        ticks = 0

        async def tick():
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0.001)

        ticking = asyncio.create_task(tick())
        found = await music.atag(sentences(300))
        ticking.cancel()

        async def stream():
            yield "play sade"

        (last,) = await music.atag(stream())
        return found, ticks, last

    found, ticks, last = asyncio.run(main())
    assert found == list(music.tag(sentences(300))) and last == music("play sade")
    assert ticks > 5


def test_thresholds(music):
    text = "could you play some billie holiday this evening"
    assert music(text).spans and not music(text, threshold=1.0).spans
    only = music(text, threshold={"artist": 1.0})
    assert {span.label for span in only} == {span.label for span in music(text)} - {"artist"}
    strict = fewtag.adapt(EXAMPLES, threshold=1.0)
    assert not strict(text).spans
    with pytest.raises(fewtag.FewtagError, match="no label `colour`"):
        music(text, threshold={"colour": 0.5})
    with pytest.raises(fewtag.FewtagError, match="from 0 to 1"):
        music(text, threshold=7)


def test_examples_in_every_form(tmp_path):
    pair = ("play nina simone", [(5, 16, "artist")])
    (tmp_path / "a.txt").write_text("play [nina simone](artist)\n")
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": pair[0], "label": [list(pair[1][0])]}) + "\n")

    class Corrected:
        text, spans = pair

    forms = [
        ["play [nina simone](artist)"],
        "play [nina simone](artist)",
        [pair],
        [{"text": pair[0], "spans": [{"start": 5, "end": 16, "label": "artist"}]}],
        [(pair[0], {"entities": pair[1]})],
        [Corrected()],
        tmp_path / "a.txt",
        str(tmp_path / "a.txt"),
        tmp_path / "a.jsonl",
    ]
    for form in forms:
        assert fewtag.adapt(form).examples == [pair], form
    words = fewtag.adapt([{"tokens": ["play", "nina", "simone"], "tags": ["O", "B-artist", "I-artist"]}])
    assert words.examples == [pair]
    fewtag.adapt([pair]).save(tmp_path / "a.fewtag")
    assert fewtag.adapt(tmp_path / "a.fewtag").examples == [pair]


def test_labels_alone_and_meanings():
    cities = fewtag.adapt(labels=["person", "city"])
    assert {span.label for span in cities("Angela Merkel lives in Berlin")} == {"person", "city"}
    renamed = fewtag.adapt(["go to [x](slot_17)"], meanings={"slot_17": "city"})
    assert fewtag.adapt(["go to [x](slot_17)"])("off to Paris") != renamed("off to Paris")
    with pytest.raises(fewtag.ExamplesError, match="no label `nothing`"):
        fewtag.adapt(["go to [x](slot_17)"], meanings={"nothing": "city"})


def test_other_models_and_contexts(tmp_path):
    root = pathlib.Path(__file__).parents[3]
    model = root / "models/default"
    ours = fewtag.adapt(EXAMPLES, model=model)
    assert ours.model == fewtag.adapt(EXAMPLES).model, "the built-in model is the one of models/default"
    paired = fewtag.adapt(EXAMPLES, context="paired")
    assert paired.context == "paired"
    paired.save(tmp_path / "p.fewtag")
    assert fewtag.open(tmp_path / "p.fewtag").context == "paired"
    with pytest.raises(fewtag.ModelError):
        fewtag.adapt(EXAMPLES, context="both")
    with pytest.raises(fewtag.ModelError, match="an encoder, not a trained model"):
        fewtag.adapt(EXAMPLES, model=root / "testdata/tiny-encoder")


def test_precision_is_kept_wherever_a_domain_goes(music, tmp_path):
    exact = fewtag.adapt(EXAMPLES, precision="f32")
    assert (music.precision, exact.precision) == ("int8", "f32")
    texts = [f"play {who} at noon" for who in ("sade", "björk", "john coltrane")]
    found = list(exact.tag(texts))
    assert found != list(music.tag(texts)), "other numbers in the last digits"
    for other in (pickle.loads(pickle.dumps(exact)), _worker.opened(_worker.state(exact), fewtag.threads())):
        assert other.precision == "f32" and list(other.tag(texts)) == found
    exact.save(tmp_path / "m.fewtag")
    assert fewtag.open(tmp_path / "m.fewtag").precision == "int8"
    assert list(fewtag.open(tmp_path / "m.fewtag", precision="f32").tag(texts)) == found
    assert _worker.opened(_worker.state(music), fewtag.threads()).precision == "int8", "not the one that was opened before"
    with pytest.raises(fewtag.ModelError, match="`int8` or `f32`"):
        fewtag.adapt(EXAMPLES, precision="f16")


def test_errors_are_ours_and_say_where(tmp_path, music):
    with pytest.raises(fewtag.ExamplesError, match="labels no slot"):
        fewtag.adapt(["nothing is marked"])
    with pytest.raises(fewtag.ExamplesError):
        fewtag.adapt([("play nina", [(5, 99, "artist")])])
    with pytest.raises(fewtag.ExamplesError, match="a int is no example"):
        fewtag.adapt([7])
    with pytest.raises(FileNotFoundError):
        fewtag.open(tmp_path / "none.fewtag")
    (tmp_path / "bad.fewtag").write_bytes(b"no domain")
    with pytest.raises(fewtag.DomainError, match="bad.fewtag"):
        fewtag.open(tmp_path / "bad.fewtag")
    with pytest.raises(TypeError, match="one text"):
        music.tag("play sade")
    with pytest.raises(TypeError, match="a text is a str"):
        list(music.tag([b"bytes"]))
    assert issubclass(fewtag.TextError, fewtag.FewtagError)


def test_a_domain_of_another_model_is_refused(music, tmp_path):
    data = music.to_bytes().replace(music.model.encode(), b"0" * 64)
    (tmp_path / "other.fewtag").write_bytes(data)
    with pytest.raises(fewtag.DomainError, match="was made for the model 000000000000"):
        fewtag.open(tmp_path / "other.fewtag")


def test_entities_have_the_shape_of_a_pipeline(music):
    (found,) = music.pipeline("play billie holiday")
    assert list(found) == ["entity_group", "score", "word", "start", "end"]
    assert music.pipeline(["play billie holiday", ""]) == [[found], []]


def test_notebooks_show_colours_and_trust_no_text(music):
    found = music("play <script>alert(1)</script> by billie holiday")
    for shown in (found._repr_html_(), found.explain()._repr_html_()):
        assert "<script>" not in shown
    assert "billie holiday" in found._repr_html_() and "<mark" in found._repr_html_()
    assert "rgba" in music("play billie holiday").explain()._repr_html_()


def test_progress_is_told_on_standard_error(music, capsys):
    list(music.tag(sentences(20), progress=True))
    assert "20 of 20 texts" in capsys.readouterr().err
    list(music.tag(sentences(20)))
    assert capsys.readouterr().err == ""


def test_the_import_is_light():
    code = "import sys, fewtag; print([m for m in ('numpy', 'pyarrow', 'asyncio', 'spacy', 'ray') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
