"""Mixed precision: which products are computed in bfloat16, and what stays in float32.

Encoder, memory, actor, critics and the world model multiply in bfloat16 while the learner says
so. Weights, normalised inputs, the residual stream, σ of σReparam, all outputs of these networks,
and everything made of them (distributions, values, targets, losses, PopArt, the optimiser) are
float32 or wider.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar

import torch
from torch import Tensor

_DEVICE: ContextVar[str | None] = ContextVar("mixed precision", default=None)
"""The kind of device whose networks multiply in bfloat16, if any."""


@contextmanager
def allow_bfloat16(device_type: str | None) -> Iterator[None]:
    """Let networks on such a device multiply in bfloat16; None: nowhere."""
    token = _DEVICE.set(device_type)
    try:
        yield
    finally:
        _DEVICE.reset(token)


def mixed() -> AbstractContextManager[object]:
    """Around the products of a network, whose output is then `widened`."""
    device = _DEVICE.get()
    return nullcontext() if device is None else torch.autocast(device, torch.bfloat16)


def exact() -> AbstractContextManager[object]:
    """Around what must not be rounded inside a network."""
    device = _DEVICE.get()
    return nullcontext() if device is None else torch.autocast(device, enabled=False)


def widened(x: Tensor) -> Tensor:
    """An output of mixed precision in float32; wider numbers stay as they are."""
    return x.to(torch.promote_types(x.dtype, torch.float32))
