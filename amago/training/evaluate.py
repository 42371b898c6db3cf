"""Playing a fixed number of rollouts and saying what they earned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from amago.envs.registry import make_vector
from amago.envs.settings import EnvSettings
from amago.rollout.driver import drive
from amago.rollout.random_policy import RandomPolicy
from amago.rollout.stats import RolloutRecord, RolloutTracker
from amago.types import Policy, Step, VectorEnv

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
        if since_end > MAX_STEPS_WITHOUT_END:
            raise RuntimeError(
                f"no episode of {env.spec.name} ended within {MAX_STEPS_WITHOUT_END} steps; "
                "give it a limit with --env.horizon"
            )
    return records


def evaluate_instructions(
    policy: Policy, settings: EnvSettings, instructions: Sequence[str], episodes: int, seed: int
) -> list[dict[str, Any]]:
    """How often each instruction is followed to its end, by the policy and by random play.

    The last row is of the instructions that the environment itself draws. All rows meet the
    same worlds.
    """
    rows = []
    for instruction in (*instructions, ""):
        asked = replace(settings, instruction=instruction)
        env = make_vector(asked, seed=seed, num_lanes=min(episodes, MAX_LANES))
        try:
            players = {"success": policy, "random": RandomPolicy(env.spec, seed)}
            shares = {
                name: float(np.mean([r.success for r in evaluate_rollouts(player, env, episodes)]))
                for name, player in players.items()
            }
        finally:
            env.close()
        rows.append({"instruction": instruction or "(as drawn)", **shares})
    return rows
