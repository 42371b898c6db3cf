"""The arrays of a nested observation: where each lies, what it is, how it is converted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import Space, spaces

from amago.envs.symbolic_grid import Words, words
from amago.types import ACTION_MASK, Array, ObsSpec

_MIN_IMAGE_SIDE = 16
"""uint8 boxes with sides from here on are images; smaller ones are features."""
_MAX_GRID_IDS = 255
"""Integer boxes of two or more axes with fewer values than this per cell are grids of ids."""


@dataclass(frozen=True)
class Leaf:
    """One array of a nested observation."""

    path: tuple[Any, ...]
    spec: ObsSpec
    start: Any = 0
    """Smallest id of a category, one for all or one per entry."""
    characters: dict[str, int] | None = None
    """Ids of a text's characters or words; 0 is the place after its end."""
    by_word: bool = False
    """Whether a text is split into words."""

    def find(self, obs: Any) -> Any:
        for key in self.path:
            obs = obs[key]
        return obs

    def stack(self, values: list[Any]) -> Array:
        """N single values as one array [N, ...]."""
        if self.characters is not None:
            return self._text(values)
        return self.convert(np.stack([np.asarray(value) for value in values]))

    def batch(self, values: Any) -> Array:
        """A value that already has a leading [N]."""
        return self._text(values) if self.characters is not None else self.convert(values)

    def convert(self, values: Any) -> Array:
        """A fresh array in the spec's dtype, since environments reuse their buffers."""
        values = np.asarray(values)
        if values.shape[1:] != tuple(self.spec.shape) or values.dtype.kind not in "biuf":
            raise ValueError(
                f"expected observations of shape {list(self.spec.shape)}, as the space says, got "
                f"{list(values.shape[1:])} of dtype {values.dtype}"
            )
        if np.any(self.start):
            values = values.astype(np.int64) - self.start
        if self.spec.kind == "mask":
            return np.asarray(values != 0)
        return np.array(values, self.spec.dtype)

    def _text(self, texts: Any) -> Array:
        assert self.characters is not None
        ids = np.zeros((len(texts), *self.spec.shape), self.spec.dtype)
        for row, text in zip(ids, texts, strict=True):
            parts = words(text) if self.by_word else text
            unknown = sorted(set(parts) - self.characters.keys())
            if unknown or len(parts) > len(row):
                kind, name = ("words", "Words") if self.by_word else ("characters", "Text")
                raise ValueError(
                    f"expected a text of at most {len(row)} {kind} of its space, got {text!r}"
                    f"{f' with {unknown}' if unknown else ''}; widen the {name} space"
                )
            row[: len(parts)] = [self.characters[part] for part in parts]
        return ids


def walk(space: Space[Any], path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Space[Any]]]:
    """Every space that is not a Dict or Tuple, with the keys that lead to it."""
    if isinstance(space, spaces.Dict):
        for name, inner in space.spaces.items():
            yield from walk(inner, (*path, name))
    elif isinstance(space, spaces.Tuple):
        for index, inner in enumerate(space.spaces):
            yield from walk(inner, (*path, index))
    else:
        yield path, space


def leaf_of(key: str, path: tuple[Any, ...], space: Space[Any]) -> Leaf:
    """What one space of an observation means."""
    if isinstance(space, spaces.MultiBinary | spaces.Box) and (
        key == ACTION_MASK or isinstance(space, spaces.MultiBinary) or space.dtype == np.bool_
    ):
        return Leaf(path, ObsSpec(tuple(space.shape), "bool", "mask"))
    if isinstance(space, spaces.Box):
        return _box(path, space)
    if key != ACTION_MASK:
        if isinstance(space, spaces.Discrete):
            return Leaf(path, _category((), int(space.n)), int(space.start))
        if isinstance(space, spaces.MultiDiscrete):
            return Leaf(path, _category(space.nvec.shape, int(space.nvec.max())), space.start)
        if isinstance(space, spaces.Text):
            # The space's own order is that of a set, which differs between processes.
            ids = {char: number for number, char in enumerate(sorted(space.character_set), 1)}
            return Leaf(path, _category((space.max_length,), len(ids) + 1), 0, ids)
        if isinstance(space, Words):
            ids = {word: number for number, word in enumerate(space.vocabulary, 1)}
            return Leaf(path, _category((space.most,), len(ids) + 1), 0, ids, by_word=True)
    raise ValueError(
        f"observation {key!r}: expected Box, Discrete, MultiDiscrete, MultiBinary or Text, or a "
        f"Dict or Tuple of these (for {ACTION_MASK!r}: MultiBinary or Box), got {space}; wrap the "
        "environment with gymnasium.wrappers.TransformObservation"
    )


def _box(path: tuple[Any, ...], space: spaces.Box) -> Leaf:
    shape = tuple(space.shape)
    if space.dtype == np.uint8 and _is_image(space):
        return Leaf(path, ObsSpec(shape, "uint8", "image"))
    if np.dtype(space.dtype).kind in "iu" and len(shape) >= 2 and space.low.size:
        low, high = int(space.low.min()), int(space.high.max())
        if high - low < _MAX_GRID_IDS:
            return Leaf(path, _category(shape, high - low + 1), low)
    dtype = "float32" if space.dtype == np.float64 else str(space.dtype)
    return Leaf(path, ObsSpec(shape, dtype, "real"))


def _is_image(space: spaces.Box) -> bool:
    """[height, width] or with channels on either side, every side long enough, full range."""
    spec = ObsSpec(tuple(space.shape), "uint8", "image")
    if len(spec.shape) not in (2, 3) or (space.high != 255).any() or (space.low != 0).any():
        return False
    sides = [size for axis, size in enumerate(spec.shape) if axis != spec.channels_axis]
    return min(sides) >= _MIN_IMAGE_SIDE


def _category(shape: tuple[int, ...], size: int) -> ObsSpec:
    return ObsSpec(tuple(shape), str(np.min_scalar_type(size - 1)), "category", size)
