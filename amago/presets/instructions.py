"""Package Delivery and MazeRunner: worlds to adapt to while following instructions."""

from __future__ import annotations

from dataclasses import replace

from amago.agent.settings import AgentSettings, OptimSettings
from amago.config import Config
from amago.envs.settings import EnvSettings
from amago.presets.base import SMALL, Preset, paper
from amago.replay.settings import ReplaySettings
from amago.rollout.settings import ExplorationSettings
from amago.training.settings import RunSettings

DELIVERY = EnvSettings(id="amago/PackageDelivery-v0")
MAZE = EnvSettings(id="amago/MazeRunner-v0", kwargs={"size": 15})


SMALL_INSTRUCTED = replace(
    SMALL,
    # Two heads of 32: lookup by place comes sooner than with four of 16.
    transformer=replace(SMALL.transformer, num_heads=2),
    heads=replace(SMALL.heads, num_critics=2),
)
"""Networks for goals that must be looked up by place."""


def _package_delivery() -> Config:
    """Roads of full size; networks smaller than the paper's, and a world model that teaches them.

    What returns tell of a fork or a drop is noisy, what happens next tells it at once: the
    forecast outweighs the other losses, and memory of both is learned within thousands of
    updates. Cloning weighs as much as the policy gradient: the policy then takes longer to
    settle on one of the four drops, right or wrong. With more noise most rollouts would be sent
    back before they see a fork twice.
    """
    return replace(
        SMALL_INSTRUCTED,
        env=replace(DELIVERY, num_lanes=96),
        exploration=ExplorationSettings(start=(0.5, 0.05), end=(0.3, 0.01), anneal_fraction=0.7),
        replay=ReplaySettings(capacity=4_000, batch_size=16),
        agent=AgentSettings(
            discounts=(0.5, 0.8, 0.9),
            acting_discount=0.95,
            bc_weight=1.0,
            world_model_weight=100.0,
            n_step=3,
            target_tau=0.03,
        ),
        optim=OptimSettings(learning_rate=1e-3),
        run=RunSettings(epochs=100, updates_per_epoch=100, eval_interval=5, eval_episodes=96),
    )


def _package_delivery_paper() -> Config:
    config = _instructed(DELIVERY)
    return replace(
        config,
        replay=replace(config.replay, capacity=15_000),
        run=replace(config.run, updates_per_epoch=1500),
    )


def _maze_runner() -> Config:
    """Mazes of the paper's size; 100 steps instead of 400 leave little time to stray."""
    return replace(
        SMALL_INSTRUCTED,
        env=replace(MAZE, kwargs={"size": 15, "horizon": 100}, num_lanes=96),
        exploration=ExplorationSettings(anneal_fraction=0.6),
        replay=ReplaySettings(capacity=8_000, batch_size=16),
        agent=AgentSettings(discounts=(0.5, 0.8, 0.95), acting_discount=0.98, target_tau=0.01),
        optim=OptimSettings(learning_rate=1e-3),
        run=RunSettings(epochs=60, updates_per_epoch=100, eval_interval=5, eval_episodes=96),
    )


def _maze_runner_paper() -> Config:
    return _instructed(MAZE)


def _maze_runner_30_paper() -> Config:
    return _instructed(replace(MAZE, kwargs={"size": 31}))


def _instructed(env: EnvSettings) -> Config:
    """Tables 3 and 4, columns Package Delivery and MazeRunner."""
    config = paper(env, model_dim=128, num_layers=3, encoder=(128, 128, 128), agent=AgentSettings())
    return replace(
        config,
        env=replace(config.env, num_lanes=24),
        optim=OptimSettings(learning_rate=3e-4, weight_decay=1e-4),
    )


INSTRUCTION_PRESETS = {
    "package-delivery": Preset(
        "Package Delivery, road of 30: deliver along a road whose forks must be remembered",
        _package_delivery,
    ),
    "package-delivery/paper": Preset(
        "Package Delivery, sizes of the paper's Tables 3 and 4", _package_delivery_paper
    ),
    "maze-runner": Preset(
        "MazeRunner, 15×15 in 100 steps: reach up to three places in an unknown maze",
        _maze_runner,
    ),
    "maze-runner/paper": Preset(
        "MazeRunner, 15×15, sizes of the paper's Tables 3 and 4", _maze_runner_paper
    ),
    "maze-runner-30/paper": Preset(
        'MazeRunner, 31×31 ("30"), sizes of the paper\'s Tables 3 and 4', _maze_runner_30_paper
    ),
}
