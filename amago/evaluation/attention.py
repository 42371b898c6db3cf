"""What a trained Transformer attends to in one rollout."""

from __future__ import annotations

import torch

from amago.agent.agent import pack
from amago.agent.policy import AgentPolicy
from amago.envs.registry import first_task, make_vector
from amago.envs.settings import EnvSettings
from amago.evaluation.play import evaluate_rollouts
from amago.nets.memory import TransformerMemory
from amago.nets.memory.diagnose import LayerDiagnosis, diagnose
from amago.replay.collate import collate
from amago.rollout.recorder import Recorder
from amago.types import Trajectory, max_goals


def diagnose_rollout(
    policy: AgentPolicy, settings: EnvSettings, seed: int
) -> tuple[Trajectory, list[LayerDiagnosis]]:
    """Play one rollout in one lane and look at every layer's attention over it."""
    memory = policy.agent.memory
    if not isinstance(memory, TransformerMemory):
        raise ValueError(
            f"attention is there only in a Transformer, got {type(memory).__name__}; "
            "evaluate a run that was trained with --memory transformer"
        )
    env = make_vector(first_task(settings), seed=seed, num_lanes=1)
    try:
        recorder = Recorder(env.spec, env.tasks)
        finished: list[Trajectory] = []
        evaluate_rollouts(policy, env, 1, lambda step: finished.extend(recorder.add(step)))
    finally:
        env.close()
    with torch.no_grad():
        batch = collate(finished[:1], [0], max_goals=max_goals(policy.agent.spec))
        _, rows = pack(batch.to(policy.device))
        encoded = policy.agent.eval().encoder(rows)
    return finished[0], diagnose(memory, encoded, rows.time)
