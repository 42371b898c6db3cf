"""What a policy earns, beside perfect play and other players on the same worlds."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from amago.agent.agent import Agent
from amago.envs.registry import MakeEnv
from amago.envs.settings import EnvSettings
from amago.evaluation.play import PlaySettings, check_fits, make_lanes, make_policy, play
from amago.evaluation.references import oracle_records
from amago.rollout.scores import success_by_length, summarise
from amago.types import EnvSpec, Policy, VectorEnv

_KEPT_ELSEWHERE = ("return_per_block", "episodes", "tasks")
"""Of other players: in "references", the agent's own number, and beside the agent's tasks."""


def evaluate_agent(
    agent: Agent,
    env: EnvSettings,
    settings: PlaySettings,
    *,
    controls: Mapping[str, Policy] | None = None,
    make_env: MakeEnv | None = None,
) -> dict[str, Any]:
    """Scores of an agent; see `evaluate`."""
    policy = make_policy(agent, settings)
    return evaluate_policy(policy, agent.spec, env, settings, controls=controls, make_env=make_env)


def evaluate_policy(
    policy: Policy,
    trained: EnvSpec,
    env: EnvSettings,
    settings: PlaySettings,
    *,
    controls: Mapping[str, Policy] | None = None,
    make_env: MakeEnv | None = None,
) -> dict[str, Any]:
    """Scores of a policy that was trained with some spaces, in lanes that are made for it."""
    with contextlib.closing(make_lanes(env, settings, make_env)) as lanes:
        check_fits(trained, lanes.spec)
        known = settings.env(env) if make_env is None else None
        return evaluate(policy, lanes, settings.episodes, env=known, controls=controls)


def evaluate(
    policy: Policy,
    lanes: VectorEnv,
    episodes: int,
    *,
    env: EnvSettings | None = None,
    controls: Mapping[str, Policy] | None = None,
) -> dict[str, Any]:
    """Scores of a policy, beside the oracle's and those of other players on the same worlds.

    `env` describes the lanes where that is known, so that an oracle can be found. `controls`
    are other players by name: random play, an agent without memory.
    """
    curriculum = lanes.curriculum
    records = play(policy, lanes, episodes)
    redrawn = getattr(lanes, "redrawn", 0)
    others = {}
    for name, player in (controls or {}).items():
        lanes.curriculum = curriculum  # all players meet the same worlds
        others[name] = play(player, lanes, episodes)
    if env is not None and (oracle := oracle_records(env, records)) is not None:
        others["oracle"] = oracle
    result = {"env": lanes.spec.name, **summarise(records)}
    if redrawn:  # worlds in which what was asked for is impossible
        result["redrawn"] = redrawn
    if by_length := success_by_length(records):
        result["success_by_length"] = by_length
    scores = {name: summarise(played) for name, played in others.items()}
    for name in controls or {}:
        result[f"{name}_return_mean"] = scores[name]["return_mean"]
        for task, means in result.get("tasks", {}).items():
            means[f"{name}_return_mean"] = scores[name]["tasks"][task]["return_mean"]
    blocks = {name: score["return_per_block"] for name, score in scores.items()}
    result["references"] = {name: values for name, values in blocks.items() if values is not None}
    result["reference_scores"] = {
        name: {key: value for key, value in score.items() if key not in _KEPT_ELSEWHERE}
        for name, score in scores.items()
    }
    return result
