"""Crafter: goals in an open world, asked for by instructions."""

from __future__ import annotations

from amago.envs.domain import Domain
from amago.presets.base import PAPER, SMALL, Preset
from amago.presets.sizes import Size

# The game takes about a millisecond a step and an update a fifth of a second: few lanes and few
# evaluations, so that most of the time goes into updates.
_CPU = {
    "env.id": "amago/Crafter-v0",
    "env.kwargs": {"horizon": 500},
    "env.num_lanes": 12,
    "rollout.steps_per_epoch": 250,
    "replay.capacity": 5_000,
    "replay.batch_size": 16,
    "replay.context_length": 128,
    "encoder.hidden": (128, 64),
    "instruction.kind": "rnn",
    "instruction.hidden": (48, 32),
    "heads.num_critics": 2,
    "agent.discounts": (0.8, 0.95, 0.98),
    "agent.acting_discount": 0.98,
    "agent.target_tau": 0.01,
    "optim.learning_rate": 5e-4,
    "run.epochs": 110,
    "run.updates_per_epoch": 100,
    "run.eval_episodes": 32,
}
_SIZE = Size(384, 6, 12, encoder=(384, 384), heads=(400, 400), instruction=(96, 64))
_PAPER = {
    **_SIZE.settings(),
    "env.id": "amago/Crafter-v0",
    "env.num_lanes": 8,
    "replay.batch_size": 18,
    "instruction.kind": "rnn",
    "optim.weight_decay": 1e-4,
    "run.epochs": 2000,
    "run.updates_per_epoch": 1500,
}

DOMAIN = Domain(
    extra="crafter",
    make="amago.envs.domains.crafter.env:Crafter",
    ids={"amago/Crafter-v0": {}},
    presets={
        "crafter": Preset(
            "Crafter from textures, 500 steps, with random instructions", SMALL, _CPU
        ),
        "crafter/paper": Preset(
            "Crafter from textures, 2000 steps, sizes of the paper's Tables 3 and 4", PAPER, _PAPER
        ),
    },
    paper_size=_SIZE,
    action_names=(
        "noop",
        "left",
        "right",
        "up",
        "down",
        "do",
        "sleep",
        "place stone",
        "place table",
        "place furnace",
        "place plant",
        "make wood pickaxe",
        "make stone pickaxe",
        "make iron pickaxe",
        "make wood sword",
        "make stone sword",
        "make iron sword",
    ),
)
