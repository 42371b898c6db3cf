"""Any Gymnasium environment, with settings that ask for nothing special."""

from __future__ import annotations

from amago.envs.domain import Domain
from amago.presets.base import RECIPE, SMALL, Preset

# One-step targets reach about target_tau × updates steps back, too few for episodes of hundreds
# of steps within minutes: five steps at a time do. Actions differ little in their long-run
# values, so at a constant learning rate a good policy flips within a hundred updates.
_GYM = {
    "env.id": "CartPole-v1",
    "env.num_lanes": 24,
    "env.eval_lanes": 32,
    "rollout.steps_per_epoch": 200,
    "replay.capacity": 1_000,
    "replay.context_length": 64,
    "heads.popart_rate": 0.01,
    "agent.discounts": (0.9, 0.95, 0.98),
    "agent.acting_discount": 0.99,
    "agent.reward_scale": 1.0,
    "agent.n_step": 5,
    "agent.target_tau": 0.01,
    "optim.learning_rate": 5e-4,
    "optim.final_fraction": 0.05,
    "optim.grad_clip": 20.0,
    "run.epochs": 60,
    "run.updates_per_epoch": 100,
    "run.eval_interval": 5,
    "run.eval_episodes": 32,
}

DOMAIN = Domain(
    {
        "gym": Preset("Any Gymnasium environment: --env.id CartPole-v1", SMALL, _GYM),
        "recipe": Preset(
            "One set of learning settings for any environment, still in search: --env.id NAME",
            RECIPE,
            {"env.id": "amago/DarkKeyToDoor-v0"},
        ),
    }
)
