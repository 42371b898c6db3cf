"""A trajectory as one self-describing run of bytes, and back.

Layout: a fixed prefix (magic, format version, header size, header checksum, payload size),
a JSON header (names, dtypes, shapes and offsets of the arrays, world seed, task), then
the raw arrays, each at a multiple of 16 bytes after the header. Decoding makes views, so
reading a window touches the header and the rows of the window, nothing else. The checksum in
the prefix covers the header alone for the same reason; the header has that of the arrays, which
`check` compares. Pixels are compressed: their field lists the ends of the chunks, too.

Records may come from strangers: only plain numbers, inside the record, are ever decoded.
"""

from __future__ import annotations

import json
import math
import re
import struct
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from amago.replay.pixels import CHUNK_ROWS, compress, decompress, is_pixels
from amago.replay.window import cut
from amago.types import Array, Trajectory

_FORMAT_VERSION = 4

_MAGIC = b"AMGT"
_PREFIX = struct.Struct("<4sHxxIIQ")
_ALIGNMENT = 16
_OBS = "obs/"
_ROWS = ("prev_action", "prev_reward", "first", "terminal", "progress")
_GOALS = ("achieved/offsets", "achieved/goals")
_REQUIRED = ("prev_action", "prev_reward", "first", "terminal")
_KINDS = "biufc"
"""Flags and numbers: the kinds of numpy dtypes that a record may hold."""
_MOST_INFLATED = 1100
"""zlib makes at most 1032 bytes from one."""


class DamagedRecordError(ValueError):
    """Bytes that are not, or no longer, the record of a trajectory."""


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
    parts: list[bytes | memoryview] = []
    end = 0
    for name, data in payload.items():
        parts += [bytes(fields[name][2] - end), data]
        end = fields[name][2] + len(data)
    body = b"".join(parts)
    header = json.dumps(
        {
            "world_seed": int(trajectory.world_seed),
            "task": trajectory.task,
            "checksum": zlib.crc32(body),
            "fields": fields,
        },
        separators=(",", ":"),
    ).encode()
    prefix = _PREFIX.pack(_MAGIC, _FORMAT_VERSION, len(header), zlib.crc32(header), len(body))
    start = len(prefix) + len(header)
    return b"".join([prefix, header, bytes(_aligned(start) - start), body])


def check(buffer: bytes | memoryview, obs: Mapping[str, tuple[str, tuple[int, ...]]]) -> int:
    """The steps of a record; DamagedRecordError unless all bytes of its arrays are as written.

    `obs` says of which dtype and shape each observation is.
    """
    header, payload = _open(buffer)
    if zlib.crc32(memoryview(buffer)[payload:]) != header["checksum"]:
        raise DamagedRecordError(
            "expected the arrays of a trajectory record to match their checksum, but they do not; "
            "the record is damaged: remove it or restore the file from a copy"
        )
    arrays = {
        name: np.ndarray(shape, dtype, buffer, payload + offset)
        for name, (dtype, shape, offset, *ends) in header["fields"].items()
        if not ends
    }
    try:
        _check_arrays(arrays, len(arrays["prev_reward"]))
    except ValueError as error:
        raise DamagedRecordError(str(error)) from error
    found = {
        name[len(_OBS) :]: (np.dtype(dtype).name, tuple(shape[1:]))
        for name, (dtype, shape, *_) in header["fields"].items()
        if name.startswith(_OBS)
    }
    if found != obs:
        raise DamagedRecordError(f"expected observations {dict(obs)}, got {found}")
    return len(arrays["prev_reward"]) - 1


def decode(
    buffer: bytes | memoryview, start: int = 0, stop: int | None = None, *, sound: bool = False
) -> Trajectory:
    """The rows start..stop-1 of a record, as views of the buffer where it is not compressed.

    `sound` saves the checks of a record that has passed `check`.
    """
    header, payload = _open(buffer, sound=sound)
    arrays: dict[str, Array] = {}
    for name, (dtype, shape, offset, *ends) in header["fields"].items():
        if ends:
            rest = memoryview(buffer)[payload + offset :]
            last = shape[0] if stop is None else min(stop, shape[0])
            try:
                arrays[name] = decompress(rest, ends[0], tuple(shape), max(start, 0), last)
            except ValueError as error:
                raise DamagedRecordError(str(error)) from error
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


def _open(buffer: bytes | memoryview, *, sound: bool = False) -> tuple[dict[str, Any], int]:
    """The header, and where the arrays begin, after checks that touch no array."""
    if len(buffer) < _PREFIX.size:
        raise DamagedRecordError(
            f"expected a trajectory record of at least {_PREFIX.size} bytes, got {len(buffer)}; "
            "it was truncated: remove it or restore the file from a copy"
        )
    magic, version, header_size, checksum, payload_size = _PREFIX.unpack_from(buffer)
    if magic != _MAGIC:
        raise DamagedRecordError(
            f"expected a trajectory record, which begins with {_MAGIC!r}, got {bytes(magic)!r}; "
            "these bytes are damaged or were not written by amago"
        )
    if version != _FORMAT_VERSION:
        raise DamagedRecordError(
            f"expected a trajectory record of format {_FORMAT_VERSION}, got format {version}; "
            "read it with the amago version that wrote it"
        )
    payload = _aligned(_PREFIX.size + header_size)
    if len(buffer) != payload + payload_size:
        raise DamagedRecordError(
            f"expected a trajectory record of {payload + payload_size} bytes, got {len(buffer)}; "
            "it was truncated: remove it or restore the file from a copy"
        )
    header = bytes(buffer[_PREFIX.size : _PREFIX.size + header_size])
    if zlib.crc32(header) != checksum:
        raise DamagedRecordError(
            "expected the header of a trajectory record to match its checksum, but it does not; "
            "the record is damaged: remove it or restore the file from a copy"
        )
    return json.loads(header) if sound else _checked_header(header, payload_size), payload


def _checked_header(header: bytes, payload_size: int) -> dict[str, Any]:
    """The header of a record, if nothing in it asks for more than the record holds."""
    try:
        values = json.loads(header)
        fields = values["fields"]
        known = set(_ROWS) | set(_GOALS) | {"instruction"}
        wrong = [name for name in fields if name not in known and not name.startswith(_OBS)]
        wrong += [name for name, field in fields.items() if not _fits(field, payload_size)]
        rows = {
            tuple(field[1][:1])
            for name, field in fields.items()
            if name in _ROWS or name.startswith(_OBS)
        }
        wrong += [] if len(rows) == 1 and rows != {()} else ["rows"]
        wrong += [name for name in _REQUIRED if name not in fields]
        wrong += [] if isinstance(values["task"], str) else ["task"]
        wrong += [] if type(values["world_seed"]) is type(values["checksum"]) is int else ["seed"]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise DamagedRecordError(
            f"expected the header of a trajectory record, got {error!r}"
        ) from error
    if wrong:
        raise DamagedRecordError(
            f"expected plain arrays of numbers within a trajectory record, got others for "
            f"{', '.join(map(repr, wrong[:5]))}; it was not written by amago: remove it"
        )
    checked: dict[str, Any] = values
    return checked


def _fits(field: Any, payload_size: int) -> bool:
    """Whether a field is numbers in an array that lies inside the record."""
    dtype, shape, offset, *ends = field
    sizes = [*shape, offset, *(ends[0] if ends else [])]
    if not all(type(size) is int and 0 <= size < 2**48 for size in sizes) or len(shape) > 32:
        return False
    if not isinstance(dtype, str) or not re.fullmatch(rf"[<>|=][{_KINDS}][0-9]{{1,2}}", dtype):
        return False
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if not ends:
        return bool(offset + size <= payload_size)
    chunks = list(ends[0])
    inside = chunks == sorted(chunks) and offset + (chunks[-1] if chunks else 0) <= payload_size
    enough = len(shape) >= 1 and len(chunks) == -(-shape[0] // CHUNK_ROWS)
    return bool(inside and enough and dtype == "|u1" and size <= _MOST_INFLATED * payload_size)


def _arrays(trajectory: Trajectory) -> dict[str, Array]:
    named: dict[str, Array | None] = {_OBS + key: value for key, value in trajectory.obs.items()}
    named |= {name: getattr(trajectory, name) for name in _ROWS}
    named["instruction"] = trajectory.instruction
    if trajectory.achieved is not None:
        named |= dict(zip(_GOALS, trajectory.achieved, strict=True))
    return {name: np.ascontiguousarray(array) for name, array in named.items() if array is not None}


def _check_arrays(arrays: dict[str, Array], num_rows: int) -> None:
    for name, array in arrays.items():
        if array.dtype.kind not in _KINDS:
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
