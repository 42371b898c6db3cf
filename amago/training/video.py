"""One rollout as a film."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from amago.agent.policy import AgentPolicy
from amago.envs.registry import make_vector
from amago.envs.settings import EnvSettings
from amago.training.evaluate import evaluate_rollouts
from amago.types import Array, Step

FRAMES_PER_SECOND = 12


def record_video(policy: AgentPolicy, settings: EnvSettings, seed: int, path: Path) -> None:
    """Play one rollout in one lane and write what it looks like."""
    try:
        import imageio.v3 as iio
    except ImportError as error:
        raise ValueError(
            "--video needs imageio, which is not installed: "
            "pip install -c constraints.txt 'amago[video]'"
        ) from error
    if path.suffix not in (".mp4", ".gif"):
        raise ValueError(f"--video takes a file that ends in .mp4 or .gif, got {path}")
    env = make_vector(settings, seed=seed, num_lanes=1)
    frames: list[Array] = []

    def watch(step: Step) -> None:
        if step.final is None:  # a lane that was reset in this call shows its next world
            frames.append(_even(env.render()))

    try:
        evaluate_rollouts(policy, env, 1, watch)
    finally:
        env.close()
    path.parent.mkdir(parents=True, exist_ok=True)
    iio.imwrite(path, np.stack(frames), fps=FRAMES_PER_SECOND)


def _even(frame: Array) -> Array:
    """Video codecs want even sides."""
    return frame[: frame.shape[0] // 2 * 2, : frame.shape[1] // 2 * 2]
