"""One rollout as a film."""

from __future__ import annotations

import contextlib
import importlib.util
from pathlib import Path
from typing import Any

import numpy as np

from amago.envs.registry import first_task
from amago.envs.settings import EnvSettings
from amago.evaluation.play import PlaySettings, make_lanes, play
from amago.types import Array, EnvSpec, Policy, Step, Timestep, VectorEnv

_FRAMES_PER_SECOND = 12
_MARGIN = 4


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


def record_video(policy: Policy, env: EnvSettings, settings: PlaySettings, path: Path) -> None:
    """Play one rollout in one lane and write what it looks like."""
    check_video(path)
    import imageio.v3 as iio

    with contextlib.closing(make_lanes(first_task(env), settings.one_rollout())) as lane:
        camera = _Camera(lane)
        play(policy, lane, 1, watchers=[camera])
    path.parent.mkdir(parents=True, exist_ok=True)
    rate: dict[str, Any] = {"fps": _FRAMES_PER_SECOND}
    if path.suffix == ".gif":
        rate = {"duration": 1000 / _FRAMES_PER_SECOND, "loop": 0}
    iio.imwrite(path, same_size(camera.frames), **rate)


class _Camera:
    """Watches a lane: a picture per step, with the instruction below."""

    def __init__(self, lane: VectorEnv) -> None:
        self.lane, self.frames = lane, list[Array]()
        self._picture: Array | None = None

    def __call__(self, step: Step) -> None:
        spec = self.lane.spec
        *ended, (rows, _) = step.parts()
        if not ended:
            self._picture = self.lane.render()
            self.frames.append(captioned(self._picture, instruction_lines(spec, rows)))
        elif self._picture is not None:
            # The lane was reset in this call and shows its next world: the last picture stays, for
            # a second, with what the last step completed.
            last = captioned(self._picture, instruction_lines(spec, ended[0][0]))
            self.frames.extend([last] * _FRAMES_PER_SECOND)


def instruction_lines(spec: EnvSpec, rows: Timestep) -> list[str]:
    """The instruction of lane 0, a goal per line, with a mark at those that are complete."""
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
        (_MARGIN, _MARGIN), text
    )
    height, width = frame.shape[:2]
    sheet = Image.new("RGB", (max(width, int(right) + _MARGIN), height + int(bottom) + _MARGIN))
    sheet.paste(Image.fromarray(frame), (0, 0))
    ImageDraw.Draw(sheet).multiline_text((_MARGIN, height + _MARGIN), text, fill="white")
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
