"""Playing a fixed number of rollouts and saying what they earned."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from amago.agent.policy import AgentPolicy
from amago.envs.registry import make_vector
from amago.envs.settings import EnvSettings
from amago.rollout.driver import drive
from amago.rollout.random_policy import RandomPolicy
from amago.rollout.stats import RolloutRecord, RolloutTracker
from amago.types import EnvSpec, Policy, Step, VectorEnv

MAX_STEPS_WITHOUT_END = 100_000
MAX_LANES = 32


def evaluate_rollouts(
    policy: Policy,
    env: VectorEnv,
    episodes: int,
    watch: Callable[[Step], None] | None = None,
) -> list[RolloutRecord]:
    """Exactly `episodes` rollouts, shared out over the lanes beforehand.

    A fixed quota per lane keeps short rollouts from crowding out long ones. The lanes begin
    at their first world, so two policies on one environment meet the same worlds.
    """
    if episodes < 1:
        raise ValueError(f"an evaluation needs at least 1 episode, got {episodes}")
    env.episodes = np.zeros_like(env.episodes)
    lanes = np.arange(env.num_lanes)
    quota = episodes // env.num_lanes + (lanes < episodes % env.num_lanes)
    tracker, records = RolloutTracker(env), []
    patience = max(MAX_STEPS_WITHOUT_END, 2 * (env.spec.horizon or 0))
    since_end = 0
    for step in drive(env, policy):
        if watch is not None:
            watch(step)
        since_end += 1
        for record in tracker.add(step):
            since_end = 0
            if quota[record.lane] > 0:
                quota[record.lane] -= 1
                records.append(record)
        if not quota.any():
            break
        if since_end > patience:
            raise RuntimeError(
                f"no episode of {env.spec.name} ended within {patience} steps; "
                "give it a limit with --env.horizon"
            )
    return records


def check_spaces(trained: EnvSpec, given: EnvSpec) -> None:
    """ValueError unless a policy that was trained on one environment can act in the other; a
    policy that follows no instructions does not mind being given some."""
    fits = (given.obs, given.action) == (trained.obs, trained.action)
    if not fits or trained.goals not in (None, given.goals):
        raise ValueError(
            f"the policy was trained on {trained.name} with {_spaces(trained)}, but "
            f"{given.name} has {_spaces(given)}"
        )


def _spaces(spec: EnvSpec) -> str:
    return f"observations {dict(spec.obs)}, actions {spec.action} and goals {spec.goals}"


def evaluate_instructions(
    policy: AgentPolicy,
    settings: EnvSettings,
    instructions: Sequence[str],
    episodes: int,
    seed: int,
) -> list[dict[str, Any]]:
    """How often each instruction is followed to its end, by the policy and by random play.

    The last row is of the instructions that the environment itself draws. All rows meet the
    same worlds.
    """
    rows = []
    for instruction in (*instructions, ""):
        asked = replace(settings, instruction=instruction)
        row: dict[str, Any] = {"instruction": instruction or "(as drawn)"}
        for name in ("success", "random"):
            # Each in lanes of its own: what one achieves may change what lanes ask for later.
            env = make_vector(asked, seed=seed, num_lanes=min(episodes, MAX_LANES))
            with contextlib.closing(env):
                check_spaces(policy.agent.spec, env.spec)
                player = policy if name == "success" else RandomPolicy(env.spec, seed)
                records = evaluate_rollouts(player, env, episodes)
            row[name] = float(np.mean([record.success for record in records]))
        rows.append(row)
    return rows
