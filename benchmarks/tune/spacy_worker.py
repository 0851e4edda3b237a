"""spaCy's `ner`, trained on the CPU: LEARN GOLD FOUND SEED. Prints the seconds that learning took.

The usual pipeline for a CPU (`tok2vec` of hashed words with a transition-based parser), batches that grow, dropout of 0.2. The number of epochs is
chosen on a fifth of the sentences that is left out; then it learns from all of them.
"""

import random
import sys
import time

import spacy
from conll import read, spans, write
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import compounding, fix_random_seed, minibatch

EPOCHS, PATIENCE = 100, 20
MOST_WORDS = 2_000_000  # With thousands of sentences, fewer epochs.


def main():
    learn, gold, found, seed = sys.argv[1:]
    fix_random_seed(int(seed))
    random.seed(int(seed))
    sentences, test = read(learn), read(gold)
    start = time.monotonic()
    order = random.sample(sentences, len(sentences))
    n_out = max(1, len(order) // 5)
    epochs = best_epochs(order[n_out:] or order, order[:n_out])
    nlp = None
    for nlp in trained(sentences, epochs):
        pass
    seconds = time.monotonic() - start
    write(found, [[(word, tag) for (word, _), tag in zip(sentence, tags(nlp, sentence))] for sentence in test])
    print(seconds)


def best_epochs(rest, out):
    best, at = -1.0, 1
    for epoch, nlp in enumerate(trained(rest, EPOCHS), 1):
        right = wrong = missed = 0
        for sentence in out:
            gold, found = spans([tag for _, tag in sentence]), spans(tags(nlp, sentence))
            right, wrong, missed = right + len(gold & found), wrong + len(found - gold), missed + len(gold - found)
        score = 2 * right / max(1, 2 * right + wrong + missed)
        # Of equal ones the last: for many epochs it finds nothing at all.
        if score >= best:
            best, at = score, epoch
        if epoch - at >= PATIENCE:
            break
    return at


def trained(sentences, epochs):
    """The pipeline after each epoch."""
    nlp = spacy.blank("en")
    nlp.add_pipe("ner")
    examples = [example(nlp, sentence) for sentence in sentences]
    optimizer = nlp.initialize(lambda: examples)
    n_words = sum(map(len, sentences))
    for epoch in range(min(epochs, max(1, MOST_WORDS // n_words))):
        random.shuffle(examples)
        for part in minibatch(examples, size=compounding(4.0, 32.0, 1.001)):
            nlp.update(part, sgd=optimizer, drop=0.2)
        yield nlp


def example(nlp, sentence):
    doc = Doc(nlp.vocab, words=[word for word, _ in sentence])
    starts = spans([tag for _, tag in sentence])
    return Example.from_dict(doc, {"entities": [(doc[a].idx, doc[b - 1].idx + len(doc[b - 1]), label) for a, b, label in starts]})


def tags(nlp, sentence):
    doc = Doc(nlp.vocab, words=[word for word, _ in sentence])
    for _, pipe in nlp.pipeline:
        doc = pipe(doc)
    answer = ["O"] * len(sentence)
    for span in doc.ents:
        answer[span.start : span.end] = [f"B-{span.label_}"] + [f"I-{span.label_}"] * (len(span) - 1)
    return answer


main()
