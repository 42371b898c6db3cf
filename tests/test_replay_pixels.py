"""Pixels round trip through compressed records, whole and by the window."""

from __future__ import annotations

import numpy as np
import pytest

from amago.replay import pixels
from amago.replay.codec import decode, encode, own
from amago.replay.store import TrajectoryStore
from amago.types import ActionSpec, EnvSpec, ObsSpec, Trajectory


def trajectory(frames: np.ndarray) -> Trajectory:
    T = len(frames)
    return Trajectory(
        {"frame": frames, "x": np.arange(T, dtype=np.float32)[:, None]},
        np.zeros(T, np.uint8), np.arange(T, dtype=np.float32),
        np.zeros(T, bool), np.zeros(T, bool), task="t",
    )  # fmt: skip


def drawn(count: int, shape: tuple[int, ...] = (20, 16, 3)) -> np.ndarray:
    frames = np.zeros((count, *shape), np.uint8)
    for t in range(count):
        frames[t, t % shape[0], :5] = 40 + t
    return frames


@pytest.mark.parametrize("count", [1 + 1, 15, 16, 17, 33, 64])
@pytest.mark.parametrize("shape", [(20, 16, 3), (24, 24), (3, 20, 20)])
def test_frames_come_back_bit_for_bit_whole_and_in_every_window(count, shape):
    frames = drawn(count, shape)
    record = encode(trajectory(frames))
    assert len(record) < frames.nbytes
    assert np.array_equal(decode(record).obs["frame"], frames)
    for start in range(0, count, 5):
        for stop in range(start + 1, count + 1, 7):
            window = own(decode(memoryview(record), start, stop))
            assert np.array_equal(window.obs["frame"], frames[start:stop])
            assert np.array_equal(window.prev_reward, np.arange(start, stop))


def test_noise_and_small_arrays_are_stored_as_they_are():
    noise = np.random.default_rng(0).integers(0, 256, (9, 20, 20, 3), dtype=np.uint8)
    record = encode(trajectory(noise))
    assert noise.tobytes() in record and np.array_equal(decode(record).obs["frame"], noise)
    small = np.zeros((9, 5, 5), np.uint8)
    assert small.tobytes() in encode(trajectory(small))


def test_a_window_touches_its_own_chunks_only(monkeypatch):
    record = encode(trajectory(drawn(100)))
    calls = []
    real = pixels.zlib.decompressobj
    monkeypatch.setattr(pixels.zlib, "decompressobj", lambda: calls.append(1) or real())
    decode(record, 40, 50)
    assert len(calls) == 2  # rows 32..47 and 48..63


def test_drawn_worlds_shrink_at_least_tenfold():
    from amago.envs.domains.pixel_recall import PixelRecall
    from amago.envs.native import NativeVector

    task = PixelRecall(size=32)
    vector = NativeVector(task, 1, 0)
    rows = [vector.reset().obs["observation"][0]]
    for _ in range(task.horizon - 1):
        rows.append(vector.step(np.zeros(1, np.int64)).rows.obs["observation"][0])
    frames = np.stack(rows)
    assert len(encode(trajectory(frames))) < frames.nbytes / 10


def test_damaged_pixels_are_refused_with_a_remedy():
    record = bytearray(encode(trajectory(drawn(40))))
    frames = record.index(b"\x78\x01")  # the head of a zlib stream
    record[frames + 4 : frames + 24] = bytes(20)
    with pytest.raises(ValueError, match=r"damaged bytes .*restore"):
        decode(bytes(record))


def test_the_store_reads_windows_of_pixels(tmp_path):
    spec = EnvSpec(
        "e",
        {"frame": ObsSpec((20, 16, 3), "uint8", "image"), "x": ObsSpec((1,), "float32")},
        ActionSpec("discrete", 2), None,
    )  # fmt: skip
    with TrajectoryStore(tmp_path, spec, 5, (0, 0)) as store:
        store.append([trajectory(drawn(50))])
        assert np.array_equal(store.read_window(0, 30, 9).obs["frame"], drawn(50)[30:39])
