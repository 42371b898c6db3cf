"""Named settings: `domain` is sized for a CPU, `domain/paper` has the paper's Tables 3 and 4."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass

from amago.agent.settings import AgentSettings
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


def preset(name: str) -> Config:
    """The settings that a name stands for."""
    return find(name).make()


def find(name: str) -> Preset:
    if name in PRESETS:
        return PRESETS[name]
    close = difflib.get_close_matches(name, PRESETS, n=3, cutoff=0.4)
    hint = f"did you mean {' or '.join(close)}? " if close else ""
    raise ValueError(f"no preset is called {name!r}; {hint}`amago presets` lists them all")


def _small(width: int = 64, heads: int = 4) -> dict[str, TransformerSettings | object]:
    """Networks that learn in minutes on one CPU thread."""
    return {
        "transformer": TransformerSettings(
            model_dim=width, feedforward_dim=4 * width, num_heads=heads, num_layers=2
        ),
        "gru": GruSettings(hidden=128, output=width),
        "feedforward": FeedforwardSettings(width=width, hidden=4 * width),
        "encoder": EncoderSettings(hidden=(64, 64)),
        "heads": HeadSettings(actor_hidden=(128, 128), critic_hidden=(128, 128)),
    }


FEW_DISCOUNTS = (0.7, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999)
"""A thinned set for CPU-sized runs on discrete actions."""


def _t_maze() -> Config:
    small = _small()
    return Config(
        env=EnvSettings(id="amago/TMaze-v0", kwargs={"corridor": 100}, num_lanes=24),
        exploration=ExplorationSettings(kind="ends"),
        replay=ReplaySettings(capacity=5_000, batch_size=24),
        encoder=EncoderSettings(hidden=(64, 64), normalize=False),
        transformer=small["transformer"],  # type: ignore[arg-type]
        gru=small["gru"],  # type: ignore[arg-type]
        feedforward=small["feedforward"],  # type: ignore[arg-type]
        heads=HeadSettings(
            actor_hidden=(128, 128), critic_hidden=(128, 128), probability_floor=0.0
        ),
        agent=AgentSettings(
            discounts=(*FEW_DISCOUNTS, 0.9999),
            acting_discount=0.9999,
            reward_scale=100.0,
            greedy=True,
        ),
        run=RunSettings(epochs=100, updates_per_epoch=50, eval_interval=5),
    )


PRESETS = {
    "t-maze": Preset("Passive T-Maze, corridor 100: recall the first step at the last", _t_maze),
}
