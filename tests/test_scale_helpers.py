"""Learners and batches for comparing an update in parts with the update of the whole batch."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from test_agent_helpers import random_batch, tiny_agent, tiny_config, tiny_spec
from torch import Tensor

from amago.agent.share import Share
from amago.agent.update import Learner
from amago.goals import GoalSpec
from amago.training.view import Silent
from amago.types import Batch, EnvSpec, ObsSpec

LENGTHS = [9, 7, 7, 5, 4, 2, 2]
"""Windows of an odd number and of odd sizes, some of them equal."""
GOALS = GoalSpec(3, 2, low=(0, 0), high=(4, 4))
UPDATES = 20


@dataclass(frozen=True)
class Case:
    """One kind of agent and batch."""

    kind: str = "discrete"
    settings: dict[str, Any] = field(default_factory=dict)
    mask: bool = False
    goals: bool = False
    image: bool = False
    double: bool = True
    lengths: tuple[int, ...] = tuple(LENGTHS)

    @property
    def spec(self) -> EnvSpec:
        spec = tiny_spec(self.kind, mask=self.mask)
        obs = dict(spec.obs)
        if self.image:
            obs["view"] = ObsSpec((16, 16, 3), "uint8", "image")
        return replace(spec, obs=obs, goals=GOALS if self.goals else None)

    def learner(self) -> Learner:
        config = tiny_config(**{"terms.world_model.weight": 0.5, **self.settings})
        agent = tiny_agent(self.spec, config, double=self.double)
        return Learner(agent, config.agent, config.optim)

    def batch(self, seed: int) -> Batch:
        rng = np.random.default_rng(seed)
        lengths = sorted(
            rng.permutation(self.lengths)[: len(self.lengths) - seed % 2], reverse=True
        )
        lengths = [int(length) for length in lengths]
        batch = random_batch(self.spec, lengths, seed=seed, double=self.double)
        if self.image:
            view = rng.integers(255, size=(len(batch), 16, 16, 3), dtype=np.uint8)
            batch = replace(batch, obs=batch.obs | {"view": torch.from_numpy(view)})
        if self.goals:
            batch = with_goals(batch, rng)
        return batch


def with_goals(batch: Batch, rng: np.random.Generator) -> Batch:
    """As relabeling leaves it: an instruction per window, and every row's progress."""
    count, slots = len(batch.lengths), GOALS.max_goals
    num_goals = rng.integers(1, slots + 1, size=count)
    goals = rng.integers(5, size=(count, slots, GOALS.size)).astype(np.float32)
    goals[np.arange(slots) >= num_goals[:, None]] = 0.0
    progress = [
        np.sort(rng.integers(n + 1, size=length))
        for n, length in zip(num_goals, batch.lengths, strict=True)
    ]
    return replace(
        batch,
        instruction=torch.from_numpy(goals),
        num_goals=torch.from_numpy(num_goals),
        progress=torch.from_numpy(np.concatenate(progress)),
    )


CASES = {
    "discrete": Case(),
    "discrete, masked, with dropout": Case(
        mask=True, settings={"transformer.dropout": 0.2, "agent.n_step": 3}
    ),
    "continuous": Case("continuous"),
    "multi-discrete": Case("multi_discrete", {"transformer.previous_row": True}),
    "relabeled": Case(goals=True, settings={"agent.sequence_models": "target"}),
    "shifted images": Case(image=True, settings={"agent.sequence_models": "separate"}),
    "recurrent": Case("continuous", {"memory": "gru", "heads.critic": "two_hot"}),
    "windows of one length": Case(lengths=(5,) * 6, settings={"transformer.position": "rope"}),
    "single precision": Case("continuous", {"transformer.dropout": 0.1}, double=False),
}


def gradients_of(learner: Learner) -> Tensor:
    parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in learner.parameters]
    return torch.cat([part.flatten() for part in parts])


def state_of(learner: Learner) -> dict[str, Tensor]:
    """All weights and statistics."""
    return {name: value.clone() for name, value in learner.agent.state_dict().items()}


def learn(case: Case, shares: Callable[[Batch], Share], add: Any = None) -> dict[str, Any]:
    """Twenty updates: the first one's gradients, all that is logged, and what was learned."""
    learner = case.learner()
    learner.add = add
    torch.manual_seed(5)
    metrics = [learner.learn(shares(case.batch(0)))]
    gradients = gradients_of(learner).clone()
    metrics += [learner.learn(shares(case.batch(seed))) for seed in range(1, UPDATES)]
    random = torch.rand(4)
    return {
        "gradients": gradients,
        "metrics": [{name: float(value) for name, value in row.items()} for row in metrics],
        "state": state_of(learner),
        "random": random,
    }


def assert_same_learning(case: Case, got: dict[str, Any], want: dict[str, Any]) -> None:
    """Gradients to 1e-5 (far closer in double precision), and what twenty updates make of them."""
    error = 1e-10 if case.double else 1e-5
    scale = float(want["gradients"].abs().max())
    assert scale > 1e-4
    assert float((got["gradients"] - want["gradients"]).abs().max()) < error * max(scale, 1.0)
    for one, other in zip(got["metrics"], want["metrics"], strict=True):
        assert one.keys() == other.keys()
        for name, value in one.items():
            assert abs(value - other[name]) < 1e4 * error * max(1.0, abs(other[name])), name
    for name, value in want["state"].items():
        assert torch.allclose(got["state"][name], value, rtol=0, atol=1e3 * error), name
    assert torch.equal(got["random"], want["random"])


def test_cases_differ_from_batch_to_batch_and_learn_something() -> None:
    for name, case in CASES.items():
        first, second = case.batch(0), case.batch(1)
        assert len(first.lengths) > len(second.lengths) > 4, name
        learner = case.learner()
        before = state_of(learner)
        learner.step(first)
        assert any(not torch.equal(v, before[k]) for k, v in state_of(learner).items()), name


def other_ranks() -> Iterator[int]:
    """Processes of further ranks that this one has launched."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            pid, parent = int(path.parent.name), int(path.read_text().rsplit(")", 1)[1].split()[1])
            command = (path.parent / "cmdline").read_bytes()
            if parent == os.getpid() and b"amago.scale.learn_rank" in command:
                yield pid


class KillAfter(Silent):
    """Ends a rank, as the system may at any time, after an epoch."""

    def __init__(self, epoch: int) -> None:
        self.when, self.killed = epoch, 0

    def epoch(self, metrics: dict[str, Any], timing: dict[str, Any]) -> None:
        if metrics["epoch"] == self.when:
            for pid in other_ranks():
                os.kill(pid, signal.SIGKILL)
                self.killed += 1
