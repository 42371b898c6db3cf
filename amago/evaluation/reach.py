"""How far back a Transformer's attention reaches, and to what kind of row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from amago.agent.policy import AgentPolicy
from amago.envs.registry import MakeEnv
from amago.envs.settings import EnvSettings
from amago.evaluation.attention import diagnose_rollout, events_by_row
from amago.evaluation.play import PlaySettings
from amago.types import Array

_KINDS = ("this row", "rollout start", "trial starts", "rewards", "goals", "other")
"""What can be attended to; together they are all there is."""
MOST_ROWS = 1000
"""Rows of a rollout above which its weights, as many squared, are not looked at."""


def attention_reach(
    policy: AgentPolicy,
    env: EnvSettings,
    settings: PlaySettings,
    rollouts: int,
    *,
    make_env: MakeEnv | None = None,
) -> dict[str, Any]:
    """Of every head: distances that hold half and nine tenths of its attention, and shares by
    kind of row beside what even attention would give; means over rollouts."""
    found: list[list[dict[str, Any]]] = []
    for number in range(rollouts):
        chosen = replace(settings, world_seed=settings.world_seed + number)
        rollout, layers = diagnose_rollout(policy, env, chosen, make_env=make_env)
        kinds = events_by_row(rollout)
        weights = [layer.weights.double().cpu().numpy() for layer in layers]
        found.append([{**place, **measure(w, kinds)} for place, w in _heads(weights)])
    heads = [_mean(parts) for parts in zip(*found, strict=True)]
    return {"rollouts": rollouts, "heads": heads, "mean": _mean(heads)}


def measure(weights: Array, kinds: Sequence[str]) -> dict[str, Any]:
    """One head on one rollout: weights [T, T] of each row to itself and those before it."""
    rows = len(weights)
    at, to = np.tril_indices(rows)
    # Row 0 sees nothing but itself.
    later = at > 0
    at, to = at[later], to[later]
    given = weights[at, to] / (rows - 1)
    seen = given > 0
    counts = np.bincount(at[seen], minlength=rows)
    even = np.where(seen, 1.0 / np.maximum(counts[at], 1) / (rows - 1), 0.0)
    distances = np.bincount(at - to, weights=given, minlength=rows)
    reached = np.cumsum(distances)
    names = np.where(at == to, "this row", np.asarray(kinds)[to])
    return {
        "distance": float((np.arange(rows) * distances).sum()),
        "half_within": int(np.searchsorted(reached, 0.5 - 1e-9)),
        "most_within": int(np.searchsorted(reached, 0.9 - 1e-9)),
        "share": {kind: float(given[names == kind].sum()) for kind in _KINDS},
        "even": {kind: float(even[names == kind].sum()) for kind in _KINDS},
    }


def _heads(layers: Sequence[Array]) -> Iterator[tuple[dict[str, int], Array]]:
    for layer, weights in enumerate(layers):
        for head in range(len(weights)):
            yield {"layer": layer + 1, "head": head + 1}, weights[head]


def _mean(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The mean of each number, and of each entry of nested ones."""
    return {
        key: _mean([part[key] for part in parts])
        if isinstance(value, dict)
        else (value if key in ("layer", "head") else float(np.mean([part[key] for part in parts])))
        for key, value in parts[0].items()
    }
