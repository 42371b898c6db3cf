"""The networks of the plain implementation."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from amago.config import Config
from amago.nets.settings import TransformerSettings
from amago.types import EnvSpec


@dataclass(frozen=True)
class Rows:
    """What the networks read: rows [N, L] of N padded sequences."""

    obs: dict[str, Tensor]
    prev_action: Tensor
    prev_reward: Tensor
    time: Tensor
    first: Tensor


def _mlp(*sizes: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for size_in, size_out in pairwise(sizes):
        layers += [nn.Linear(size_in, size_out), nn.LeakyReLU()]
    return nn.Sequential(*layers[:-1])


def _positions(time: Tensor, width: int) -> Tensor:
    powers = torch.arange(width // 2, dtype=torch.float64) / (width // 2)
    angles = time.double()[..., None] / 10_000.0**powers
    return torch.cat((angles.sin(), angles.cos()), -1).float()


class SigmaLinear(nn.Module):
    """(gain/σ(W))·W, with a gain that is learned and begins at σ(W)."""

    u: Tensor
    v: Tensor

    def __init__(self, size_in: int, size_out: int, bias: bool = True) -> None:
        super().__init__()
        linear = nn.Linear(size_in, size_out, bias)
        self.weight, self.bias = linear.weight, linear.bias
        left, sigma, right = torch.linalg.svd(self.weight.detach(), full_matrices=False)
        self.gain = nn.Parameter(sigma[0].clone())
        self.register_buffer("u", left[:, 0].clone())
        self.register_buffer("v", right[0].clone())

    @torch.no_grad()
    def power_iterate(self) -> None:
        self.v.copy_(F.normalize(self.weight.T @ self.u, dim=0))
        self.u.copy_(F.normalize(self.weight @ self.v, dim=0))

    def forward(self, x: Tensor) -> Tensor:
        sigma = self.u @ (self.weight @ self.v)
        return F.linear(x, self.gain / sigma * self.weight, self.bias)


class _Block(nn.Module):
    """One layer of the Transformer."""

    def __init__(self, settings: TransformerSettings) -> None:
        super().__init__()
        width, hidden = settings.model_dim, settings.feedforward_dim
        self.num_heads = settings.num_heads
        self.norm_attention, self.norm_mixed = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = SigmaLinear(width, 3 * width, bias=False), SigmaLinear(width, width)
        self.head_scale = nn.Parameter(torch.ones(settings.num_heads, 1))
        self.norm_feedforward, self.norm_hidden = nn.LayerNorm(width), nn.LayerNorm(hidden)
        self.widen, self.narrow = SigmaLinear(width, hidden), SigmaLinear(hidden, width)
        self.dropout = nn.Dropout(settings.dropout)

    def forward(self, x: Tensor, allowed: Tensor) -> Tensor:
        batch, rows, width = x.shape
        heads = self.qkv(self.norm_attention(x)).view(batch, rows, 3, self.num_heads, -1)
        query, key, value = (part.transpose(1, 2) for part in heads.unbind(2))
        scores = query @ key.transpose(-1, -2) / math.sqrt(width / self.num_heads)
        weights = scores.masked_fill(~allowed, -torch.inf).softmax(-1)  # [B, H, L, L]
        mixed = (weights @ value).transpose(1, 2) * self.head_scale
        x = x + self.norm_mixed(self.out(mixed.reshape(batch, rows, width)))
        hidden = self.norm_hidden(F.leaky_relu(self.widen(self.norm_feedforward(x))))
        after: Tensor = x + self.dropout(self.narrow(hidden))
        return after


class _Statistics(nn.Module):
    """Bias-corrected running mean and deviation."""

    mean: Tensor
    second: Tensor
    mass: Tensor

    def __init__(self, size: int, rate: float, min_variance: float) -> None:
        super().__init__()
        self.rate, self.min_variance = rate, min_variance
        for name, shape in (("mean", (size,)), ("second", (size,)), ("mass", ())):
            self.register_buffer(name, torch.zeros(shape, dtype=torch.float64))

    @torch.no_grad()
    def update(self, x: Tensor) -> None:
        self.mean.lerp_(x.double().mean(0), self.rate)
        self.second.lerp_(x.double().square().mean(0), self.rate)
        self.mass.lerp_(torch.ones((), dtype=torch.float64), self.rate)

    def read(self) -> tuple[Tensor, Tensor]:
        if self.mass == 0:
            return torch.zeros(len(self.mean)), torch.ones(len(self.mean))
        mean = self.mean / self.mass
        variance = self.second / self.mass - mean.square()
        return mean.float(), variance.clamp(min=self.min_variance).sqrt().float()


class PlainAgent(nn.Module):
    """Encoder, Transformer, actor and critics, with target copies of the last two."""

    discounts: Tensor

    def __init__(self, spec: EnvSpec, config: Config) -> None:
        super().__init__()
        _check(spec, config)
        self.spec, self.config = spec, config
        discounts = config.agent.resolve_discounts("discrete", spec.horizon)
        self.acting_index = discounts.index(config.agent.resolve_acting(spec.horizon))
        self.register_buffer("discounts", torch.tensor(discounts))
        self.shape = (len(discounts), spec.action.size)
        outputs = math.prod(self.shape)
        width, heads = config.transformer.model_dim, config.heads
        num_real = sum(math.prod(item.shape) for item in spec.obs.values()) + 1
        size_in = num_real + spec.action.size + 1 + (spec.horizon is not None)
        self.normalizer = _Statistics(num_real, 1e-4, 1e-4)
        self.encoder = _mlp(size_in, *config.encoder.hidden)
        self.encoder_norm = nn.LayerNorm(config.encoder.hidden[-1])
        self.embed = nn.Linear(config.encoder.hidden[-1], width)
        self.dropout = nn.Dropout(config.transformer.dropout)
        self.blocks = nn.ModuleList(
            _Block(config.transformer) for _ in range(config.transformer.num_layers)
        )
        self.norm = nn.LayerNorm(width)
        self.actor = _mlp(width, *heads.hidden, outputs)
        self.critics = nn.ModuleList(
            _mlp(width, *heads.hidden, outputs) for _ in range(heads.num_critics)
        )
        self.popart = _Statistics(len(discounts), heads.popart_rate, 1e-4)
        self.target_actor = copy.deepcopy(self.actor).requires_grad_(False)
        self.target_critics = copy.deepcopy(self.critics).requires_grad_(False)

    def reals(self, rows: Rows) -> Tensor:
        """Observation and reward of rows with any leading dimensions."""
        start = rows.prev_reward.dim()
        obs = [rows.obs[key].flatten(start) for key in sorted(rows.obs)]
        return torch.cat([*obs, rows.prev_reward[..., None]], -1)

    def states(self, rows: Rows, allowed: Tensor) -> Tensor:
        """The memory's state after every row; `allowed` [L, L] says which rows see which."""
        reals = self.reals(rows)
        if self.config.encoder.normalize:
            mean, std = self.normalizer.read()
            reals = ((reals - mean) / std).clamp(-10.0, 10.0)
        action = F.one_hot(rows.prev_action, self.shape[1]) * (rows.time > 0)[..., None]
        features = [reals, action.float(), rows.first.float()[..., None]]
        if self.spec.horizon is not None:
            features.append((rows.time / self.spec.horizon)[..., None])
        x = self.embed(self.encoder_norm(self.encoder(torch.cat(features, -1))))
        x = self.dropout(x + _positions(rows.time, x.shape[-1]))
        for block in self.blocks:
            x = block(x, allowed)
        states: Tensor = self.norm(x)
        return states

    def probabilities(self, logits: Tensor) -> Tensor:
        """Of the actions [..., G, A], none of them 0."""
        floor = min(self.config.heads.probability_floor, 0.1 / self.shape[1])
        return (1.0 - self.shape[1] * floor) * logits.softmax(-1) + floor


def _check(spec: EnvSpec, config: Config) -> None:
    kinds = {item.kind for item in spec.obs.values()}
    if spec.action.kind != "discrete" or kinds != {"real"} or config.memory != "transformer":
        raise ValueError(
            "the plain implementation expects discrete actions, real-valued observations and "
            f"the transformer, got {spec.action.kind} actions, {sorted(kinds)} observations "
            f"and {config.memory}"
        )
