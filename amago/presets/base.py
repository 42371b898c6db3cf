"""What the presets are made of: CPU-sized networks, and the paper's shared settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from amago.agent.settings import AgentSettings, OptimSettings
from amago.config import Config
from amago.envs.settings import EnvSettings
from amago.nets.settings import (
    EncoderSettings,
    FeedforwardSettings,
    GruSettings,
    HeadSettings,
    TransformerSettings,
)
from amago.replay.settings import ReplaySettings
from amago.rollout.settings import ExplorationSettings
from amago.training.settings import RunSettings

PAPER_ANNEAL = 1_000_000
"""Table 4: steps of each actor over which exploration is annealed."""


@dataclass(frozen=True)
class Preset:
    summary: str
    make: Callable[[], Config]


SMALL = Config(
    transformer=TransformerSettings(
        model_dim=64, feedforward_dim=256, num_heads=4, num_layers=2, dropout=0.0
    ),
    gru=GruSettings(hidden=128, output=64),
    feedforward=FeedforwardSettings(width=64, hidden=256),
    encoder=EncoderSettings(hidden=(64, 64)),
    heads=HeadSettings(actor_hidden=(128, 128), critic_hidden=(128, 128)),
)
"""Networks that learn in minutes on one CPU thread."""


MANY_TRIES = replace(
    SMALL,
    replay=ReplaySettings(capacity=5_000),
    agent=AgentSettings(
        discounts=(0.5, 0.7, 0.9, 0.95, 0.98, 0.99),
        acting_discount=0.98,
        reward_scale=100.0,
        target_tau=0.01,
    ),
    optim=OptimSettings(learning_rate=1e-3),
    run=RunSettings(epochs=100, updates_per_epoch=50, eval_interval=5),
)
"""Rollouts of about a hundred steps with rewards all along: Dark Key-To-Door, POPGym."""


def paper(
    env: EnvSettings,
    *,
    model_dim: int,
    num_layers: int,
    encoder: tuple[int, ...],
    agent: AgentSettings,
    exploration: ExplorationSettings | None = None,
    normalize: bool = True,
    probability_floor: float = 1e-3,
) -> Config:
    """Tables 3 and 4, column "Other Domains": what the memory and meta-RL domains share."""
    return Config(
        env=replace(env, num_lanes=12),
        exploration=exploration or ExplorationSettings(anneal_steps=PAPER_ANNEAL),
        replay=ReplaySettings(capacity=20_000, batch_size=24),
        encoder=EncoderSettings(hidden=encoder, normalize=normalize),
        transformer=TransformerSettings(
            model_dim=model_dim,
            feedforward_dim=4 * model_dim,
            num_heads=8,
            num_layers=num_layers,
        ),
        gru=GruSettings(hidden=256, output=model_dim),
        feedforward=FeedforwardSettings(
            width=model_dim, hidden=4 * model_dim, num_layers=num_layers
        ),
        heads=HeadSettings(probability_floor=probability_floor),
        agent=agent,
        optim=OptimSettings(learning_rate=1e-4, weight_decay=1e-3),
        run=RunSettings(epochs=600, updates_per_epoch=1000, eval_interval=10, keep_interval=50),
    )
