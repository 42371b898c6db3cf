"""Meta-World ML-1: one manipulation task, its goal hidden."""

from __future__ import annotations

from amago.envs.domain import Domain
from amago.presets.base import PAPER, SMALL, Preset
from amago.presets.sizes import Size

_ENV = {
    "env.id": "amago/MetaWorldML1-v0",
    "env.kwargs": {"task": "reach", "split": "train"},
    "env.trials": 3,
}
_CPU = {
    **_ENV,
    "env.num_lanes": 12,
    "env.eval_lanes": 16,
    "replay.capacity": 1_000,
    "replay.batch_size": 32,
    "replay.context_length": 64,
    "agent.discounts": (0.9, 0.95, 0.98, 0.99),
    "agent.acting_discount": 0.99,
    "agent.target_tau": 0.01,
    "optim.learning_rate": 1e-3,
    "run.epochs": 50,
    "run.updates_per_epoch": 500,
    "run.eval_interval": 5,
    "run.eval_episodes": 16,
}
_SIZE = Size(256, 3, 8, encoder=(256, 256, 200), heads=(256, 256))
# 556 epochs of 12 × 1500 steps are the 10M steps of appendix C.2.
_PAPER = {**_SIZE.settings(), **_ENV, "run.epochs": 556}

DOMAIN = Domain(
    extra="metaworld",
    make="amago.envs.domains.metaworld.env:MetaWorldML1",
    ids={"amago/MetaWorldML1-v0": {}},
    presets={
        "metaworld": Preset(
            "Meta-World ML-1, 3 trials with a hidden goal: --env.kwargs.task push", SMALL, _CPU
        ),
        "metaworld/paper": Preset(
            "Meta-World ML-1, sizes of the paper's Tables 3 and 4", PAPER, _PAPER
        ),
    },
    paper_size=_SIZE,
)
