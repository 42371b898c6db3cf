"""The end of a run: its final evaluation, beside what others earn on the same worlds."""

from __future__ import annotations

from typing import Any

from amago.agent.policy import AgentPolicy
from amago.envs.registry import make_vector
from amago.evaluation.play import evaluate_rollouts
from amago.evaluation.references import oracle_blocks, oracle_summary
from amago.rollout.random_policy import RandomPolicy
from amago.rollout.stats import summarise, summarise_per_task
from amago.training.files import read_json, write_json
from amago.training.run import Custom, Run, read_header
from amago.training.seeding import derive

SCORES = ("return_mean", "success_rate", "length_mean")
"""What is kept of random play and of the oracle, beside their return per tenth."""


def conclude(run: Run, custom: Custom | None = None) -> dict[str, Any]:
    """Evaluate the finished agent on worlds that neither training nor evaluation met."""
    path = run.folder / "result.json"
    if path.exists():
        result: dict[str, Any] = read_json(path)
        return result
    episodes = run.config.run.final_eval_episodes
    env = make_vector(
        run.config.env,
        seed=derive(run.seed, "final evaluation envs"),
        num_lanes=min(run.config.env.eval_lanes, episodes),
        make_env=None if custom is None else custom.make_env,
    )
    try:
        policy = AgentPolicy(
            run.agent, seed=derive(run.seed, "final evaluation"), greedy=run.config.agent.greedy
        )
        records = evaluate_rollouts(policy, env, episodes)
        played = RandomPolicy(env.spec, derive(run.seed, "random play"))
        random_records = evaluate_rollouts(played, env, episodes)
    finally:
        env.close()
    summary, random = summarise(records), summarise(random_records)
    references = {"random": random["return_per_block"], "oracle": oracle_blocks(run.config.env)}
    scores = {"random": {name: random[name] for name in SCORES}}
    if (oracle := oracle_summary(run.config.env)) is not None:
        scores["oracle"] = {name: oracle[name] for name in SCORES}
    result = {
        "preset": read_header(run.folder)["preset"],
        "seed": run.seed,
        "epochs": run.epoch,
        "env_steps": run.env_steps,
        "updates": run.learner.updates,
        "seconds": run.seconds,
        **summary,
        "random_return_mean": random["return_mean"],
        "references": {name: blocks for name, blocks in references.items() if blocks is not None},
        "reference_scores": scores,
    }
    if len(set(env.tasks)) > 1:
        by_chance = summarise_per_task(random_records)
        result["tasks"] = {
            task: {**earned, "random_return_mean": by_chance[task]["return_mean"]}
            for task, earned in summarise_per_task(records).items()
        }
    write_json(path, result)
    return result
