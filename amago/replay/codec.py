"""A trajectory as one self-describing run of bytes, and back.

Layout: a fixed prefix (magic, format version, header size, header checksum, payload size),
a JSON header (names, dtypes, shapes and offsets of the arrays, world seed, task), then
the raw arrays, each at a multiple of 16 bytes after the header. Decoding makes views, so
reading a window touches the header and the rows of the window, nothing else. For the
same reason the checksum covers the header alone. Pixels are compressed: their field lists the
ends of the chunks, too.
"""

from __future__ import annotations

import json
import struct
import zlib
from typing import Any

import numpy as np

from amago.replay.pixels import compress, decompress, is_pixels
from amago.replay.window import cut
from amago.types import Array, Trajectory

FORMAT_VERSION = 3

_MAGIC = b"AMGT"
_PREFIX = struct.Struct("<4sHxxIIQ")
_ALIGNMENT = 16
_OBS = "obs/"
_ROWS = ("prev_action", "prev_reward", "first", "terminal", "progress")
_GOALS = ("achieved/offsets", "achieved/goals")


def encode(trajectory: Trajectory) -> bytes:
    """The record of a trajectory; ValueError when its arrays do not fit together."""
    arrays = _arrays(trajectory)
    _check_arrays(arrays, trajectory.num_steps + 1)
    fields: dict[str, list[Any]] = {}
    payload: dict[str, bytes | memoryview] = {}
    size = 0
    for name, array in arrays.items():
        size = _aligned(size)
        fields[name] = [array.dtype.str, array.shape, size]
        payload[name] = array.reshape(-1).view(np.uint8).data
        packed = compress(array) if name.startswith(_OBS) and is_pixels(array) else None
        if packed is not None:
            payload[name] = packed[0]
            fields[name].append(packed[1])
        size += len(payload[name])
    header = json.dumps(
        {
            "world_seed": int(trajectory.world_seed),
            "task": trajectory.task,
            "fields": fields,
        },
        separators=(",", ":"),
    ).encode()
    prefix = _PREFIX.pack(_MAGIC, FORMAT_VERSION, len(header), zlib.crc32(header), size)
    start = len(prefix) + len(header)
    parts: list[bytes | memoryview] = [prefix, header, bytes(_aligned(start) - start)]
    end = 0
    for name, data in payload.items():
        parts += [bytes(fields[name][2] - end), data]
        end = fields[name][2] + len(data)
    return b"".join(parts)


def decode(buffer: bytes | memoryview, start: int = 0, stop: int | None = None) -> Trajectory:
    """The rows start..stop-1 of a record, as views of the buffer where it is not compressed."""
    header, payload = _open(buffer)
    arrays: dict[str, Array] = {}
    for name, (dtype, shape, offset, *ends) in header["fields"].items():
        if ends:
            rest = memoryview(buffer)[payload + offset :]
            last = shape[0] if stop is None else min(stop, shape[0])
            arrays[name] = decompress(rest, ends[0], tuple(shape), max(start, 0), last)
        else:
            arrays[name] = np.ndarray(shape, dtype, buffer, payload + offset)
    trajectory = Trajectory(
        obs={name[len(_OBS) :]: array for name, array in arrays.items() if name.startswith(_OBS)},
        prev_action=arrays["prev_action"],
        prev_reward=arrays["prev_reward"],
        first=arrays["first"],
        terminal=arrays["terminal"],
        world_seed=header["world_seed"],
        task=header["task"],
        instruction=arrays.get("instruction"),
        progress=arrays.get("progress"),
        achieved=(arrays[_GOALS[0]], arrays[_GOALS[1]]) if _GOALS[0] in arrays else None,
    )
    if start == 0 and stop is None:
        return trajectory
    return cut(trajectory, start, trajectory.num_steps + 1 if stop is None else stop)


def own(trajectory: Trajectory) -> Trajectory:
    """The same trajectory in memory of its own, for when the buffer behind views goes away."""
    return Trajectory(**{name: _copy(value) for name, value in vars(trajectory).items()})


def _copy(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    return tuple(map(_copy, value)) if isinstance(value, tuple) else value


def _open(buffer: bytes | memoryview) -> tuple[dict[str, Any], int]:
    """The header, and where the arrays begin, after checks that touch no array."""
    if len(buffer) < _PREFIX.size:
        raise ValueError(
            f"expected a trajectory record of at least {_PREFIX.size} bytes, got {len(buffer)}; "
            "it was truncated: remove it or restore the file from a copy"
        )
    magic, version, header_size, checksum, payload_size = _PREFIX.unpack_from(buffer)
    if magic != _MAGIC:
        raise ValueError(
            f"expected a trajectory record, which begins with {_MAGIC!r}, got {bytes(magic)!r}; "
            "these bytes are damaged or were not written by amago"
        )
    if version != FORMAT_VERSION:
        raise ValueError(
            f"expected a trajectory record of format {FORMAT_VERSION}, got format {version}; "
            "read it with the amago version that wrote it"
        )
    payload = _aligned(_PREFIX.size + header_size)
    if len(buffer) != payload + payload_size:
        raise ValueError(
            f"expected a trajectory record of {payload + payload_size} bytes, got {len(buffer)}; "
            "it was truncated: remove it or restore the file from a copy"
        )
    header = bytes(buffer[_PREFIX.size : _PREFIX.size + header_size])
    if zlib.crc32(header) != checksum:
        raise ValueError(
            "expected the header of a trajectory record to match its checksum, but it does not; "
            "the record is damaged: remove it or restore the file from a copy"
        )
    return json.loads(header), payload


def _arrays(trajectory: Trajectory) -> dict[str, Array]:
    named: dict[str, Array | None] = {_OBS + key: value for key, value in trajectory.obs.items()}
    named |= {name: getattr(trajectory, name) for name in _ROWS}
    named["instruction"] = trajectory.instruction
    if trajectory.achieved is not None:
        named |= dict(zip(_GOALS, trajectory.achieved, strict=True))
    return {name: np.ascontiguousarray(array) for name, array in named.items() if array is not None}


def _check_arrays(arrays: dict[str, Array], num_rows: int) -> None:
    for name, array in arrays.items():
        if array.dtype.kind not in "biufc":
            raise ValueError(
                f"expected numbers or flags in {name!r}, got dtype {array.dtype}; "
                "encode it as numbers before recording"
            )
        per_row = name in _ROWS or name.startswith(_OBS)
        if per_row and (array.ndim == 0 or len(array) != num_rows):
            raise ValueError(
                f"expected {num_rows} rows in {name!r}, as many as prev_reward has, "
                f"got shape {array.shape}; a trajectory of T steps has T+1 rows"
            )
    if _GOALS[0] not in arrays:
        return
    offsets, goals = (arrays[name] for name in _GOALS)
    bounds_fit = len(offsets) == num_rows + 1 and offsets[0] == 0 and offsets[-1] == len(goals)
    if not bounds_fit or (offsets[1:] < offsets[:-1]).any():
        raise ValueError(
            f"expected {num_rows + 1} ascending offsets from 0 to {len(goals)} in 'achieved', "
            f"got {len(offsets)}: {offsets[:3]}..{offsets[-3:]}; row t owns "
            "goals[offsets[t]:offsets[t + 1]]"
        )


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
