"""Named settings: `domain` is sized for a CPU, `domain/paper` has the paper's Tables 3 and 4."""

from __future__ import annotations

import difflib
from dataclasses import replace

from amago.agent.settings import AgentSettings, OptimSettings
from amago.config import Config
from amago.envs.settings import EnvSettings
from amago.nets.settings import (
    EncoderSettings,
    FeedforwardSettings,
    GruSettings,
    HeadSettings,
)
from amago.presets.base import MANY_TRIES, PAPER_ANNEAL, SMALL, Preset, paper
from amago.presets.instructions import INSTRUCTION_PRESETS
from amago.presets.suites import SUITE_PRESETS
from amago.replay.settings import ReplaySettings
from amago.rollout.settings import ExplorationSettings, RolloutSettings
from amago.training.settings import RunSettings


def preset(name: str) -> Config:
    """The settings that a name stands for."""
    return find(name).make()


def find(name: str) -> Preset:
    if name in PRESETS:
        return PRESETS[name]
    close = difflib.get_close_matches(name, PRESETS, n=3, cutoff=0.4)
    hint = f"did you mean {' or '.join(close)}? " if close else ""
    raise ValueError(f"no preset is called {name!r}; {hint}`amago presets` lists them all")


def _t_maze() -> Config:
    return replace(
        SMALL,
        env=EnvSettings(id="amago/TMaze-v0", kwargs={"corridor": 100}, num_lanes=96),
        exploration=ExplorationSettings(kind="ends", anneal_fraction=0.9),
        replay=ReplaySettings(capacity=10_000),
        encoder=replace(SMALL.encoder, normalize=False),
        transformer=replace(SMALL.transformer, dropout=0.05),
        heads=replace(SMALL.heads, probability_floor=0.0, popart_rate=0.005),
        # Every wrong step is paid at once, so short horizons suffice. Near γ = 1 nothing damps the
        # values when the critics discover the cue, and a few thousand updates do not settle them.
        agent=AgentSettings(
            discounts=(0.5, 0.7, 0.8, 0.9, 0.95, 0.98),
            acting_discount=0.9,
            reward_scale=100.0,
            greedy=True,
            target_tau=0.01,
        ),
        run=RunSettings(epochs=80, updates_per_epoch=50, eval_interval=5),
    )


def _t_maze_1000() -> Config:
    """Shorter corridors in the same run teach the longest.

    A short corridor is walked many times while the longest is walked once, so batches are cheap,
    and what is learned there carries over: how to walk, and that the cue matters. A wrong step
    costs little where corridors are long, so values settle only as the step size falls.
    """
    small = _t_maze()
    corridors = (50, 100, 200, 400, 1000)
    return replace(
        small,
        env=replace(
            small.env,
            kwargs={},
            ids=tuple(f"{small.env.id}?corridor={length}" for length in corridors),
            num_lanes=60,
        ),
        optim=replace(small.optim, final_share=0.05),
        run=replace(small.run, epochs=80),
    )


def _dark_key_to_door() -> Config:
    return replace(
        MANY_TRIES,
        env=EnvSettings(
            id="amago/DarkKeyToDoor-v0",
            kwargs={"grid": 5, "trial_limit": 50, "horizon": 100},
            num_lanes=96,
        ),
    )


def _wind() -> Config:
    # Random play is inside the goal once in a hundred rollouts, and one such row outweighs a
    # thousand others in the gradient: many lanes to find it, many small updates to learn it, a
    # clip that lets it through, and targets of one critic, because the minimum of two is a bias
    # that bootstrapping piles up to more than the values themselves.
    return replace(
        SMALL,
        env=EnvSettings(id="amago/Wind-v0", num_lanes=1024),
        exploration=ExplorationSettings(anneal_fraction=0.6),
        replay=ReplaySettings(capacity=40_000, batch_size=48),
        encoder=EncoderSettings(hidden=(32, 32), normalize=False),
        transformer=replace(SMALL.transformer, model_dim=32, feedforward_dim=128),
        gru=GruSettings(hidden=64, output=32),
        feedforward=FeedforwardSettings(width=32, hidden=128),
        heads=HeadSettings(
            actor_hidden=(64, 64), critic_hidden=(64, 64), num_critics=2, popart_rate=0.005
        ),
        agent=AgentSettings(
            discounts=(0.9,), acting_discount=0.95, target_critics=1, n_step=3, target_tau=0.01
        ),
        optim=OptimSettings(learning_rate=1e-3, grad_clip=50.0),
        run=RunSettings(epochs=60, updates_per_epoch=150, eval_interval=5),
    )


def _recall(task_id: str) -> Config:
    """Short rollouts in which nothing but memory helps.

    An answer is paid at once and changes nothing later, so one short horizon is enough; every
    further discount would evaluate its own candidate actions, at the price of a whole update.
    Nothing hints at the answer before it is recalled, so noise must last until then.
    """
    return replace(
        SMALL,
        env=EnvSettings(id=task_id, num_lanes=96),
        exploration=ExplorationSettings(anneal_fraction=0.9),
        replay=ReplaySettings(capacity=10_000, batch_size=48),
        heads=replace(SMALL.heads, num_critics=2),
        agent=AgentSettings(
            discounts="single", acting_discount=0.5, reward_scale=10.0, target_tau=0.01
        ),
        optim=OptimSettings(learning_rate=1e-3),
        run=RunSettings(epochs=50, updates_per_epoch=50, eval_interval=5),
    )


def _multi_task() -> Config:
    """Two tasks with opposite answers, one paid a thousandfold: what a critic must bridge.

    A policy gradient pushes hardest where rewards are large, and too early: cloning, which
    weighs all answers that are better than the actor's own alike, has to bring it back.
    """
    recall = _recall("amago/PixelRecall-v0")
    large = "amago/PixelRecall-v0?opposite=True&reward_scale=1000"
    return replace(
        recall,
        env=replace(recall.env, kwargs={"delay": 1, "rounds": 12}, ids=(recall.env.id, large)),
        heads=replace(recall.heads, critic="two_hot"),
        agent=replace(recall.agent, acting_discount=0.0, bc_weight=1.0),
        run=replace(recall.run, epochs=60),
    )


def _gym() -> Config:
    # One-step targets reach about tau × updates steps back, too few for episodes of hundreds of
    # steps within minutes: five steps at a time do. Actions differ little in their long-run
    # values, so at a constant step size a policy that is good flips within a hundred updates.
    return replace(
        SMALL,
        env=EnvSettings(id="CartPole-v1", num_lanes=24, eval_lanes=32),
        rollout=RolloutSettings(steps_per_epoch=200),
        replay=ReplaySettings(capacity=1_000, context_length=64),
        heads=replace(SMALL.heads, popart_rate=0.01),
        agent=AgentSettings(
            discounts=(0.9, 0.95, 0.98),
            acting_discount=0.99,
            reward_scale=1.0,
            n_step=5,
            target_tau=0.01,
        ),
        optim=OptimSettings(learning_rate=5e-4, final_share=0.05, grad_clip=20.0),
        run=RunSettings(epochs=60, updates_per_epoch=100, eval_interval=5, eval_episodes=32),
    )


def _t_maze_paper() -> Config:
    return paper(
        EnvSettings(id="amago/TMaze-v0", kwargs={"corridor": 1000}),
        model_dim=128,
        num_layers=2,
        encoder=(128, 128, 128),
        agent=AgentSettings(acting_discount=0.9999, reward_scale=100.0, greedy=True),
        exploration=ExplorationSettings(kind="ends", anneal_steps=PAPER_ANNEAL),
        normalize=False,
        probability_floor=0.0,
    )


def _dark_key_to_door_paper() -> Config:
    return paper(
        EnvSettings(
            id="amago/DarkKeyToDoor-v0", kwargs={"grid": 9, "trial_limit": 50, "horizon": 500}
        ),
        model_dim=256,
        num_layers=3,
        encoder=(128, 128, 64),
        agent=AgentSettings(reward_scale=100.0),
    )


def _wind_paper() -> Config:
    return paper(
        EnvSettings(id="amago/Wind-v0"),
        model_dim=128,
        num_layers=2,
        encoder=(128, 128, 64),
        agent=AgentSettings(),
    )


PRESETS = {
    "dark-key-to-door": Preset(
        "Dark Key-To-Door, 5×5, 100 steps: find the key and the door, then use what you know",
        _dark_key_to_door,
    ),
    "dark-key-to-door/paper": Preset(
        "Dark Key-To-Door, 9×9, 500 steps, sizes of the paper's Tables 3 and 4",
        _dark_key_to_door_paper,
    ),
    "t-maze": Preset("Passive T-Maze, corridor 100: recall the first step at the last", _t_maze),
    "t-maze-1000": Preset(
        "Passive T-Maze, corridors of 50 to 1,000 in one run: the short ones teach the longest",
        _t_maze_1000,
    ),
    "t-maze/paper": Preset(
        "Passive T-Maze, corridor 1000, sizes of the paper's Tables 3 and 4", _t_maze_paper
    ),
    "wind": Preset("Wind: fly to a goal against a wind that only memory can feel", _wind),
    "wind/paper": Preset("Wind, sizes of the paper's Tables 3 and 4", _wind_paper),
    **INSTRUCTION_PRESETS,
    **SUITE_PRESETS,
    "masked-recall": Preset(
        "Masked recall: repeat pairs of symbols with multi-discrete actions under a mask",
        lambda: _recall("amago/MaskedRecall-v0"),
    ),
    "bit-recall": Preset(
        "Bit recall: repeat a pattern of bits with a multi-binary action",
        lambda: _recall("amago/BitRecall-v0"),
    ),
    "pixel-recall": Preset(
        "Pixel recall: a coloured frame now, its colour among four later",
        lambda: _recall("amago/PixelRecall-v0"),
    ),
    "multi-task": Preset(
        "Two recall tasks at once whose rewards differ a thousandfold", _multi_task
    ),
    "gym": Preset("Any Gymnasium environment: --env.id CartPole-v1", _gym),
}
