"""The training loop: AdamW in three groups, warm-up and linear decay, clipping."""

from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import get_linear_schedule_with_warmup

from .episodes import Episode
from .model import Tagger

Batch = list[tuple[int, int]]  # (episode, query)


@dataclass(frozen=True)
class Optimisation:
    updates: int
    encoder_rate: float
    head_rate: float = 1e-3
    decay: float = 0.01
    warm_up: int = 0  # updates
    clip: float = 1.0


def optimiser(model: Tagger, o: Optimisation) -> torch.optim.AdamW:
    """Encoder matrices decay; biases, layer norms, λ and transitions do not."""
    plain = lambda name: name.endswith("bias") or "LayerNorm" in name
    encoder = list(model.encoder.named_parameters())
    return torch.optim.AdamW(
        [
            {"params": [p for n, p in encoder if not plain(n)], "lr": o.encoder_rate, "weight_decay": o.decay},
            {"params": [p for n, p in encoder if plain(n)], "lr": o.encoder_rate, "weight_decay": 0.0},
            {"params": [model.scale, *model.transitions.parameters(), *model.mix.parameters()], "lr": o.head_rate, "weight_decay": 0.0},
        ],
        betas=(0.9, 0.999),
        eps=1e-8,
        fused=True,
    )


def batch_loss(model: Tagger, episodes: list[Episode], batch: Batch) -> Tensor:
    """The mean over the sentences of a batch; each episode's queries share one reading of the support."""
    losses = []
    for e in dict.fromkeys(e for e, _ in batch):
        queries = [episodes[e].queries[q] for other, q in batch if other == e]
        losses += model.losses(episodes[e].support, queries)
    return torch.stack(losses).mean()


def train(model: Tagger, episodes: list[Episode], batches: list[Batch], o: Optimisation) -> tuple[list[float], list[float]]:
    """Runs one update per batch; returns the losses and gradient norms before each."""
    adamw, schedule = with_schedule(model, o)
    steps = [update(model, adamw, schedule, batch_loss(model, episodes, batch), o) for batch in batches]
    losses, norms = zip(*steps)
    return list(losses), list(norms)


def with_schedule(model: Tagger, o: Optimisation):
    """Rates rise from 0 to their peak over the warm-up and fall to 0 at the last update's end."""
    adamw = optimiser(model, o)
    return adamw, get_linear_schedule_with_warmup(adamw, o.warm_up, o.updates)


def update(model: Tagger, adamw, schedule, loss: Tensor, o: Optimisation) -> tuple[float, float]:
    """The loss and the norm of its gradient before clipping."""
    adamw.zero_grad()
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), o.clip)
    adamw.step()
    schedule.step()
    return loss.item(), norm.item()
