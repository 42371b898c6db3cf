"""New worlds played by a trained agent, with somebody looking at every step."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

import amago
from amago.config import from_dict
from amago.envs.native import NativeVector
from amago.envs.registry import make_vector
from amago.training.run import read_header
from amago.types import Array

SEED = 12_345

Look = Callable[[Array, Array], None]
"""Called before every step with the lanes that still play and the actions of all lanes."""


def parse(description: str | None) -> tuple[Path, int]:
    """The run and the number of rollouts that the command line asks for; one thread."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("run", type=Path)
    parser.add_argument("--rollouts", type=int, default=200)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    return arguments.run, arguments.rollouts


def worlds(run: Path, count: int) -> NativeVector:
    """Environments as in the run, with worlds that it has not seen."""
    env = make_vector(from_dict(read_header(run)["config"]).env, seed=SEED, num_lanes=count)
    assert isinstance(env, NativeVector)
    return env


def play(run: Path, env: NativeVector, look: Look) -> tuple[Array, Array]:
    """One rollout per lane: which succeeded, and how many steps each took."""
    policy = amago.load(run).policy
    lanes = env.num_lanes
    playing, success = np.ones(lanes, np.bool_), np.zeros(lanes, np.bool_)
    steps = np.zeros(lanes, np.int64)
    rows, state = env.reset(), policy.initial_state(lanes)
    while playing.any():
        action, state = policy.act(rows, state)
        look(np.flatnonzero(playing), action)
        steps += playing
        step = env.step(action)
        if step.final is not None:
            assert step.final.success is not None
            ended = playing[step.final_lanes]
            success[step.final_lanes[ended]] = step.final.success[ended]
            playing[step.final_lanes] = False
        rows = step.rows
    return success, steps
