"""Stored trajectories that rotted, and records that a stranger made up."""

from __future__ import annotations

import json
import shutil
import struct
import zlib
from pathlib import Path
from typing import Any

import lmdb
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_replay_helpers import COUNTING_SPEC, counting_trajectory, same
from test_run_helpers import lines, tiny

from amago import api
from amago.replay.codec import DamagedRecordError, check, decode, encode
from amago.replay.sampler import Sampler
from amago.replay.store import TrajectoryStore

OBS = {"count": ("float32", (3,))}


def rewrite(folder: Path, key: int, change: Any) -> None:
    """Change one record of a store behind its back."""
    with lmdb.open(str(folder), max_dbs=8) as env:
        records = env.open_db(b"trajectories")
        name = struct.pack(">cQ", b"t", key)
        with env.begin(write=True) as txn:
            txn.put(name, change(bytes(txn.get(name, db=records))), db=records)


def flipped(record: bytes, position: int = -9) -> bytes:
    garbled = bytearray(record)
    garbled[position] ^= 16
    return bytes(garbled)


def with_header(record: bytes, change: Any) -> bytes:
    """The record with another header, whose checksum is right."""
    magic, version, size, _, payload_size = struct.unpack_from("<4sHxxIIQ", record)
    header = json.loads(record[24 : 24 + size])
    payload = record[len(record) - payload_size :]
    text = json.dumps(change(header) or header).encode()
    prefix = struct.pack("<4sHxxIIQ", magic, version, len(text), zlib.crc32(text), payload_size)
    start = -(-(24 + len(text)) // 16) * 16
    return (prefix + text).ljust(start, b"\0") + payload


@pytest.fixture
def store(tmp_path: Path) -> Path:
    with TrajectoryStore(tmp_path / "replay", COUNTING_SPEC, 10) as store:
        store.append([counting_trajectory(0, number, 5) for number in range(4)])
    return tmp_path / "replay"


def test_any_flipped_bit_of_the_arrays_is_found() -> None:
    record = encode(counting_trajectory(1, 2, 3))
    assert check(record, OBS) == 3
    payload = struct.unpack_from("<Q", record, 16)[0]
    for position in range(len(record) - payload, len(record)):
        with pytest.raises(DamagedRecordError, match="checksum"):
            check(flipped(record, position), OBS)


def test_a_damaged_record_is_skipped_counted_and_reported(
    store: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rewrite(store, 2, flipped)
    with TrajectoryStore(store, COUNTING_SPEC, 10) as opened:
        sampler = Sampler(opened, 8, 4, seed=0)
        for update in range(10):
            batch = sampler.batch(update)
            assert 2 not in batch.obs["count"][:, 1]
        assert opened.damaged == {2}
        with pytest.raises(DamagedRecordError):
            opened.read(2)
    assert caplog.text.count("trajectory 2 of") == 1 and "checksum" in caplog.text


def test_without_damage_batches_are_what_they_were(store: Path) -> None:
    with TrajectoryStore(store, COUNTING_SPEC, 10) as opened:
        first = [Sampler(opened, 8, 4, seed=0).batch(n) for n in range(3)]
        again = [Sampler(opened, 8, 4, seed=0).batch(n) for n in range(3)]
        assert all(same(a.obs["count"].numpy(), b.obs["count"].numpy())
                   for a, b in zip(first, again, strict=True))  # fmt: skip


def test_a_store_of_damaged_records_alone_is_an_error_and_no_endless_loop(store: Path) -> None:
    for key in range(4):
        rewrite(store, key, flipped)
    with (
        TrajectoryStore(store, COUNTING_SPEC, 10) as opened,
        pytest.raises(DamagedRecordError, match="restore the file from a copy"),
    ):
        Sampler(opened, 8, 4, seed=0).batch(0)


def test_a_run_with_a_damaged_trajectory_goes_on_and_says_how_many_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(api, "plot_run", lambda *_: None)
    folder = tmp_path / "run"
    api.train(tiny("wind", {"run.epochs": 2, "env.kwargs": {"horizon": 5}}), 0, folder)
    rewrite(folder / "replay", 1, flipped)
    api.resume(folder, epochs=5)
    assert lines(folder)[-1]["replay/damaged"] == 1
    assert "trajectory 1 of" in caplog.text


HOSTILE: dict[str, Any] = {
    "objects": lambda h: h["fields"]["first"].__setitem__(0, "|O8"),
    "pickled objects": lambda h: h["fields"]["first"].__setitem__(0, "O"),
    "a record dtype": lambda h: h["fields"]["first"].__setitem__(0, [["a", "|O8"]]),
    "text": lambda h: h["fields"]["first"].__setitem__(0, "<U9"),
    "void": lambda h: h["fields"]["first"].__setitem__(0, "|V8"),
    "dates": lambda h: h["fields"]["first"].__setitem__(0, "<M8[ns]"),
    "80 TB": lambda h: h["fields"]["obs/count"].__setitem__(1, [10**13]),
    "80 TB of pixels": lambda h: h["fields"].__setitem__(
        "obs/count", ["|u1", [10**7, 10**3, 10**3], 0, [5] * (10**7 // 16)]
    ),
    "a negative size": lambda h: h["fields"]["obs/count"].__setitem__(1, [-1, 3]),
    "sizes that overflow": lambda h: h["fields"]["obs/count"].__setitem__(1, [2**32, 2**32]),
    "a size of 2**70": lambda h: h["fields"]["obs/count"].__setitem__(1, [2**70]),
    "true as a size": lambda h: h["fields"]["obs/count"].__setitem__(1, [True, 3]),
    "before the record": lambda h: h["fields"]["obs/count"].__setitem__(2, -64),
    "after the record": lambda h: h["fields"]["obs/count"].__setitem__(2, 10**6),
    "one byte too far": lambda h: h["fields"]["terminal"].__setitem__(
        2, h["fields"]["terminal"][2] + 1
    ),
    "half a field": lambda h: h["fields"]["first"].pop(),
    "a field of nothing": lambda h: h["fields"].__setitem__("first", None),
    "rows that differ": lambda h: h["fields"]["prev_reward"].__setitem__(1, [3]),
    "no rows at all": lambda h: h["fields"]["prev_reward"].__setitem__(1, []),
    "a missing array": lambda h: h["fields"].pop("terminal"),
    "another array": lambda h: h["fields"].__setitem__("payload", ["|b1", [1], 0]),
    "other observations": lambda h: h["fields"].__setitem__(
        "obs/more", h["fields"]["obs/count"]
    ),
    "no fields": lambda h: h.pop("fields"),
    "a task that is no text": lambda h: h.__setitem__("task", 5),
    "a seed that is no number": lambda h: h.__setitem__("world_seed", "x"),
    "no object": lambda h: [1, 2],
}  # fmt: skip


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_record_made_by_a_stranger_is_refused_before_anything_is_made_of_it(kind: str) -> None:
    record = with_header(encode(counting_trajectory(0, 0, 5)), HOSTILE[kind])
    with pytest.raises(DamagedRecordError):
        check(record, OBS)


def test_a_header_that_is_nested_without_end_is_refused() -> None:
    record = encode(counting_trajectory(0, 0, 5))
    text = b"[" * 100_000
    prefix = struct.pack("<4sHxxIIQ", b"AMGT", 4, len(text), zlib.crc32(text), 0)
    with pytest.raises(DamagedRecordError):
        check((prefix + text).ljust(-(-(24 + len(text)) // 16) * 16, b"\0"), OBS)
    assert check(record, OBS) == 5


def test_compressed_pixels_cannot_grow_beyond_their_shape() -> None:
    from dataclasses import replace

    pixels = {"count": np.zeros((6, 32, 32, 3), np.uint8)}
    record = encode(replace(counting_trajectory(0, 0, 5), obs=pixels))
    obs = {"count": ("uint8", (32, 32, 3))}
    assert check(record, obs) == 5

    def smaller(header: Any) -> None:
        header["fields"]["obs/count"][1] = [6, 2, 2, 3]

    with pytest.raises(DamagedRecordError):
        check(with_header(record, smaller), obs)
    with pytest.raises(DamagedRecordError):
        decode(with_header(record, smaller))


META = {
    "window of any size": (b"window", b"[0, 1000000000000000]"),
    "window of nonsense": (b"window", b'["x", null]'),
    "window that is no JSON": (b"window", b"[[[["),
    "protected trajectories without end": (b"protected", b"1000000000000000"),
    "protected nonsense": (b"protected", b"many"),
    "spaces that are no JSON": (b"spaces", b"\xff\xfe"),
    "spaces without observations": (b"spaces", b"{}"),
    "spaces of objects": (
        b"spaces", b'{"obs": {"count": {"shape": [3], "dtype": "nonsense"}}, "action": {}}',
    ),
    "a format that is no number": (b"format", b"four"),
}  # fmt: skip


@pytest.mark.parametrize("kind", META)
def test_a_store_that_lies_about_itself_is_refused(kind: str, store: Path) -> None:
    name, value = META[kind]
    with lmdb.open(str(store), max_dbs=8) as env, env.begin(write=True) as txn:
        txn.put(name, value, db=env.open_db(b"meta", txn=txn))
    for opens in (
        lambda: TrajectoryStore.open_readonly(store),
        lambda: TrajectoryStore(store, COUNTING_SPEC, 10),
    ):
        with pytest.raises(ValueError, match=str(store)):
            opens()


def test_keys_of_another_size_are_refused(store: Path) -> None:
    with lmdb.open(str(store), max_dbs=8) as env, env.begin(write=True) as txn:
        txn.put(b"x", b"y", db=env.open_db(b"steps", txn=txn))
    with pytest.raises(ValueError, match="not written by amago"):
        TrajectoryStore.open_readonly(store)


def test_a_length_that_is_not_the_records_is_found(store: Path) -> None:
    with lmdb.open(str(store), max_dbs=8) as env, env.begin(write=True) as txn:
        key = struct.pack(">cQ", b"t", 1)
        txn.put(key, (10**12).to_bytes(8, "big"), db=env.open_db(b"steps", txn=txn))
    with TrajectoryStore.open_readonly(store) as opened:
        with pytest.raises(DamagedRecordError, match="as the store says"):
            opened.read(1)
        assert opened.read(0).num_steps == 5


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_no_change_to_a_record_does_more_than_be_found(data: Any) -> None:
    """Whatever bytes change, and with a right checksum of the header: an error or the record."""
    record = bytearray(encode(counting_trajectory(0, 0, 4)))
    size = struct.unpack_from("<4sHxxI", record)[2]
    for _ in range(data.draw(st.integers(1, 4))):
        record[data.draw(st.integers(0, len(record) - 1))] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        struct.pack_into("<I", record, 12, zlib.crc32(bytes(record[24 : 24 + size])))
    try:
        check(bytes(record), OBS)
        decode(bytes(record))
    except DamagedRecordError:
        pass


def test_a_copy_of_a_store_is_read_like_the_store(store: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(store, tmp_path / "copy"))
    with TrajectoryStore.open_readonly(copy) as opened:
        assert same(opened.read(3), counting_trajectory(0, 3, 5))
