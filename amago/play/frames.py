"""Pictures of past steps as PNG files, up to a limit of bytes."""

from __future__ import annotations

import io
from collections import OrderedDict

import numpy as np
from PIL import Image

from amago.types import Array

_MAX_BYTES = 6 * 2**20
"""Of all pictures of one session; the oldest go first."""
_MAX_KNOWN = 512
"""Pictures that are remembered across sessions: small worlds look the same again and again."""

_known: OrderedDict[tuple[tuple[int, ...], int], bytes] = OrderedDict()


def _png(picture: Array) -> bytes:
    """A frame as a PNG file; fast rather than small."""
    key = (picture.shape, hash(picture.tobytes()))
    if key not in _known:
        buffer = io.BytesIO()
        Image.fromarray(picture).save(buffer, "PNG", compress_level=1)
        _known[key] = buffer.getvalue()
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
            self._frames[number] = _png(picture)
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
