#!/usr/bin/env python3
"""Does a model get better with every example? F1 at 1 to 50 shots, and where more of them are worse by more than one point.

    python3 benchmarks/accuracy/growth.py --model models/default
    python3 benchmarks/accuracy/growth.py --model models/default@f32 --only snips/playlist --shots 1 5 20

For each dev domain 20 episodes of 20 queries are drawn at the largest number of shots; for every smaller number a support set is drawn from
the large one, by the same algorithm. So an episode has the same queries at every number, and its examples are among those of the larger
ones: differences are paired. A number of shots is left out for a domain in which fewer than half of the labels occur in so
many sentences, or which has no queries left. Sentences of more than 200 words are left out: no encoder here reads all of them. What was judged is kept in --work and not judged again. The exit status is 1 where
more examples are worse.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

from run import ROOT, SEED, chosen, difference, episode_f1, row

EPISODES = QUERIES = 20
TOLERATED = 1.0
LONGEST = 200


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True, metavar="DIR[@PRECISION]")
    parser.add_argument("--split", default="dev", choices=["dev", "reported"])
    parser.add_argument("--only", nargs="+", help="only these domains of the split")
    parser.add_argument("--shots", nargs="+", type=int, default=[1, 2, 5, 10, 20, 50])
    parser.add_argument("--data", type=pathlib.Path, default=ROOT / "data")
    parser.add_argument("--fewtag", default="fewtag", help="the command")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("accuracy"), help="episodes and scores are kept here")
    parser.add_argument("--out", type=pathlib.Path, help="where the page is written; standard output if not given")
    arguments = parser.parse_args()
    arguments.shots = sorted(set(arguments.shots))
    arguments.work.mkdir(parents=True, exist_ok=True)
    names = [name for names in chosen(arguments.split, arguments.only).values() for name in names]
    scores, left_out = {}, []
    for name in names:
        drawn, reasons = nested(arguments, name)
        left_out += [f"{name} at {shots} shots: {reason}" for shots, reason in reasons.items()]
        judge = lambda shots, episodes: episode_f1(arguments, arguments.model, episodes, f"growth-{name.replace('/', '-')}-{shots}")
        scores[name] = {shots: judge(shots, episodes) for shots, episodes in drawn.items()}
    found = [fall for name, of_shots in scores.items() for fall in falls(name, of_shots)]
    page = "\n".join(pages(arguments, scores, found, left_out))
    if arguments.out:
        arguments.out.write_text(page + "\n")
    else:
        print(page)
    return 1 if found else 0


def nested(arguments, name):
    """An episode file for each number of shots that the domain has sentences for, and why not for the others."""
    corpus, base = without_long(arguments, name), arguments.work / f"growth-{name.replace('/', '-')}"
    reasons, files = {}, {}
    for shots in reversed(arguments.shots):
        episodes = pathlib.Path(f"{base}-{shots}shot.json")
        if files:
            within(arguments, max(files), files[max(files)], shots, episodes)
            files[shots] = episodes
        elif reason := too_small(arguments, corpus, shots, episodes):
            reasons[shots] = reason
        else:
            files[shots] = episodes
    in_order = lambda found: {shots: found[shots] for shots in arguments.shots if shots in found}
    return in_order(files), in_order(reasons)


def without_long(arguments, name):
    """The corpus of a domain, or a copy without its long sentences."""
    corpus = arguments.data / f"{name}.conll"
    sentences = corpus.read_text().strip().split("\n\n")
    short = [sentence for sentence in sentences if len(sentence.splitlines()) <= LONGEST]
    if len(short) == len(sentences):
        return corpus
    copy = arguments.work / "short" / corpus.name
    copy.parent.mkdir(exist_ok=True)
    copy.write_text("\n\n".join(short) + "\n")
    return copy


def too_small(arguments, corpus, shots, episodes):
    """Draws the episodes of the largest number, or says why the domain has none."""
    manifest = episodes.with_suffix(".manifest.json")
    if not (episodes.exists() and manifest.exists()):
        answer = sample(arguments, corpus, shots, EPISODES, QUERIES, episodes)
        if answer.returncode:
            return answer.stderr.strip().removeprefix("error: ").splitlines()[0]
    (drawn,) = json.loads(manifest.read_text())["domains"]
    part = json.loads(episodes.read_text()).popitem()[1][0]["support"]["seq_outs"]
    labels = {tag for tags in part for tag in tags if tag.startswith("B-")}
    scarce = [tag for tag in drawn["scarce"] if tag.startswith("B-")]
    if 2 * len(scarce) > len(labels):
        episodes.unlink()
        manifest.unlink()
        return f"{len(scarce)} of {len(labels)} labels occur in fewer sentences"
    return None


def within(arguments, most, large, shots, episodes):
    """Episodes of fewer shots: the same queries, and support sets drawn from the large ones."""
    if episodes.exists():
        return
    ((domain, originals),) = json.loads(large.read_text()).items()
    smaller = []
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        for original in originals:
            # As an episode without queries, the support set is a corpus like any other.
            (work / "support.json").write_text(json.dumps({domain: [{"support": original["support"], "query": {"seq_ins": [], "seq_outs": []}}]}))
            answer = sample(arguments, work / "support.json", shots, 1, 0, work / "drawn.json")
            if answer.returncode:
                raise SystemExit(f"{domain}: {shots} of {most} shots\n{answer.stderr}")
            ((_, (drawn,)),) = json.loads((work / "drawn.json").read_text()).items()
            smaller.append({"support": drawn["support"], "query": original["query"]})
    episodes.write_text(json.dumps({domain: smaller}))


def sample(arguments, corpus, shots, n_episodes, n_queries, out):
    """In a small domain a tag may occur in one sentence only: it is kept, so that every number has the same labels."""
    settings = ["--shots", shots, "--episodes", n_episodes, "--queries", n_queries, "--seed", SEED, "--out", out, "--force"]
    settings += ["--min-sentences", 1] if n_queries == 0 else []
    return subprocess.run([arguments.fewtag, "sample", str(corpus), *map(str, settings)], capture_output=True, text=True)


def pages(arguments, scores, found, left_out):
    command = f"python3 benchmarks/accuracy/growth.py --split {arguments.split} --shots {' '.join(map(str, arguments.shots))}"
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    yield f"`{command}` at {commit}: mean F1 over {EPISODES} episodes of {QUERIES} queries a domain, the same queries at every number of shots, seed {SEED}.\n"
    yield "| domain (shots) | " + " | ".join(map(str, arguments.shots)) + " |"
    yield "|---|" + "---:|" * len(arguments.shots)
    for name, of_shots in scores.items():
        yield row(name, [f"{statistics.mean(of_shots[shots]):.1f}" if shots in of_shots else "–" for shots in arguments.shots])
    yield ""
    yield f"More examples are worse by more than {TOLERATED:.0f} point in {len(found)} of {sum(len(s) - 1 for s in scores.values() if s)} places:\n" if found else (
        f"Nowhere are more examples worse by more than {TOLERATED:.0f} point."
    )
    if found:
        yield "| domain | from | to | difference, 95 % interval |"
        yield "|---|---:|---:|---:|"
        yield from found
    if left_out:
        yield "\nLeft out, because the domain is too small:\n"
        yield from (f"- {reason}" for reason in left_out)


def falls(name, of_shots):
    """For each number of shots the best smaller one, if it is better by more than is tolerated."""
    mean = {shots: statistics.mean(f1) for shots, f1 in of_shots.items()}
    for more in of_shots:
        best = max((fewer for fewer in of_shots if fewer < more), key=mean.get, default=more)
        if mean[more] < mean[best] - TOLERATED:
            change = difference({name: of_shots[best]}, {name: of_shots[more]}, [name])
            yield row(name, [str(best), str(more), change])


if __name__ == "__main__":
    sys.exit(main())
