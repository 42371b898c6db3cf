"""The evaluations of a run: every few epochs, and the final test."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from amago.agent.agent import sequences_of
from amago.config import Config
from amago.evaluation.evaluate import evaluate_agent
from amago.evaluation.play import PlaySettings, make_policy, play
from amago.evaluation.pooled import pool
from amago.nets.memory.diagnose import activation_maxima
from amago.nets.memory.transformer import TransformerMemory
from amago.rollout.random_policy import RandomPolicy
from amago.rollout.stats import RolloutRecord
from amago.seeding import derive
from amago.training.files import read_json, read_rows, write_json
from amago.training.header import read_header

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
    run.eval_env.curriculum = run.env.curriculum  # evaluating does not move it
    return play(
        make_policy(run.agent, settings),
        run.eval_env,
        settings.episodes,
        first_rollout=run.epoch * settings.rollouts_per_lane,
    )


def random_play(run: TrainingRun) -> list[RolloutRecord]:
    """Random play in the worlds of this epoch's evaluation."""
    settings = evaluation_settings(run.config, run.seed, run.epoch)
    policy = RandomPolicy(run.env.spec, derive(run.seed, "random play in evaluations"))
    run.eval_env.curriculum = run.env.curriculum
    first = run.epoch * settings.rollouts_per_lane
    return play(policy, run.eval_env, settings.episodes, first_rollout=first)


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
    scores = evaluate_agent(
        run.agent,
        run.config.env,
        replace(settings, curriculum=run.env.curriculum),
        controls={"random": RandomPolicy(run.env.spec, derive(run.seed, "random play"))},
        make_env=run.custom.make_env,
    )
    result = {
        "preset": read_header(run.folder)["preset"],
        "seed": run.seed,
        "epochs": run.epoch,
        "env_steps": run.env_steps,
        "updates": run.learner.updates,
        "seconds": run.seconds,
        "greedy": settings.greedy,
        **scores,
    }
    rows = read_rows(run.folder / "metrics.jsonl")
    result["pooled"] = pool(rows, result)
    write_json(path, result)
    return result
