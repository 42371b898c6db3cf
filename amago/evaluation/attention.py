"""What a trained Transformer attends to in one rollout."""

from __future__ import annotations

import contextlib

import torch

from amago.agent.policy import AgentPolicy
from amago.envs.registry import first_task
from amago.envs.settings import EnvSettings
from amago.evaluation.play import PlaySettings, make_lanes, play
from amago.nets.memory.diagnose import LayerDiagnosis, diagnose
from amago.nets.memory.transformer import TransformerMemory
from amago.replay.collate import collate
from amago.rollout.recorder import Recorder
from amago.types import Trajectory, max_goals


def diagnose_rollout(
    policy: AgentPolicy, env: EnvSettings, settings: PlaySettings
) -> tuple[Trajectory, list[LayerDiagnosis]]:
    """Play one rollout in one lane and look at every layer's attention over it."""
    memory = policy.agent.memory
    if not isinstance(memory, TransformerMemory):
        raise ValueError(
            f"only a Transformer has attention, got {type(memory).__name__}; "
            "evaluate a run that was trained with --memory transformer"
        )
    finished: list[Trajectory] = []
    with contextlib.closing(make_lanes(first_task(env), settings.one_rollout())) as lanes:
        recorder = Recorder(lanes.spec, lanes.tasks)
        play(policy, lanes, 1, watchers=[lambda step: finished.extend(recorder.add(step))])
    with torch.no_grad():
        batch = collate(finished[:1], [0], max_goals(policy.agent.spec)).to(policy.device)
        encoded = policy.agent.eval().encoder(batch)
    return finished[0], diagnose(memory, encoded, batch.time)
