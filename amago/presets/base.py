"""What presets are made of: a base configuration and the settings that a domain changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from amago.config import Config, override
from amago.presets.sizes import SIZES


@dataclass(frozen=True)
class Preset:
    summary: str
    """One line for `amago presets`."""
    base: Config
    changes: Mapping[str, Any]
    """Settings by their dotted names, in place of the base's."""

    @property
    def config(self) -> Config:
        return override(self.base, self.changes)


SMALL = override(Config(), {**SIZES["small"].settings(), "transformer.dropout": 0.0})
"""Networks that learn in minutes on one CPU thread."""

RECIPE = override(
    SMALL,
    {
        "env.num_lanes": 96,
        "rollout.steps_per_epoch": 100,
        "exploration.anneal_fraction": 0.6,
        "replay.capacity": 5_000,
        "replay.batch_rows": 2_400,
        "transformer.num_heads": 2,
        "transformer.position": "rope",
        "transformer.previous_row": True,
        "heads.num_critics": 2,
        "heads.layer_norm": True,
        "heads.popart_rate": 0.005,
        "agent.discounts": "horizon",
        "agent.acting_discount": None,
        "agent.target_tau": 0.03,
        "agent.trace": 0.95,
        "optim.learning_rate": 1e-3,
        "optim.final_fraction": 0.05,
        "optim.warmup_updates": 100,
        "optim.beta2": 0.95,
        "run.epochs": 60,
        "run.updates_per_epoch": 50,
        "run.eval_interval": 5,
    },
)
"""One set of learning settings for every domain: the search for it goes on (docs/notebook).

Two heads of 32 and relative positions, rows as whole transitions, about 2,400 of them an update;
discounts from the reward alone to half the horizon, at most 50 steps; critics whose hidden layers
are normalised, and targets that go on along the stored actions, so that values of fifty steps
arrive within hundreds of updates though the target copies follow slowly; a learning rate that
falls to a twentieth, which sharpens the small differences between actions; an optimiser that
forgets the large gradients of the beginning within twenty updates.
"""

PAPER = override(
    Config(),
    {
        "env.num_lanes": 12,
        "exploration.anneal_steps": 1_000_000,
        "replay.capacity": 20_000,
        "replay.batch_size": 24,
        "optim.learning_rate": 1e-4,
        "optim.weight_decay": 1e-3,
        "run.epochs": 600,
        "run.updates_per_epoch": 1000,
        "run.keep_interval": 50,
    },
)
"""Table 4, column "Other Domains": what the memory and meta-RL domains share."""

PAPER_INSTRUCTED = override(
    PAPER,
    {"env.num_lanes": 24, "optim.learning_rate": 3e-4, "optim.weight_decay": 1e-4},
)
"""Table 4, columns Package Delivery and MazeRunner."""
