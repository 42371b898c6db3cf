"""Numbers of the CPU on their way to a device; the caller does not wait for a copy to a GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from amago.types import Array

_ALIGNED = 16
"""Bytes: every kind of number may begin at their multiples."""


def upload(x: Tensor, device: torch.device) -> Tensor:
    """A tensor of the CPU on a device."""
    if device.type == "cuda":
        return x.pin_memory().to(device, non_blocking=True)
    return x.to(device)


def numbers_on(device: torch.device, numbers: Sequence[int]) -> Int[Tensor, " N"]:
    """Whole numbers as a tensor on a device."""
    return upload(torch.tensor(numbers, dtype=torch.int64), device)


def upload_arrays(arrays: Mapping[str, Array], device: torch.device) -> dict[str, Tensor]:
    """Arrays as tensors on a device. To a GPU it is one copy, however many arrays they are."""
    tensors = {name: torch.from_numpy(np.ascontiguousarray(x)) for name, x in arrays.items()}
    return tensors if device.type == "cpu" else _in_one_copy(tensors, device)


def _in_one_copy(tensors: Mapping[str, Tensor], device: torch.device) -> dict[str, Tensor]:
    begins, size = dict[str, int](), 0
    for name, x in tensors.items():
        begins[name] = size
        size += -(-x.nbytes // _ALIGNED) * _ALIGNED
    packed = torch.empty(size, dtype=torch.uint8, pin_memory=device.type == "cuda")
    for name, x in tensors.items():
        packed[begins[name] : begins[name] + x.nbytes] = x.flatten().view(torch.uint8)
    moved = packed.to(device, non_blocking=True)
    return {
        name: moved[begins[name] : begins[name] + x.nbytes].view(x.dtype).view(x.shape)
        for name, x in tensors.items()
    }
