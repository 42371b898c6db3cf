"""Which device a run uses."""

from __future__ import annotations

import torch

from amago.config import Config
from amago.types import EnvSpec

_WORTH_A_GPU = 128
"""Memories narrower than this are not put on a GPU by themselves: their kernels are over before
the next one is launched."""


def resolve_device(config: Config, spec: EnvSpec, local_rank: int = 0) -> torch.device:
    """The device of the settings; `local_rank` counts the learners of this machine."""
    name = config.run.device
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() and _worth_a_gpu(config, spec) else "cpu"
    if name == "cuda" and local_rank:
        name = f"cuda:{local_rank}"
    device = find_device(name)
    _allow_tf32(device, config.run.bf16)
    return device


def _allow_tf32(device: torch.device, allowed: bool) -> None:
    """Shorter mantissas in products of float32 on a GPU; products of the CPU are left alone."""
    if device.type == "cuda":
        torch.backends.cuda.matmul.allow_tf32 = allowed
        torch.backends.cudnn.allow_tf32 = allowed


def _worth_a_gpu(config: Config, spec: EnvSpec) -> bool:
    """Whether an update has products large enough to keep a GPU busy."""
    images = any(item.kind == "image" for item in spec.obs.values())
    return images or config.transformer.model_dim >= _WORTH_A_GPU


def find_device(name: str) -> torch.device:
    """A device by its name; ValueError where this machine has none."""
    try:
        return torch.empty(0, device=name).device
    except (RuntimeError, AssertionError) as error:
        raise ValueError(f"--run.device {name} cannot be used here; try auto or cpu") from error
