"""Pixels in fewer bytes: rows of an array compressed in chunks, read by the chunk.

zlib at its fastest, 16 rows at a time, so that a window decompresses little more than it
shows. Frames of drawn worlds shrink 25 to 130 times; noise does not shrink and stays as it is.
"""

from __future__ import annotations

import zlib

import numpy as np

from amago.types import Array

CHUNK_ROWS = 16
_MIN_ROW_BYTES = 256
_LEVEL = 1


def is_pixels(array: Array) -> bool:
    """Whether compressing is worth trying: bytes with two or more axes per row."""
    return array.dtype == np.uint8 and array.ndim >= 3 and array[0].nbytes >= _MIN_ROW_BYTES


def compress(array: Array) -> tuple[bytes, list[int]] | None:
    """The chunks of an array end to end, and where each ends; None when that saves nothing."""
    chunks = [
        zlib.compress(array[start : start + CHUNK_ROWS].data, _LEVEL)
        for start in range(0, len(array), CHUNK_ROWS)
    ]
    data = b"".join(chunks)
    if len(data) >= array.nbytes:
        return None
    return data, np.cumsum([len(chunk) for chunk in chunks]).tolist()


def decompress(
    buffer: bytes | memoryview, ends: list[int], shape: tuple[int, ...], start: int, stop: int
) -> Array:
    """An array of the whole shape in which the rows start..stop-1 are filled in.

    The others are never touched, so the system never gives them memory.
    """
    array = np.empty(shape, np.uint8)
    for number in range(start // CHUNK_ROWS, -(-stop // CHUNK_ROWS)):
        begin = ends[number - 1] if number else 0
        rows = array[number * CHUNK_ROWS : (number + 1) * CHUNK_ROWS]
        try:
            data = zlib.decompressobj().decompress(buffer[begin : ends[number]], rows.nbytes + 1)
            rows[...] = np.frombuffer(data, np.uint8).reshape(rows.shape)
        except (zlib.error, ValueError) as error:
            raise ValueError(
                f"expected compressed pixels of shape {list(rows.shape)}, got damaged bytes "
                f"({error}); remove the record or restore the file from a copy"
            ) from error
    return array
