"""The few-shot sequence labeller once more, in PyTorch: the independent reference of this repository.

It is written from the paper, shares no code with the Rust crates, and prefers the plain way: whole tensors,
autograd for every gradient, one sentence at a time after the encoder. The golden files
(`scripts/golden_model.py`) and the speed comparison (`benchmarks/model`) both run it.
"""
