#!/usr/bin/env python3
"""Writes crates/fewtag-experiments/tests/golden/lstm.json: a bidirectional LSTM tagger in PyTorch, its loss and gradients.

The weights are given in our layout: one matrix [inputs + hidden + 1, 4 * hidden] a direction, gates i, f, g, o,
the two biases of PyTorch added up into the last row; the output layer is [2 * hidden + 1, tags], bias last.
"""
import json
import pathlib

import torch

OUT = pathlib.Path(__file__).parent.parent / "crates/fewtag-experiments/tests/golden/lstm.json"


def rows(tensor):
    return [[float(x) for x in row] for row in tensor]


def direction(lstm, suffix, of):
    w_x, w_h = of(getattr(lstm, f"weight_ih_l0{suffix}")), of(getattr(lstm, f"weight_hh_l0{suffix}"))
    bias = of(getattr(lstm, f"bias_ih_l0{suffix}"))
    return torch.cat([w_x, w_h, bias[:, None]], dim=1).T


def output(linear, of):
    return torch.cat([of(linear.weight), of(linear.bias)[:, None]], dim=1).T


def case(name, n_words, n_inputs, n_hidden, n_tags):
    lstm = torch.nn.LSTM(n_inputs, n_hidden, bidirectional=True)
    linear = torch.nn.Linear(2 * n_hidden, n_tags)
    with torch.no_grad():
        for suffix in ["", "_reverse"]:  # We have one bias: PyTorch's second one stays zero.
            getattr(lstm, f"bias_hh_l0{suffix}").zero_()
    inputs = torch.randn(n_words, n_inputs)
    gold = torch.randint(n_tags, (n_words,))
    scores = linear(lstm(inputs[:, None])[0][:, 0])
    loss = torch.nn.functional.cross_entropy(scores, gold, reduction="sum")
    loss.backward()
    value, gradient = (lambda p: p.detach()), (lambda p: p.grad)
    return {
        "name": name,
        "inputs": rows(inputs),
        "gold": gold.tolist(),
        "left_to_right": rows(direction(lstm, "", value)),
        "right_to_left": rows(direction(lstm, "_reverse", value)),
        "output": rows(output(linear, value)),
        "scores": rows(scores.detach()),
        "loss": loss.item(),
        "d_left_to_right": rows(direction(lstm, "", gradient)),
        "d_right_to_left": rows(direction(lstm, "_reverse", gradient)),
        "d_output": rows(output(linear, gradient)),
    }


torch.manual_seed(1)
cases = [case("one word", 1, 3, 2, 2), case("odd sizes", 5, 3, 5, 4), case("long", 20, 4, 3, 3)]
OUT.write_text(json.dumps(cases))
print(OUT, torch.__version__)
