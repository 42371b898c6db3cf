"""Pictures of past steps as PNG files (photographs as JPEG), up to a limit of bytes."""

from __future__ import annotations

import base64
import io
import struct
import zlib
from collections import OrderedDict

import numpy as np
from PIL import Image

from amago.types import Array

_MAX_BYTES = 6 * 2**20
"""Of all pictures of one session; the oldest go first."""
_MAX_KNOWN = 512
"""Pictures that are remembered across sessions: small worlds look the same again and again."""
_PNG = b"\x89PNG\r\n\x1a\n"
_UP = 2
"""The filter of a PNG row that stores how it differs from the row above."""
_DRAWN = 0.5
"""Share of bytes that differ from the row above; pictures with more are no drawings."""
_QUALITY = 90

_known: OrderedDict[tuple[tuple[int, ...], int], bytes] = OrderedDict()


def encode(picture: Array) -> bytes:
    """An RGB frame [height, width, 3] as the bytes of an image file."""
    rows = _differences(picture)
    below = rows[1:]
    if np.count_nonzero(below) > _DRAWN * below.size:
        buffer = io.BytesIO()
        Image.fromarray(picture).save(buffer, "JPEG", quality=_QUALITY)
        return buffer.getvalue()
    height, width = picture.shape[:2]
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)  # 8 bits each of RGB
    chunks = (b"IHDR", header), (b"IDAT", zlib.compress(rows.data, 1)), (b"IEND", b"")
    return _PNG + b"".join(_chunk(name, data) for name, data in chunks)


def data_url(file: bytes) -> str:
    """An image file as the address of a picture."""
    kind = "png" if file.startswith(_PNG) else "jpeg"
    return f"data:image/{kind};base64,{base64.b64encode(file).decode()}"


def _differences(picture: Array) -> Array:
    """Rows as PNG stores them. Worlds are drawn in blocks, so most of it is zeros: trying other
    filters row by row, as encoders do, takes longer and gains little."""
    height, width = picture.shape[:2]
    flat = np.ascontiguousarray(picture).reshape(height, 3 * width)
    rows = np.empty((height, 1 + 3 * width), np.uint8)
    rows[:, 0], rows[0, 1:] = _UP, flat[0]
    np.subtract(flat[1:], flat[:-1], out=rows[1:, 1:])
    return rows


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _file_of(picture: Array) -> bytes:
    """The same, remembered for pictures that come again."""
    key = (picture.shape, hash(picture.tobytes()))
    if key not in _known:
        _known[key] = encode(picture)
        if len(_known) > _MAX_KNOWN:
            _known.popitem(last=False)
    return _known[key]


class FrameStore:
    """Numbered pictures; one that was not drawn, or had to go, is None."""

    def __init__(self, max_bytes: int = _MAX_BYTES) -> None:
        self._frames: dict[int, bytes] = {}
        self._next = 0
        self._bytes, self._max_bytes = 0, max_bytes

    def add(self, picture: Array | None) -> int:
        """Store a picture; its number."""
        number, self._next = self._next, self._next + 1
        if picture is not None:
            self._frames[number] = _file_of(picture)
            self._bytes += len(self._frames[number])
        while self._bytes > self._max_bytes:
            self._bytes -= len(self._frames.pop(next(iter(self._frames))))
        return number

    def get(self, number: int) -> bytes | None:
        return self._frames.get(number)

    def picture(self, number: int) -> Array | None:
        """The same as an RGB frame."""
        data = self.get(number)
        return None if data is None else np.asarray(Image.open(io.BytesIO(data)))

    @property
    def num_bytes(self) -> int:
        return self._bytes
