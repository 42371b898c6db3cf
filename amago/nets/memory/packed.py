"""Causal attention over packed rows in one call, whatever the lengths: for devices where every
call is a kernel to be launched. A CPU makes one call per length instead (`causal_mix`)."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from amago.nets.sequences import Sequences

_Heads = Float[Tensor, "M H dim"]
_HALF = (torch.bfloat16, torch.float16)
_CAUSAL = (-1, 0)
"""A window of all rows before a row, and none after it."""


def attend_packed(sequences: Sequences, query: _Heads, key: _Heads, value: _Heads) -> _Heads:
    """Every row sees itself and the earlier rows of its sequence."""
    kernel = _varlen_kernel()
    # Rotated queries and keys are in single precision; mixed precision casts them back.
    low = value.dtype in _HALF and value.is_cuda and value.shape[-1] % 8 == 0
    if kernel is None or not low:
        return _attend_padded(sequences, query, key, value)
    query, key = query.to(value.dtype), key.to(value.dtype)
    return _attend_varlen(kernel, sequences, query, key, value)


def _attend_padded(sequences: Sequences, query: _Heads, key: _Heads, value: _Heads) -> _Heads:
    """Sequences side by side. What fills short ones up comes after them, where no row of theirs
    looks, so that no mask is needed but the causal one."""
    query, key, value = (sequences.pad(x).transpose(1, 2) for x in (query, key, value))
    mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
    return sequences.unpad(mixed.transpose(1, 2))


def _attend_varlen(
    kernel: Callable[..., Tensor], sequences: Sequences, query: _Heads, key: _Heads, value: _Heads
) -> _Heads:
    """FlashAttention for sequences of different lengths: nothing is padded."""
    edges, longest = sequences.offsets, sequences.longest
    return kernel(query, key, value, edges, edges, longest, longest, window_size=_CAUSAL)


def _varlen_kernel() -> Callable[..., Tensor] | None:
    """Torch's kernel for half precision on a GPU, in versions that have it."""
    try:
        from torch.nn.attention.varlen import varlen_attn
    except ImportError:
        return None
    kernel: Callable[..., Any] = varlen_attn
    return kernel if "window_size" in inspect.signature(kernel).parameters else None
