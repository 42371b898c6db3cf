"""Half-Cheetah Velocity: run at a speed that only the reward tells."""

from __future__ import annotations

from amago.envs.domain import Domain
from amago.presets.base import PAPER, SMALL, Preset
from amago.presets.sizes import Size

# The task is solvable with a few steps of memory (appendix C.2), which a CPU can afford: short
# windows and few critics, for many small updates. Values differ between target speeds far more
# than between actions: short horizons keep that difference visible, and cloning gets a small
# share, enough to keep the policy from freezing.
_CPU = {
    "env.id": "amago/HalfCheetahVelocity-v0",
    "env.trials": 3,
    "env.num_lanes": 12,
    "exploration.start": (0.5, 0.1),
    "exploration.end": (0.5, 0.1),
    "replay.capacity": 2_000,
    "replay.batch_size": 64,
    "replay.context_length": 8,
    "heads.num_critics": 2,
    "agent.discounts": (0.8, 0.95),
    "agent.acting_discount": 0.95,
    "agent.reward_scale": 1.0,
    "terms.cloning.weight": 0.01,
    "agent.n_step": 3,
    "agent.target_tau": 0.01,
    "optim.learning_rate": 5e-4,
    "run.epochs": 200,
    "run.updates_per_epoch": 400,
    "run.eval_interval": 5,
    "run.eval_episodes": 32,
}
_SIZE = Size(128, 2, 8, encoder=(128, 128, 64), heads=(256, 256))
"""Table 3 has no column for it, so the networks are those of Wind."""
_PAPER = {
    **_SIZE.settings(),
    "env.id": "amago/HalfCheetahVelocity-v0",
    "env.trials": 3,
    "agent.reward_scale": 1.0,
}

DOMAIN = Domain(
    extra="mujoco",
    make="amago.envs.domains.half_cheetah_velocity.env:HalfCheetahVelocity",
    ids={"amago/HalfCheetahVelocity-v0": {}},
    presets={
        "half-cheetah-velocity": Preset(
            "Half-Cheetah Velocity, 3 trials of 200 steps: find out how fast to run", SMALL, _CPU
        ),
        "half-cheetah-velocity/paper": Preset(
            "Half-Cheetah Velocity, settings of the paper's Table 4", PAPER, _PAPER
        ),
    },
    paper_size=_SIZE,
)
