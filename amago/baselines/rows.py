"""A row of experience as one vector of float32: what the buffers of another library hold."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor

from amago.types import Array, Batch, EnvSpec, Timestep


@dataclass(frozen=True)
class _Field:
    """One array of a row."""

    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype
    place: slice


class RowVectors:
    """Writes rows as vectors and reads them back as the Batch that amago's encoder takes.

    Ids up to 2²⁴ and all float32 numbers come back as they were.
    """

    def __init__(self, spec: EnvSpec) -> None:
        self.spec = spec
        self._fields: list[_Field] = []
        self.width = 0
        for key in sorted(spec.obs):
            self._add(f"obs/{key}", spec.obs[key].shape, np.dtype(spec.obs[key].dtype))
        number = np.float32 if spec.action.kind == "continuous" else np.int64
        self._add("prev_action", spec.action.shape, np.dtype(number))
        self._add("prev_reward", (), np.dtype(np.float32))
        self._add("time", (), np.dtype(np.int64))
        self._add("first", (), np.dtype(np.bool_))
        if spec.goals is not None:
            shape = (spec.goals.max_goals, spec.goals.size)
            self._add("instruction", shape, np.dtype(spec.goals.dtype))
            self._add("num_goals", (), np.dtype(np.int64))
            self._add("progress", (), np.dtype(np.int64))

    def _add(self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        start, self.width = self.width, self.width + prod(shape)
        tensor_dtype = torch.from_numpy(np.zeros(0, dtype)).dtype
        self._fields.append(_Field(name, shape, tensor_dtype, slice(start, self.width)))

    def write(self, rows: Timestep) -> Array:
        """One vector per lane [N, width]."""
        vectors = np.empty((len(rows), self.width), np.float32)
        for field in self._fields:
            prefix, _, key = field.name.partition("/")
            values = rows.obs[key] if prefix == "obs" else getattr(rows, field.name)
            vectors[:, field.place] = np.reshape(values, (len(rows), -1))
        return vectors

    def read(self, vectors: Tensor) -> Batch:
        """The rows of vectors [M, width], each as a sequence of its own."""
        found = {
            field.name: vectors[:, field.place].reshape(-1, *field.shape).to(field.dtype)
            for field in self._fields
        }
        obs = {name[4:]: found.pop(name) for name in list(found) if name.startswith("obs/")}
        nowhere = torch.zeros(len(vectors), dtype=torch.bool, device=vectors.device)
        return Batch(obs=obs, terminal=nowhere, lengths=(1,) * len(vectors), **found)
