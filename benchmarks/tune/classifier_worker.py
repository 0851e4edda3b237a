"""A token classifier fine-tuned with transformers and PyTorch: LEARN GOLD FOUND SEED ENCODER. Prints the seconds that learning took.

As people do it: a linear layer over the encoder, all weights move, AdamW at a rate that rises for a tenth of the updates and stays, batches of 16. The
rate and after how many epochs to stop are chosen on a fifth of the sentences that is left out; then it learns from all of them.
"""

import copy
import random
import sys
import time

import torch
from conll import read, spans, write
from tokenizers import Tokenizer
from transformers import AutoConfig, AutoModelForTokenClassification

RATES, STOPS, BATCH, LENGTH = [1e-4, 3e-4], 4, 16, 256
EPOCHS, MOST_UPDATES = 40, 600  # With many sentences, fewer epochs.


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
    n_epochs = max(STOPS, min(EPOCHS, MOST_UPDATES * BATCH // len(encoded)) // STOPS * STOPS)
    best = (-1.0, RATES[0], n_epochs)
    for rate in RATES if rest else []:
        for epoch, model in trained(base, [encoded[i] for i in rest], rate, n_epochs):
            if epoch % (n_epochs // STOPS) == 0:
                best = max(best, (f1(model, [encoded[i] for i in out], [sentences[i] for i in out], tags), rate, epoch))
    _, rate, wanted = best
    model = next(model for epoch, model in trained(base, encoded, rate, n_epochs) if epoch == wanted)
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


def trained(base, encoded, rate, epochs):
    """The number of an epoch and the model after it."""
    model = copy.deepcopy(base)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.01)
    n_updates = epochs * -(-len(encoded) // BATCH)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: min(1.0, (n + 1) / (0.1 * n_updates + 1)))
    for epoch in range(1, epochs + 1):
        model.train()
        order = random.sample(encoded, len(encoded))
        for at in range(0, len(order), BATCH):
            ids, mask, labels = batch(order[at : at + BATCH])
            loss = model(input_ids=ids, attention_mask=mask, labels=labels).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
        yield epoch, model.eval()


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
