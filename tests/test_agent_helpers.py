"""Tiny agents and hand-made batches for the tests of networks and learning rule."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from test_replay_helpers import sequences
from torch import Tensor, nn

from amago.agent.agent import Agent
from amago.agent.update import Learner
from amago.config import Config, override
from amago.nets.action import action_features
from amago.nets.distributions import TanhGaussian
from amago.nets.factored import FactoredCategorical
from amago.types import ACTION_MASK, ActionSpec, Batch, EnvSpec, ObsSpec

torch.set_num_threads(1)

HORIZON = 24
DISCOUNTS = (0.5, 0.9, 0.99)
KINDS = ["discrete", "continuous"]
TERMS = {
    "actor": {
        "terms__actor__weight": 1.0,
        "terms__cloning__weight": 0.0,
        "terms__critic__weight": 0.0,
    },
    "cloning": {
        "terms__actor__weight": 0.0,
        "terms__cloning__weight": 1.0,
        "terms__critic__weight": 0.0,
    },
    "critic": {
        "terms__actor__weight": 0.0,
        "terms__cloning__weight": 0.0,
        "terms__critic__weight": 1.0,
    },
}
"""Settings that leave one term of the loss alone."""

TINY: dict[str, Any] = {
    "encoder.hidden": (12, 8),
    "transformer.model_dim": 16,
    "transformer.num_heads": 2,
    "transformer.dropout": 0.0,
    "heads.hidden": (12, 9),
    "heads.num_critics": 3,
    "agent.discounts": DISCOUNTS,
    "agent.acting_discount": 0.99,
    "agent.target_critics": 3,
    "optim.warmup_updates": 0,
}

MEMORIES: dict[str, dict[str, Any]] = {
    "sinusoid": {"transformer.position": "sinusoid"},
    "learned": {"transformer.position": "learned"},
    "rope": {"transformer.position": "rope"},
    "previous row": {"transformer.previous_row": True},
    "relu": {"transformer.activation": "relu"},
    "no extra norms": {"transformer.extra_norms": False},
    "no sigma": {"transformer.sigma_reparam": False},
    "pre-LN": {
        "transformer.activation": "relu",
        "transformer.extra_norms": False,
        "transformer.sigma_reparam": False,
    },
    "gru": {"memory": "gru"},
    "feedforward": {"memory": "feedforward"},
}
"""Every memory, position kind and switch of the Transformer."""


def tiny_spec(kind: str = "discrete", *, mask: bool = False, horizon: int = HORIZON) -> EnvSpec:
    obs = {"place": ObsSpec((2,), "float32"), "room": ObsSpec((), "uint8", "category", 4)}
    sizes = (3, 2) if kind == "multi_discrete" else ()
    size = {"continuous": 2, "multi_discrete": 5}.get(kind, 3)
    if mask:
        obs[ACTION_MASK] = ObsSpec((size,), "bool", "mask")
    return EnvSpec("tiny", obs, ActionSpec(kind, size, sizes), horizon)  # type: ignore[arg-type]


def tiny_config(**overrides: Any) -> Config:
    dotted = {key.replace("__", "."): value for key, value in overrides.items()}
    return override(Config(), TINY | dotted)


def tiny_agent(spec: EnvSpec, config: Config, *, seed: int = 0, double: bool = True) -> Agent:
    """An agent in the middle of its life: nothing is at its initial value."""
    torch.manual_seed(seed)
    agent = Agent(spec, config)
    with torch.no_grad():
        for parameter in agent.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
        agent.encoder.normalizer.update(1.0 + 2.0 * torch.randn(50, 3))
        for scale in (1.0, 3.0, 2.0):
            agent.popart.rate = 0.2
            move = agent.popart.update(scale * torch.randn(20, len(agent.discounts)) + scale)
            agent.critics.rescale(*move)
            agent.target_critics.rescale(*move)
        agent.popart.rate = 5e-4
    return agent.double() if double else agent


def tiny_learner(
    kind: str = "discrete", *, mask: bool = False, double: bool = True, seed: int = 0,
    **overrides: Any,
) -> Learner:  # fmt: skip
    config = tiny_config(**overrides)
    agent = tiny_agent(tiny_spec(kind, mask=mask), config, seed=seed, double=double)
    return Learner(agent, config.agent, config.optim)


def random_batch(
    spec: EnvSpec, lengths: Sequence[int], *, seed: int = 0, starts: Sequence[int] | None = None,
    double: bool = True,
) -> Batch:  # fmt: skip
    """Windows of `lengths` rows; some end terminal, some restart."""
    rng = np.random.default_rng(seed)
    B, R = len(lengths), max(lengths)
    valid = np.arange(R) < np.array(lengths)[:, None]
    start = np.array(starts or [0] * B)
    action = random_action(spec.action, rng, (B, R))
    terminal = np.zeros((B, R), bool)
    terminal[::2] = np.arange(R) == np.array(lengths)[::2, None] - 1
    arrays = {
        "prev_action": action,
        "prev_reward": rng.normal(size=(B, R)),
        "time": start[:, None] + np.arange(R),
        "first": (start[:, None] + np.arange(R)) % 5 == 0,
        "terminal": terminal,
    }
    obs = {"place": rng.normal(size=(B, R, 2)), "room": rng.integers(4, size=(B, R), dtype="u1")}
    if ACTION_MASK in spec.obs:
        allowed = rng.random((B, R, spec.action.size)) < 0.6
        # An action that was taken was allowed, except where nothing was.
        taken = action_features(torch.from_numpy(action[:, 1:]), spec.action, torch.float32)
        allowed[:, :-1] |= (taken.numpy() > 0) & (rng.random((B, R - 1, 1)) < 0.8)
        obs[ACTION_MASK] = allowed & (rng.random((B, R, 1)) < 0.9)
    dtype = torch.float64 if double else torch.float32

    def tensor(x: Any) -> Tensor:
        made = torch.from_numpy(np.ascontiguousarray(x[valid]))
        return made.to(dtype) if made.is_floating_point() else made

    return Batch(
        obs={key: tensor(value) for key, value in obs.items()},
        lengths=tuple(lengths),
        **{key: tensor(value) for key, value in arrays.items()},
    )


def random_action(spec: ActionSpec, rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Agent actions, as a Batch holds them."""
    if spec.kind == "continuous":
        return rng.uniform(-1.0, 1.0, (*shape, spec.size))
    if spec.kind == "discrete":
        return rng.integers(spec.size, size=shape)
    if spec.kind == "multi_binary":
        return rng.integers(2, size=(*shape, spec.size))
    return np.stack([rng.integers(size, size=shape) for size in spec.sizes], -1)


def in_double(batch: Batch) -> Batch:
    """A batch whose real numbers are in double precision."""

    def wide(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: wide(item) for key, item in value.items()}
        real = isinstance(value, Tensor) and value.is_floating_point()
        return value.double() if real else value

    return Batch(**{name: wide(value) for name, value in vars(batch).items()})


def noise_of(mean: Any) -> Any:
    """Noise in the place of random numbers, tied to the row that it disturbs."""
    return np.sin(37.0 * mean) if isinstance(mean, np.ndarray) else torch.sin(37.0 * mean)


@contextmanager
def predictable_samples() -> Iterator[None]:
    """Continuous policies sample with `noise_of` their mean; factored ones take their mode, and
    their candidates differ in dimension 1."""
    original, factored, randint = TanhGaussian.sample, FactoredCategorical.sample, torch.randint

    def sample(self: TanhGaussian, generator: Any = None) -> Tensor:
        return torch.tanh(self.mean + self.log_std.exp() * noise_of(self.mean.detach()))

    TanhGaussian.sample = sample  # type: ignore[method-assign]
    FactoredCategorical.sample = lambda self, generator=None: self.mode()  # type: ignore
    torch.randint = lambda high, size, **_: torch.ones(size, dtype=torch.int64)  # type: ignore
    try:
        yield
    finally:
        TanhGaussian.sample = original  # type: ignore[method-assign]
        FactoredCategorical.sample = factored  # type: ignore[method-assign]
        torch.randint = randint


def snapshot(module: nn.Module) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in module.state_dict().items()}


def changed(module: nn.Module, before: dict[str, Tensor]) -> list[str]:
    """Names whose bits are not what they were."""
    after = module.state_dict()
    return [name for name, value in before.items() if not torch.equal(value, after[name])]


def gradients(module: nn.Module) -> dict[str, Tensor]:
    return {
        name: torch.zeros_like(p) if p.grad is None else p.grad.clone()
        for name, p in module.named_parameters()
    }


def batch_of(kind: str) -> Batch:
    return random_batch(tiny_spec(kind), [6, 4, 5])


def losses(learner: Learner, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
    """The total loss of one batch, which moves the statistics of targets, and what it logs."""
    return learner.total_loss(learner.prepare(batch))


def backward(learner: Learner, kind: str) -> dict[str, Tensor]:
    """The gradients of the whole loss on one batch, without noise."""
    with predictable_samples():
        losses(learner, batch_of(kind))[0].backward()
    return gradients(learner.agent)


def size(grads: dict[str, Tensor], prefix: str) -> float:
    """How much gradient the parameters of one part get."""
    return sum(float(g.abs().sum()) for name, g in grads.items() if name.startswith(prefix))


def test_sequences_take_a_batch_apart() -> None:
    batch = random_batch(tiny_spec(), [5, 2, 4])
    parts = sequences(batch)
    assert [part.lengths for part in parts] == [(5,), (2,), (4,)]
    assert torch.equal(parts[2].obs["place"], batch.obs["place"][7:])
    assert torch.equal(torch.cat([part.prev_action for part in parts]), batch.prev_action)


def test_tiny_agents_are_not_at_their_initial_values() -> None:
    agent = tiny_learner().agent
    mean, std = agent.popart.statistics()
    assert float(agent.popart.mass) > 0
    assert float(mean.abs().min()) > 1e-3 and float((std - 1.0).abs().min()) > 1e-3
    outputs = (agent.critics.layers[-1], agent.target_critics.layers[-1])
    assert not torch.equal(outputs[0].weight, outputs[1].weight)
    assert not torch.equal(outputs[0].bias, outputs[1].bias)
    assert not torch.equal(agent.actor.out.weight, agent.target_actor.out.weight)
    assert float(agent.encoder.normalizer.mass) > 0
