"""Any Gymnasium environment, with settings that ask for nothing special."""

from __future__ import annotations

from amago.envs.domain import Domain
from amago.presets.base import RECIPE, Preset

# Episodes of an unknown environment may be long and slow: half the lanes of the recipe, and a
# memory of 64 steps unless `amago check-env` suggests another.
_GYM = {
    "env.id": "CartPole-v1",
    "env.num_lanes": 48,
    "rollout.steps_per_epoch": 200,
    "replay.context_length": 64,
}

DOMAIN = Domain({"gym": Preset("Any Gymnasium environment: --env.id CartPole-v1", RECIPE, _GYM)})
