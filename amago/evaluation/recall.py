"""How much an agent earns with a memory of its last n rows: the longest recall that it needs."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from amago.agent.agent import Agent
from amago.agent.policy import AgentPolicy, batch_of
from amago.evaluation.play import PlaySettings, make_policy, play
from amago.nets.sequences import Sequences
from amago.rollout.stats import RolloutRecord
from amago.types import Array, Timestep, VectorEnv

MOST_ROWS = 20_000_000
"""Rows that memory may read again for one point of the curve; longer ones are left out."""


@dataclass
class _Window:
    """The encoded rows of the last steps, for all lanes, and how many of them each lane has."""

    encoded: deque[Tensor]  # each [N, E]
    time: deque[Tensor]  # each [N]
    ages: Array  # [N] rows since the lane's rollout began


class _ShortMemoryPolicy(AgentPolicy):
    """The agent as if its rollouts had begun `rows` rows ago, the current row included.

    Memory is built again from these rows at every step. A cache of as many slots would not do:
    what deeper layers hold of a row was computed when older rows were still there.
    """

    def __init__(self, agent: Agent, settings: PlaySettings, rows: int) -> None:
        super().__init__(
            agent, seed=settings.action_seed, greedy=settings.greedy, discount=settings.discount
        )
        self.rows = rows

    def initial_state(self, num_lanes: int) -> _Window:
        return _Window(deque(maxlen=self.rows), deque(maxlen=self.rows), np.zeros(num_lanes, int))

    @torch.inference_mode()
    def act(
        self, timestep: Timestep, state: _Window, greedy: bool | None = None
    ) -> tuple[Array, _Window]:
        self.agent.eval()
        batch = batch_of(timestep, self.device)
        state.encoded.append(self.agent.encoder(batch))
        state.time.append(batch.time)
        state.ages = np.where(timestep.time == 0, 1, state.ages + 1)
        length = len(state.encoded)
        lengths = np.minimum(state.ages, length)
        # [N, length]: the rows of each lane's own rollout, lane after lane.
        own = torch.from_numpy(np.arange(length) >= length - lengths[:, None]).to(self.device)
        encoded = torch.stack(tuple(state.encoded), 1)[own]
        time = torch.stack(tuple(state.time), 1)[own]
        hidden = self.agent.memory(encoded, time, Sequences(lengths.tolist(), self.device))
        newest = torch.from_numpy(np.cumsum(lengths) - 1).to(self.device)
        return self.choose(hidden[newest], batch, greedy), state

    def select(self, state: _Window, lanes: Array) -> _Window:
        def kept(parts: deque[Tensor]) -> deque[Tensor]:
            return deque((part[lanes] for part in parts), maxlen=self.rows)

        return _Window(kept(state.encoded), kept(state.time), state.ages[lanes])


def recall_curve(
    agent: Agent, lanes: VectorEnv, settings: PlaySettings, context_length: int
) -> dict[str, Any]:
    """Return against the number of rows that memory may keep, on the same worlds.

    `needed` is the smallest number from which on nothing is lost beyond twice the standard error
    of the difference; None where no number below the context is enough.
    """
    whole = play(make_policy(agent, settings), lanes, settings.episodes)
    longest = max(record.length for record in whole)
    points, left_out = [], []
    for rows in _row_counts(min(context_length, longest + 1)):
        if rows * longest * lanes.num_lanes > MOST_ROWS:
            left_out.append(rows)
            continue
        policy = _ShortMemoryPolicy(agent, settings, rows)
        points.append(_point(rows, play(policy, lanes, settings.episodes), whole))
    return {
        "whole": {**_scores(whole), "rows": context_length, "length": longest},
        "points": points,
        "left_out": left_out,
        "needed": _needed(points) if not left_out else None,
    }


def _row_counts(context_length: int) -> list[int]:
    """Powers of two below the context."""
    return [2**power for power in range(max(0, math.ceil(math.log2(context_length))))]


def _point(
    rows: int, cut: Sequence[RolloutRecord], whole: Sequence[RolloutRecord]
) -> dict[str, Any]:
    """One point of the curve; a loss is paired, world by world."""
    known = {record.world_seed: record.total for record in whole}
    lost = np.array([known[record.world_seed] - record.total for record in cut])
    return {
        "rows": rows,
        **_scores(cut),
        "lost": float(lost.mean()),
        "lost_error": float(lost.std() / math.sqrt(len(lost))),
    }


def _scores(records: Sequence[RolloutRecord]) -> dict[str, Any]:
    totals = np.array([record.total for record in records])
    solved = [record.success for record in records if record.success is not None]
    return {
        "return_mean": float(totals.mean()),
        "return_error": float(totals.std() / math.sqrt(len(totals))),
        "success_rate": float(np.mean(solved)) if solved else None,
    }


def _needed(points: Sequence[dict[str, Any]]) -> int | None:
    needed = None
    for point in reversed(points):
        if point["lost"] > 2 * point["lost_error"]:
            break
        needed = point["rows"]
    return needed
