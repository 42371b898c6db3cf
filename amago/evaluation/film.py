"""One rollout as a film."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np

from amago.agent.policy import AgentPolicy
from amago.envs.registry import first_task, make_vector
from amago.envs.settings import EnvSettings
from amago.evaluation.play import evaluate_rollouts
from amago.types import Array, EnvSpec, Step, Timestep

FRAMES_PER_SECOND = 12
MARGIN = 4


def check_video(path: Path) -> None:
    """Fail before anything is played if the film could not be written."""
    if path.suffix not in (".mp4", ".gif"):
        raise ValueError(f"--video takes a file that ends in .mp4 or .gif, got {path}")
    if importlib.util.find_spec("imageio") is None:
        raise ValueError(
            "--video needs imageio, which is not installed: "
            "pip install 'amago[video]', or in a checkout of amago "
            "pip install -c constraints.txt -e '.[video]'"
        )


def record_video(policy: AgentPolicy, settings: EnvSettings, seed: int, path: Path) -> None:
    """Play one rollout in one lane and write what it looks like."""
    check_video(path)
    import imageio.v3 as iio

    env = make_vector(first_task(settings), seed=seed, num_lanes=1)
    frames: list[Array] = []
    bare: list[Array] = []

    def watch(step: Step) -> None:
        if step.final is None:
            bare[:] = [env.render()]
            frames.append(captioned(bare[0], instruction_lines(env.spec, step.rows)))
        elif bare:
            # The lane was reset in this call and shows its next world: the last picture stays, for
            # a second, with what the last step completed.
            last = captioned(bare[0], instruction_lines(env.spec, step.final))
            frames.extend([last] * FRAMES_PER_SECOND)

    try:
        evaluate_rollouts(policy, env, 1, watch)
    finally:
        env.close()
    path.parent.mkdir(parents=True, exist_ok=True)
    rate: dict[str, Any] = {"fps": FRAMES_PER_SECOND}
    if path.suffix == ".gif":
        rate = {"duration": 1000 / FRAMES_PER_SECOND, "loop": 0}
    iio.imwrite(path, same_size(frames), **rate)


def instruction_lines(spec: EnvSpec, rows: Timestep) -> list[str]:
    """What lane 0 is asked for, a goal per line, with a mark at those that are complete."""
    if spec.goals is None or rows.instruction is None:
        return []
    assert rows.num_goals is not None and rows.progress is not None
    asked, complete = rows.instruction[0, : rows.num_goals[0]], int(rows.progress[0])
    return [
        f"[{'x' if index < complete else ' '}] {spec.goals.write(goal[None])}"
        for index, goal in enumerate(asked)
    ]


def captioned(frame: Array, lines: list[str]) -> Array:
    """A frame above lines of text."""
    if not lines:
        return frame
    from PIL import Image, ImageDraw

    text = "\n".join(lines)
    _, _, right, bottom = ImageDraw.Draw(Image.new("RGB", (1, 1))).multiline_textbbox(
        (MARGIN, MARGIN), text
    )
    height, width = frame.shape[:2]
    sheet = Image.new("RGB", (max(width, int(right) + MARGIN), height + int(bottom) + MARGIN))
    sheet.paste(Image.fromarray(frame), (0, 0))
    ImageDraw.Draw(sheet).multiline_text((MARGIN, height + MARGIN), text, fill="white")
    return np.asarray(sheet)


def same_size(frames: list[Array]) -> Array:
    """All frames as large as the largest, since a mark may widen its line.

    Video codecs want sides that are multiples of 16.
    """
    height, width = (-(-max(frame.shape[axis] for frame in frames) // 16) * 16 for axis in (0, 1))
    return np.stack(
        [
            np.pad(frame, ((0, height - len(frame)), (0, width - frame.shape[1]), (0, 0)), "edge")
            for frame in frames
        ]
    )
