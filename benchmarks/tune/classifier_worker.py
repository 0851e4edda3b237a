"""A token classifier fine-tuned with transformers and PyTorch: LEARN GOLD FOUND SEED ENCODER. Prints the seconds that learning took.

As people do it: a linear layer over the encoder, all weights move, AdamW with a linear schedule, batches of 16. The rate and the number
of epochs are chosen on a fifth of the sentences that is left out; then it learns from all of them.
"""

import copy
import random
import sys
import time

import torch
from conll import read, spans, write
from tokenizers import Tokenizer
from transformers import AutoConfig, AutoModelForTokenClassification

RATES, EPOCHS, BATCH, LENGTH = [5e-5, 1e-4, 3e-4], [10, 20, 40], 16, 256
MOST_UPDATES = 1500  # With thousands of sentences, fewer epochs.


def main():
    learn, gold, found, seed, encoder = sys.argv[1:]
    torch.manual_seed(int(seed))
    torch.set_num_threads(2)
    random.seed(int(seed))
    sentences, test = read(learn), read(gold)
    tags = ["O"] + sorted({tag for sentence in sentences for _, tag in sentence} - {"O"})
    tags += [f"I-{tag[2:]}" for tag in tags if tag.startswith("B-") and f"I-{tag[2:]}" not in tags]
    tokenizer = Tokenizer.from_file(f"{encoder}/tokenizer.json")
    tokenizer.no_padding()
    start = time.monotonic()
    base = AutoModelForTokenClassification.from_pretrained(encoder, config=AutoConfig.from_pretrained(encoder, num_labels=len(tags)))
    encoded = [encode(tokenizer, sentence, tags) for sentence in sentences]
    order = list(range(len(encoded)))
    random.shuffle(order)
    n_out = max(1, len(order) // 5)
    out, rest = order[:n_out], order[n_out:]
    best = (-1.0, RATES[0], EPOCHS[0])
    for rate in RATES:
        for epochs in EPOCHS:
            if rest and epochs * len(rest) / BATCH <= max(MOST_UPDATES, EPOCHS[0] * len(rest) / BATCH):
                model = train(base, [encoded[i] for i in rest], rate, epochs)
                best = max(best, (f1(model, [encoded[i] for i in out], [sentences[i] for i in out], tags), rate, epochs))
    model = train(base, encoded, *best[1:])
    seconds = time.monotonic() - start
    encoded = [encode(tokenizer, sentence, tags) for sentence in test]
    write(found, [[(word, tag) for (word, _), tag in zip(sentence, answer)] for sentence, answer in zip(test, predict(model, encoded, test, tags))])
    print(seconds)


def encode(tokenizer, sentence, tags):
    """Pieces, and the place of each word's first piece with its tag; words beyond the longest sequence have none."""
    pieces, firsts, wanted = [tokenizer.token_to_id("[CLS]")], [], []
    for word, tag in sentence:
        ids = tokenizer.encode(word, add_special_tokens=False).ids or [tokenizer.token_to_id("[UNK]")]
        if len(pieces) + len(ids) >= LENGTH:
            break
        firsts.append(len(pieces))
        wanted.append(tags.index(tag) if tag in tags else 0)
        pieces += ids
    return pieces + [tokenizer.token_to_id("[SEP]")], firsts, wanted


def batch(items):
    longest = max(len(pieces) for pieces, _, _ in items)
    ids, mask, labels = (torch.zeros(len(items), longest, dtype=torch.long) for _ in range(3))
    labels -= 100
    for row, (pieces, firsts, wanted) in enumerate(items):
        ids[row, : len(pieces)] = torch.tensor(pieces)
        mask[row, : len(pieces)] = 1
        labels[row, firsts] = torch.tensor(wanted)
    return ids, mask, labels


def train(base, encoded, rate, epochs):
    model = copy.deepcopy(base)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.01)
    n_updates = epochs * -(-len(encoded) // BATCH)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: min((n + 1) / (0.1 * n_updates + 1), max(0.0, (n_updates - n) / n_updates)))
    for _ in range(epochs):
        order = random.sample(encoded, len(encoded))
        for at in range(0, len(order), BATCH):
            ids, mask, labels = batch(order[at : at + BATCH])
            loss = model(input_ids=ids, attention_mask=mask, labels=labels).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
    return model.eval()


@torch.no_grad()
def predict(model, encoded, sentences, tags):
    answers = []
    for at in range(0, len(encoded), BATCH):
        items = encoded[at : at + BATCH]
        ids, mask, _ = batch(items)
        best = model(input_ids=ids, attention_mask=mask).logits.argmax(-1)
        for row, (_, firsts, _) in enumerate(items):
            found = [tags[i] for i in best[row, firsts].tolist()]
            answers.append(legal(found + ["O"] * (len(sentences[at + row]) - len(found))))
    return answers


def legal(tags):
    """An `I` that continues nothing begins."""
    fixed = []
    for tag in tags:
        continues = fixed and fixed[-1] != "O" and fixed[-1][2:] == tag[2:]
        fixed.append(f"B-{tag[2:]}" if tag.startswith("I-") and not continues else tag)
    return fixed


def f1(model, encoded, sentences, tags):
    right = wrong = missed = 0
    for sentence, answer in zip(sentences, predict(model, encoded, sentences, tags)):
        gold, found = spans([tag for _, tag in sentence]), spans(answer)
        right, wrong, missed = right + len(gold & found), wrong + len(found - gold), missed + len(gold - found)
    return 2 * right / max(1, 2 * right + wrong + missed)


main()
