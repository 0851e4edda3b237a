"""Pickle, fork, spawn, threads, interruptions, nulls and texts that nobody should send."""

import multiprocessing
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import threading
import time

import pytest
from conftest import sentences

import fewtag
from fewtag import _worker

TEXTS = sentences(60)


def _tag(domain: fewtag.Domain, texts: list[str]) -> list[fewtag.Answer]:
    return list(domain.tag(texts))


def test_a_pickle_costs_kilobytes_and_answers_the_same(music):
    data = pickle.dumps(music)
    assert len(data) < 10_000
    assert _tag(pickle.loads(data), TEXTS) == _tag(music, TEXTS)
    found = music(TEXTS[0])
    assert pickle.loads(pickle.dumps(found)) == found
    with pytest.raises(fewtag.FewtagError, match="without its domain"):
        pickle.loads(pickle.dumps(found)).explain()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_children_tag_as_their_parent_does(music, method):
    before = _tag(music, TEXTS)  # The parent's threads run before the fork.
    with multiprocessing.get_context(method).Pool(2) as pool:
        for after in pool.starmap_async(_tag, [(music, TEXTS)] * 4).get(timeout=120):
            assert after == before
    assert _tag(music, TEXTS) == before


def test_a_fork_while_others_tag_waits_for_them(music):
    expected = music(TEXTS[0])
    stop = threading.Event()

    def work():
        while not stop.is_set():
            list(music.tag(TEXTS))

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    try:
        for _ in range(10):
            child = os.fork()
            if child == 0:
                os._exit(0 if music(TEXTS[0]) == expected else 1)
            deadline = time.monotonic() + 60
            while (done := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < deadline:
                time.sleep(0.01)
            if done == (0, 0):
                os.kill(child, signal.SIGKILL)
            assert done == (child, 0), "the child hangs or answers otherwise"
    finally:
        stop.set()
        for worker in workers:
            worker.join()


def test_threads_share_a_domain(music):
    expected, results = _tag(music, TEXTS), []
    workers = [threading.Thread(target=lambda: results.append(_tag(music, TEXTS))) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert results == [expected] * 4


def test_the_gil_is_free_while_texts_are_tagged(music):
    ticks, stop = 0, threading.Event()

    def tick():
        nonlocal ticks
        while not stop.is_set():
            ticks += 1
            time.sleep(0.001)

    ticking = threading.Thread(target=tick)
    ticking.start()
    music("play jazz " * 3000)  # One long call into the extension.
    stop.set()
    ticking.join()
    assert ticks > 20


@pytest.mark.parametrize("code", ["list(music.tag(['play jazz'] * 10**7))", "music('play jazz ' * 100_000)"])
def test_ctrl_c_ends_a_long_call(code):
    program = f"""
import fewtag, signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # Whoever runs the tests may ignore it.
music = fewtag.adapt(["play [nina simone](artist)"])
print("ready", flush=True)
try:
    {code}
except KeyboardInterrupt:
    print("interrupted", flush=True)
    import os; os._exit(7)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "ready\n"
        time.sleep(0.5)
        asked = time.monotonic()
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == "interrupted\n"
        assert time.monotonic() - asked < 5
        assert child.wait(timeout=60) == 7


def test_ctrl_c_ends_the_command():
    command = [str(pathlib.Path(sys.executable).parent / "fewtag"), "tag", "--label", "artist"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        child.stdin.write(b"play sade\n")
        child.stdin.flush()
        assert b"sade" in child.stdout.readline()
        child.send_signal(signal.SIGINT)
        assert child.wait(timeout=60) == -signal.SIGINT


def test_the_command_is_all_there(tmp_path):
    fewtag_ = str(pathlib.Path(sys.executable).parent / "fewtag")
    for command in (["--version"], ["serve", "--help"], ["train", "--help"]):
        assert subprocess.run([fewtag_, *command], capture_output=True).returncode == 0
    assert subprocess.run([fewtag_, "tag", "--nonsense"], capture_output=True).returncode == 2
    failed = subprocess.run([fewtag_, "tag", "--support", "none.txt", "x"], capture_output=True, cwd=tmp_path)
    assert failed.returncode == 1 and b"none.txt" in failed.stderr
    head = subprocess.run(f"{fewtag_} completions bash | head -1", shell=True, capture_output=True)
    assert head.returncode == 0 and head.stderr == b""
    module = subprocess.run([sys.executable, "-m", "fewtag", "--version"], capture_output=True, text=True)
    assert module.stdout == f"fewtag {fewtag.__version__}\n"


def test_none_stays_none_and_blanks_have_no_spans(music):
    assert [found and found.spans for found in music.tag([None, "", " \n\t", None])] == [None, (), (), None]
    assert list(music.tag([])) == []


def test_ten_megabytes_are_refused_and_cost_nothing_else(music):
    huge = "play jazz " * 2**20
    with pytest.raises(fewtag.TextError, match="text 1: the text is longer than 1048576 bytes"):
        list(music.tag(["play sade", huge]))
    found = list(music.tag([huge, "play sade"], on_error="none"))
    assert found == [None, music("play sade")]


def test_lone_surrogates_are_told(music):
    with pytest.raises(fewtag.TextError, match="character 5 of the text is a lone surrogate"):
        music("play \ud83c jazz")
    assert list(music.tag(["\udfff", "play sade"], on_error="none"))[0] is None
    emoji = music("play sade 🎷 now")
    assert all(emoji.text[span.start : span.end] == span.text for span in emoji)


def test_threads_can_be_set(music):
    usual, expected = fewtag.threads(), _tag(music, TEXTS)
    try:
        fewtag.set_threads(1)
        assert fewtag.threads() == 1
        assert _tag(music, TEXTS) == expected
    finally:
        fewtag.set_threads(usual)


def test_a_worker_of_a_cluster_opens_a_domain_once_with_the_threads_that_it_is_given(music):
    usual, sent = fewtag.threads(), _worker.state(music)
    try:
        opened = _worker.opened(sent, 1)
        assert fewtag.threads() == 1 and len(sent[0]) < 10_000
        assert _worker.opened(_worker.state(music), 1) is opened and _tag(opened, TEXTS) == _tag(music, TEXTS)
    finally:
        fewtag.set_threads(usual)
