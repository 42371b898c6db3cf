"""Ratio and cost of storing pixels: the table of docs/environments.md.

    python benchmarks/pixel_storage.py

Plays each source for 256 frames, compresses and decompresses them as the replay does, and prints
raw bytes over stored ones and CPU time per frame, medians of 7.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from amago.envs.domains.dark_key_to_door import DarkKeyToDoor
from amago.envs.domains.pixel_recall import PixelRecall
from amago.envs.native import NativeVector
from amago.envs.tasks.base import Task
from amago.replay.pixels import compress, decompress
from amago.rollout.random_policy import RandomPolicy
from amago.types import Array

FRAMES = 256


def played(task: Task, frame: Callable[[NativeVector], Array]) -> Array:
    """Frames of random play."""
    vector = NativeVector(task, 1, 0)
    policy, rows = RandomPolicy(vector.spec, 0), vector.reset()
    frames = []
    for _ in range(FRAMES):
        frames.append(frame(vector))
        action, _ = policy.act(rows, None)
        rows = vector.step(action).rows
    return np.stack(frames)


def rendered(side: int) -> Array:
    def frame(vector: NativeVector) -> Array:
        image = vector.render()
        rows, columns = (np.arange(side) * size // side for size in image.shape[:2])
        return np.ascontiguousarray(image[rows][:, columns])

    return played(DarkKeyToDoor(), frame)


def scrolling(side: int) -> Array:
    """A texture of smooth blobs that moves one pixel per frame."""
    rng = np.random.default_rng(0)
    coarse = rng.integers(0, 256, (side // 8 + FRAMES // 8 + 2, side // 8, 3), np.uint8)
    texture = coarse.repeat(8, 0).repeat(8, 1)
    return np.stack([texture[start : start + side] for start in range(FRAMES)])


def sources() -> dict[str, Array]:
    noise = np.random.default_rng(0).integers(0, 256, (FRAMES, 64, 64, 3), np.uint8)
    recall = {
        f"Pixel recall {side}×{side}×3": played(
            PixelRecall(size=side), lambda vector: vector.task.observe()["observation"][0]
        )
        for side in (16, 64)
    }
    rooms = {f"Dark Key-To-Door rendered, {side}×{side}×3": rendered(side) for side in (64, 84)}
    return {**recall, **rooms, "a scrolling texture, 64×64×3": scrolling(64),
            "noise, 64×64×3": noise}  # fmt: skip


def microseconds(call: Callable[[], object]) -> float:
    """CPU time per frame."""
    times = []
    for _ in range(7):
        begin = time.process_time()
        call()
        times.append(time.process_time() - begin)
    return 1e6 * statistics.median(times) / FRAMES


def main() -> None:
    print(f"{'frames':<40} {'ratio':>6} {'compress':>10} {'decompress':>10}")
    for name, frames in sources().items():
        stored = compress(frames)
        there = microseconds(partial(compress, frames))
        if stored is None:
            print(f"{name:<40} {'raw':>6} {there:>7.0f} µs {'–':>10}")
            continue
        data, ends = stored
        back = microseconds(partial(decompress, data, ends, frames.shape, 0, FRAMES))
        ratio = frames.nbytes / len(data)
        print(f"{name:<40} {ratio:>6.3g} {there:>7.0f} µs {back:>7.0f} µs")


if __name__ == "__main__":
    main()
