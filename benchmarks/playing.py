"""New worlds played by a trained agent, with somebody looking at every decision."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import amago
from amago.envs.native import NativeVector
from amago.evaluation.play import PlaySettings, make_lanes, make_policy, play
from amago.rollout.stats import RolloutRecord
from amago.saved.header import read_config
from amago.types import Array, Policy, Timestep

SEED = 12_345

Look = Callable[[Array, Array], None]
"""Called before every step with the lanes of first rollouts and the actions of all lanes."""


class Observed:
    """A policy whose decisions somebody looks at, in the first rollout of every lane."""

    def __init__(self, policy: Policy, look: Look) -> None:
        self.policy, self.look = policy, look

    def initial_state(self, num_lanes: int) -> Any:
        self.begun = np.zeros(num_lanes, np.int64)
        return self.policy.initial_state(num_lanes)

    def act(self, timestep: Timestep, state: Any) -> tuple[Array, Any]:
        self.begun += timestep.time == 0
        action, state = self.policy.act(timestep, state)
        self.look(np.flatnonzero(self.begun == 1), action)
        return action, state


def parse(description: str | None) -> tuple[Path, int]:
    """The run and the number of rollouts that the command line asks for; one thread."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("run", type=Path)
    parser.add_argument("--rollouts", type=int, default=200)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    return arguments.run, arguments.rollouts


def settings_of(rollouts: int) -> PlaySettings:
    """One rollout per lane, in worlds that no run has seen."""
    return PlaySettings(episodes=rollouts, num_lanes=rollouts, world_seed=SEED)


def worlds(run: Path, rollouts: int) -> NativeVector:
    """Environments as in the run."""
    env = make_lanes(read_config(run).env, settings_of(rollouts))
    assert isinstance(env, NativeVector)
    return env


def play_observed(run: Path, env: NativeVector, look: Look) -> list[RolloutRecord]:
    """One rollout per lane, in the order of lanes."""
    agent = amago.load(run).policy.agent
    policy = make_policy(agent, settings_of(env.num_lanes))
    records = play(Observed(policy, look), env, env.num_lanes)
    return sorted(records, key=lambda record: record.lane)
