"""What a trained Transformer attends to in one rollout."""

from __future__ import annotations

import contextlib

import numpy as np
import torch

from amago.agent.policy import AgentPolicy
from amago.envs.registry import MakeEnv, first_task
from amago.envs.settings import EnvSettings
from amago.evaluation.play import PlaySettings, make_lanes, play
from amago.nets.memory.diagnose import LayerDiagnosis, diagnose
from amago.nets.memory.transformer import TransformerMemory
from amago.replay.collate import collate
from amago.rollout.recorder import Recorder
from amago.types import Trajectory, max_goals


def diagnose_rollout(
    policy: AgentPolicy,
    env: EnvSettings,
    settings: PlaySettings,
    *,
    make_env: MakeEnv | None = None,
) -> tuple[Trajectory, list[LayerDiagnosis]]:
    """Play one rollout in one lane and look at every layer's attention over it."""
    memory = policy.agent.memory
    if not isinstance(memory, TransformerMemory):
        raise ValueError(
            f"only a Transformer has attention, got {type(memory).__name__}; "
            "evaluate a run that was trained with --memory transformer"
        )
    finished: list[Trajectory] = []
    env = env if make_env is not None else first_task(env)
    with contextlib.closing(make_lanes(env, settings.one_rollout(), make_env)) as lanes:
        recorder = Recorder(lanes.spec, lanes.tasks)
        play(policy, lanes, 1, watchers=[lambda step: finished.extend(recorder.add(step))])
    with torch.no_grad():
        batch = collate(finished[:1], [0], max_goals(policy.agent.spec)).to(policy.device)
        encoded = policy.agent.eval().encoder(batch)
    return finished[0], diagnose(memory, encoded, batch.time)


def events(rollout: Trajectory) -> dict[str, list[int]]:
    """Rows at which a trial began, a reward came or a goal was complete; kinds without any are
    left out. A reward that every step earns is no event."""
    rewarded = rollout.prev_reward > 0
    found = {"trial starts": np.flatnonzero(rollout.first)}
    if rollout.progress is not None:
        found["goals"] = 1 + np.flatnonzero(np.diff(rollout.progress) > 0)
    elif 2 * rewarded.sum() < len(rewarded):
        found["rewards"] = np.flatnonzero(rewarded)
    kept = {name: rows[rows > 0].tolist() for name, rows in found.items()}
    return {name: rows for name, rows in kept.items() if rows}


def events_by_row(rollout: Trajectory) -> list[str]:
    """What each row of a rollout is: its start, a goal, a reward, the start of a trial, or other.

    A row that is several of these is the first of them, in this order.
    """
    kinds = ["other"] * (rollout.num_steps + 1)
    found = events(rollout)
    for name in ("trial starts", "rewards", "goals"):
        for row in found.get(name, ()):
            kinds[row] = name
    kinds[0] = "rollout start"
    return kinds
