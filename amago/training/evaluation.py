"""The evaluations of a run: every few epochs, and the final test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from amago.agent.agent import sequences_of
from amago.config import Config
from amago.envs.registry import MakeEnv
from amago.evaluation.evaluate import evaluate_policy
from amago.evaluation.play import PlaySettings, make_policy, play
from amago.evaluation.pooled import pool
from amago.nets.memory.diagnose import activation_maxima
from amago.nets.memory.transformer import TransformerMemory
from amago.rollout.random_policy import RandomPolicy
from amago.rollout.stats import RolloutRecord
from amago.saved.files import read_json, read_rows, write_json
from amago.saved.header import read_header
from amago.seeding import derive
from amago.types import Curriculum, EnvSpec, Policy, VectorEnv

if TYPE_CHECKING:
    from amago.training.run import TrainingRun


def evaluation_settings(config: Config, seed: int, epoch: int = 0) -> PlaySettings:
    """The evaluation after an epoch, with its own action noise."""
    return PlaySettings(
        episodes=config.run.eval_episodes,
        num_lanes=config.env.eval_lanes,
        world_seed=derive(seed, "evaluation envs"),
        action_seed=derive(seed, "evaluation", epoch),
        greedy=config.agent.greedy,
    )


def final_test_settings(config: Config, seed: int) -> PlaySettings:
    """The final test, on worlds that neither training nor evaluation met."""
    return PlaySettings(
        episodes=config.run.final_eval_episodes,
        num_lanes=config.env.eval_lanes,
        world_seed=derive(seed, "final evaluation envs"),
        action_seed=derive(seed, "final evaluation"),
        greedy=config.agent.greedy,
    )


def evaluate_run(run: TrainingRun) -> list[RolloutRecord]:
    """Play the agent as it is now, without exploration, in worlds that no other evaluation has.

    Worlds and noise are functions of seed and epoch: a resumed run plays what it would have.
    """
    settings = evaluation_settings(run.config, run.seed, run.epoch)
    policy = make_policy(run.agent, settings)
    return play_after(run.epoch, policy, run.eval_env, settings, run.env.curriculum)


def random_play(run: TrainingRun) -> list[RolloutRecord]:
    """Random play in the worlds of this epoch's evaluation."""
    settings = evaluation_settings(run.config, run.seed, run.epoch)
    policy = random_player(run.env.spec, run.seed)
    return play_after(run.epoch, policy, run.eval_env, settings, run.env.curriculum)


def play_after(
    epoch: int,
    policy: Policy,
    eval_env: VectorEnv,
    settings: PlaySettings,
    curriculum: Curriculum,
) -> list[RolloutRecord]:
    """Play any policy in the worlds of the evaluation after an epoch."""
    eval_env.curriculum = curriculum  # evaluating does not move it
    first = epoch * settings.rollouts_per_lane
    return play(policy, eval_env, settings.episodes, first_rollout=first)


def random_player(spec: EnvSpec, seed: int) -> RandomPolicy:
    """Random play beside the evaluations of a run."""
    return RandomPolicy(spec, derive(seed, "random play in evaluations"))


@torch.no_grad()
def activations(run: TrainingRun) -> dict[str, float]:
    """How large activations of a Transformer grow on a batch of the replay (paper Figure 14)."""
    agent = run.agent
    if not isinstance(agent.memory, TransformerMemory) or not len(run.store):
        return {}
    batch = run.sampler.batch(run.learner.updates).to(agent.discounts.device)
    rows = agent.encoder(batch)
    largest = activation_maxima(agent.memory, rows, batch.time, sequences_of(batch))
    return {f"activation/{name}": value for name, value in largest.items()}


def final_test(run: TrainingRun) -> dict[str, Any]:
    """Test the finished agent, write result.json and return it; a second call only reads it."""
    path = run.folder / "result.json"
    if path.exists():
        known: dict[str, Any] = read_json(path)
        return known
    settings = final_test_settings(run.config, run.seed)
    counters = {
        "epochs": run.epoch,
        "env_steps": run.env_steps,
        "updates": run.learner.updates,
        "seconds": run.seconds,
    }
    policy = make_policy(run.agent, settings)
    tested = replace(settings, curriculum=run.env.curriculum)
    return write_result(
        run.folder, policy, run.env.spec, run.config, tested, counters, run.custom.make_env
    )


def write_result(
    folder: Path,
    policy: Policy,
    spec: EnvSpec,
    config: Config,
    settings: PlaySettings,
    counters: Mapping[str, Any],
    make_env: MakeEnv | None = None,
) -> dict[str, Any]:
    """Test any policy that a run folder is about, write result.json and return it."""
    header = read_header(folder)
    random = RandomPolicy(spec, derive(header["seed"], "random play"))
    scores = evaluate_policy(
        policy, spec, config.env, settings, controls={"random": random}, make_env=make_env
    )
    result = {
        "preset": header["preset"],
        "seed": header["seed"],
        **counters,
        "greedy": settings.greedy,
        **scores,
    }
    result["pooled"] = pool(read_rows(folder / "metrics.jsonl"), result)
    write_json(folder / "result.json", result)
    return result
