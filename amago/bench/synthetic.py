"""Agents and batches of a given size, without an environment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from amago.agent.agent import Agent
from amago.agent.settings import DISCRETE_DISCOUNTS
from amago.agent.update import Learner
from amago.config import Config, override
from amago.replay.collate import collate
from amago.types import ActionSpec, Batch, EnvSpec, ObsSpec, Trajectory

OBS_SIZE, _NUM_ACTIONS = 8, 4  # of the order of POPGym's


@dataclass(frozen=True)
class Size:
    """An agent with the paper's heads (4 critics, 17 discounts), and the batch it learns from."""

    model_dim: int
    num_layers: int
    encoder: tuple[int, ...]
    batch_size: int
    context_length: int
    """Transitions of the longest window."""
    num_heads: int = 8
    head_hidden: tuple[int, ...] = (256, 256)
    horizon: bool = True
    """Whether rollouts end with the context, so that time is an input."""
    dropout: float = 0.05


def spec_of(size: Size) -> EnvSpec:
    return EnvSpec(
        "synthetic",
        {"observation": ObsSpec((OBS_SIZE,), "float32")},
        ActionSpec("discrete", _NUM_ACTIONS),
        size.context_length if size.horizon else None,
    )


def config_of(size: Size) -> Config:
    """Every setting that costs time is named here, so that defaults may change."""
    return override(
        Config(),
        {
            "memory": "transformer",
            "encoder.hidden": size.encoder,
            "encoder.normalize": True,
            "transformer.model_dim": size.model_dim,
            "transformer.num_heads": size.num_heads,
            "transformer.num_layers": size.num_layers,
            "transformer.dropout": size.dropout,
            "transformer.position": "sinusoid",
            "transformer.activation": "leaky_relu",
            "transformer.extra_norms": True,
            "transformer.sigma_reparam": True,
            "heads.hidden": size.head_hidden,
            "heads.num_critics": 4,
            "heads.probability_floor": 1e-3,
            "heads.popart": True,
            "agent.discounts": DISCRETE_DISCOUNTS,
            "agent.acting_discount": 0.999,
            "agent.target_critics": 2,
            "terms.cloning.filter": "binary",
            "replay.batch_size": size.batch_size,
            "replay.context_length": size.context_length,
        },
    )


def make_learner(size: Size, device: str = "cpu") -> Learner:
    torch.manual_seed(0)
    config = config_of(size)
    return Learner(Agent(spec_of(size), config).to(device), config.agent, config.optim)


def make_batch(size: Size, lengths: Sequence[int] | None = None) -> Batch:
    """Windows of `lengths` transitions; of the whole context where unset."""
    rng = np.random.default_rng(0)
    lengths = [size.context_length] * size.batch_size if lengths is None else lengths
    spec = spec_of(size)
    return collate([random_trajectory(spec, n, rng) for n in lengths], [0] * len(lengths))


def uniform_lengths(size: Size) -> list[int]:
    """Lengths drawn from 1..context, the same ones every time."""
    rng = np.random.default_rng(1)
    drawn: list[int] = rng.integers(1, size.context_length + 1, size=size.batch_size).tolist()
    return drawn


def random_trajectory(spec: EnvSpec, num_steps: int, rng: np.random.Generator) -> Trajectory:
    """A rollout of noise, terminal at its end."""
    rows = num_steps + 1
    action = np.zeros(rows, spec.action.stored_dtype)
    action[1:] = rng.integers(spec.action.size, size=num_steps)
    reward = rng.standard_normal(rows, np.float32)
    reward[0] = 0.0
    return Trajectory(
        obs={key: rng.standard_normal((rows, *item.shape), np.float32)
             for key, item in spec.obs.items()},
        prev_action=action,
        prev_reward=reward,
        first=np.arange(rows) == 0,
        terminal=np.arange(rows) == num_steps,
    )  # fmt: skip
