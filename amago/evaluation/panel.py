"""One moment of a rollout as a picture: the world, and below it a strip that says how it goes."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from amago.envs.tasks.draw import enlarged
from amago.types import Array

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont

_Colour = tuple[int, int, int]
_BACKGROUND: _Colour = (24, 27, 33)
_TEXT: _Colour = (236, 238, 242)
_FAINT: _Colour = (150, 156, 168)
_BAR: _Colour = (58, 63, 74)
_DONE: _Colour = (66, 132, 214)
_REWARD: _Colour = (244, 190, 66)
_COMPLETE: _Colour = (108, 204, 134)
_LONGEST_SIDE = 1500
"""Enlarging stops before a picture gets longer than this."""
_CODEC_BLOCK = 16
"""Video codecs want sides that are multiples of it."""

_Packed = tuple[tuple[int, ...], bytes]


@dataclass(frozen=True)
class Shot:
    """One row of a rollout as a film shows it."""

    picture: _Packed
    """An RGB frame, compressed: thousands of them are kept at a time."""
    time: int
    horizon: int | None
    total: float
    """Return so far."""
    trial: int
    action: str
    """What led here; empty at the beginning."""
    goals: tuple[tuple[str, bool], ...]
    """The instruction's goals, and whether each is complete."""
    rewards: tuple[int, ...]
    """Steps so far that were rewarded."""
    trials: tuple[int, ...]
    """Steps so far at which another trial began."""

    @staticmethod
    def packed(picture: Array) -> _Packed:
        return picture.shape, zlib.compress(picture.tobytes(), 1)

    @property
    def frame(self) -> Array:
        shape, data = self.picture
        return np.frombuffer(zlib.decompress(data), np.uint8).reshape(shape)


def panel(shot: Shot, title: str, side: int, num_goals: int) -> Array:
    """The picture, enlarged, over its strip; `num_goals` lines are kept free for goals."""
    from PIL import Image, ImageDraw

    picture = _enlarged(shot.frame, side)
    height, width = picture.shape[:2]
    size = int(np.clip(width / 28, 11, 30))
    line = round(size * 1.45)
    top = line + size // 2 if title else 0
    strip = round(line * (3.2 + num_goals))
    sheet = Image.new("RGB", (width, top + height + strip), _BACKGROUND)
    sheet.paste(Image.fromarray(picture), (0, top))
    draw, margin = ImageDraw.Draw(sheet), size // 2
    if title:
        draw.text((margin, margin // 2), title, _TEXT, _font(size))
    _timeline(draw, shot, (margin, top + height + margin, width - margin), size)
    y = top + height + round(line * 1.0)
    for words, colour in _lines(shot):
        draw.text((margin, y), words, colour, _fitting(words, width - 2 * margin, size))
        y += line
    return np.asarray(sheet)


def _lines(shot: Shot) -> list[tuple[str, _Colour]]:
    steps = f"step {shot.time}" + (f" of {shot.horizon}" if shot.horizon else "")
    where = [steps] + ([f"trial {shot.trial}"] if shot.trial > 1 or not shot.goals else [])
    if shot.goals:
        where.append(f"{sum(done for _, done in shot.goals)} of {len(shot.goals)} goals")
    lines: list[tuple[str, _Colour]] = [
        ("   ".join(where), _TEXT),
        (f"return {shot.total:.4g}   action {shot.action or '–'}", _TEXT),
    ]
    opened = False
    for goal, done in shot.goals:
        mark = "✓" if done else "–" if opened else "→"
        lines.append((f"{mark} {goal}", _COMPLETE if done else _FAINT if opened else _TEXT))
        opened |= not done
    return lines


def _timeline(draw: ImageDraw, shot: Shot, place: tuple[int, int, int], size: int) -> None:
    """How far the rollout is, with a tick at every reward and a gap at every new trial."""
    left, top, right = place
    bottom, span = top + max(4, size // 3), max(shot.horizon or shot.time, 1)

    def at(time: int) -> int:
        return left + round((right - left) * min(time, span) / span)

    draw.rectangle((left, top, right, bottom), _BAR)
    draw.rectangle((left, top, at(shot.time), bottom), _DONE)
    for time in shot.trials:
        draw.rectangle((at(time) - 1, top - 1, at(time), bottom + 1), _BACKGROUND)
    for time in shot.rewards:
        draw.rectangle((at(time) - 1, top - 3, at(time), bottom), _REWARD)


def _enlarged(picture: Array, side: int) -> Array:
    """Every pixel repeated, so that the shorter side has `side` pixels at least."""
    height, width = picture.shape[:2]
    wanted = -(-side // min(height, width))
    factor = max(1, min(wanted, _LONGEST_SIDE // max(height, width)))
    return enlarged(picture, factor)


def beside(panels: Sequence[Array]) -> Array:
    """Panels in a row, on a sheet whose sides suit video codecs."""
    gap = _CODEC_BLOCK if len(panels) > 1 else 0
    height = max(len(part) for part in panels)
    width = sum(part.shape[1] for part in panels) + gap * (len(panels) - 1)
    sheet = np.full((_rounded(height), _rounded(width), 3), _BACKGROUND, np.uint8)
    left = 0
    for part in panels:
        sheet[: len(part), left : left + part.shape[1]] = part
        left += part.shape[1] + gap
    return sheet


def _rounded(length: int) -> int:
    return -(-length // _CODEC_BLOCK) * _CODEC_BLOCK


def _fitting(words: str, width: int, size: int) -> Any:
    while size > 8 and _font(size).getlength(words) > width:
        size -= 1
    return _font(size)


@cache
def _font(size: int) -> FreeTypeFont:
    """The font that matplotlib brings along."""
    import matplotlib
    from PIL import ImageFont

    return ImageFont.truetype(
        str(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"), size
    )
