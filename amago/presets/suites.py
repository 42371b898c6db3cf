"""POPGym, Half-Cheetah Velocity, Meta-World ML-1 and Crafter."""

from __future__ import annotations

from dataclasses import replace

from amago.agent.settings import AgentSettings, OptimSettings
from amago.config import Config
from amago.envs.settings import EnvSettings
from amago.nets.settings import EncoderSettings, HeadSettings, InstructionSettings
from amago.presets.base import MANY_TRIES, SMALL, Preset, paper
from amago.replay.settings import ReplaySettings
from amago.rollout.settings import ExplorationSettings, RolloutSettings
from amago.training.settings import RunSettings

CHEETAH = EnvSettings(id="amago/HalfCheetahVelocity-v0", trials=3)
META_WORLD = EnvSettings(
    id="amago/MetaWorldML1-v0", kwargs={"task": "reach", "split": "train"}, trials=3
)


def _popgym() -> Config:
    """One set for all ids: horizons from a step (recall is paid at once) to an episode (control),
    and noise that lasts until what must be remembered has been found."""
    return replace(
        MANY_TRIES,
        env=EnvSettings(id="popgym/RepeatPreviousEasy", num_lanes=96),
        exploration=ExplorationSettings(anneal_fraction=0.9),
        heads=replace(MANY_TRIES.heads, num_critics=2),
        agent=replace(MANY_TRIES.agent, discounts=(0.5, 0.9, 0.98)),
    )


def _popgym_paper() -> Config:
    """Table 3 and, of Table 4, the numbers in brackets; 15M steps, as in Figure 3."""
    config = paper(
        EnvSettings(id="popgym/RepeatPreviousEasy"),
        model_dim=256,
        num_layers=3,
        encoder=(512, 512, 200),
        agent=AgentSettings(reward_scale=100.0),
    )
    return replace(
        config,
        env=replace(config.env, num_lanes=24),
        rollout=RolloutSettings(steps_per_epoch=1000),
        replay=replace(config.replay, capacity=80_000),
        run=replace(config.run, epochs=625),
    )


def _half_cheetah() -> Config:
    """The task is solvable with a few steps of memory (appendix C.2), which a CPU can afford:
    short windows and few critics, for many small updates.

    Values differ between target speeds far more than between actions: short horizons keep that
    difference visible, and cloning gets a small share, enough to keep the policy from freezing.
    """
    return replace(
        SMALL,
        env=replace(CHEETAH, num_lanes=12),
        exploration=ExplorationSettings(start=(0.5, 0.1), end=(0.5, 0.1)),
        replay=ReplaySettings(capacity=2_000, batch_size=64, context_length=8),
        heads=replace(SMALL.heads, num_critics=2),
        agent=AgentSettings(
            discounts=(0.8, 0.95),
            acting_discount=0.95,
            reward_scale=1.0,
            bc_weight=0.01,
            n_step=3,
            target_tau=0.01,
        ),
        optim=OptimSettings(learning_rate=5e-4),
        run=RunSettings(epochs=200, updates_per_epoch=400, eval_interval=5, eval_episodes=32),
    )


def _half_cheetah_paper() -> Config:
    """Table 4; Table 3 has no column for it, so the networks are those of Wind."""
    return paper(
        CHEETAH,
        model_dim=128,
        num_layers=2,
        encoder=(128, 128, 64),
        agent=AgentSettings(reward_scale=1.0),
    )


def _meta_world() -> Config:
    return replace(
        SMALL,
        env=replace(META_WORLD, num_lanes=12, eval_lanes=16),
        replay=ReplaySettings(capacity=1_000, batch_size=32, context_length=64),
        agent=AgentSettings(
            discounts=(0.9, 0.95, 0.98, 0.99), acting_discount=0.99, target_tau=0.01
        ),
        optim=OptimSettings(learning_rate=1e-3),
        run=RunSettings(epochs=50, updates_per_epoch=500, eval_interval=5, eval_episodes=16),
    )


def _meta_world_paper() -> Config:
    """Tables 3 and 4; 556 epochs of 12 × 1500 steps are the 10M steps of appendix C.2."""
    config = paper(
        META_WORLD, model_dim=256, num_layers=3, encoder=(256, 256, 200), agent=AgentSettings()
    )
    return replace(config, run=replace(config.run, epochs=556))


def _crafter() -> Config:
    """The game takes about a millisecond a step and an update a fifth of a second: few lanes and
    few evaluations, so that most of the time goes into updates."""
    return replace(
        SMALL,
        env=EnvSettings(id="amago/Crafter-v0", kwargs={"horizon": 500}, num_lanes=12),
        rollout=RolloutSettings(steps_per_epoch=250),
        replay=ReplaySettings(capacity=5_000, batch_size=16, context_length=128),
        encoder=EncoderSettings(hidden=(128, 64)),
        instruction=InstructionSettings(kind="rnn", hidden=(48, 32)),
        heads=replace(SMALL.heads, num_critics=2),
        agent=AgentSettings(discounts=(0.8, 0.95, 0.98), acting_discount=0.98, target_tau=0.01),
        optim=OptimSettings(learning_rate=5e-4),
        run=RunSettings(epochs=110, updates_per_epoch=100, eval_interval=10, eval_episodes=32),
    )


def _crafter_paper() -> Config:
    """Tables 3 and 4, column Crafter."""
    config = paper(
        EnvSettings(id="amago/Crafter-v0"),
        model_dim=384,
        num_layers=6,
        encoder=(384, 384),
        agent=AgentSettings(),
    )
    return replace(
        config,
        env=replace(config.env, num_lanes=8),
        replay=replace(config.replay, capacity=20_000, batch_size=18),
        transformer=replace(config.transformer, num_heads=12),
        instruction=InstructionSettings(kind="rnn", hidden=(96, 64)),
        heads=HeadSettings(actor_hidden=(400, 400), critic_hidden=(400, 400)),
        optim=OptimSettings(learning_rate=1e-4, weight_decay=1e-4),
        run=replace(config.run, epochs=2000, updates_per_epoch=1500),
    )


SUITE_PRESETS = {
    "popgym": Preset("POPGym, memory in 48 forms: --env.id CountRecallEasy", _popgym),
    "popgym/paper": Preset("POPGym, sizes of the paper's Tables 3 and 4", _popgym_paper),
    "half-cheetah-velocity": Preset(
        "Half-Cheetah Velocity, 3 trials of 200 steps: find out how fast to run", _half_cheetah
    ),
    "half-cheetah-velocity/paper": Preset(
        "Half-Cheetah Velocity, settings of the paper's Table 4", _half_cheetah_paper
    ),
    "metaworld": Preset(
        "Meta-World ML-1, 3 trials with a hidden goal: --env.kwargs.task push", _meta_world
    ),
    "metaworld/paper": Preset(
        "Meta-World ML-1, sizes of the paper's Tables 3 and 4", _meta_world_paper
    ),
    "crafter": Preset("Crafter from textures, 500 steps, with random instructions", _crafter),
    "crafter/paper": Preset(
        "Crafter from textures, 2000 steps, sizes of the paper's Tables 3 and 4", _crafter_paper
    ),
}
