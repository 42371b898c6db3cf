"""Every random source of a run, derived from one seed."""

from __future__ import annotations

import hashlib

import torch


def derive(seed: int, *path: str | int) -> int:
    """A 63-bit seed for the purpose that `path` names, e.g. derive(seed, "learn", epoch)."""
    text = "/".join(map(str, (seed, *path)))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def seed_torch(seed: int, *path: str | int) -> None:
    """Set torch's global generators: weights, dropout, drawn critics, sampled actions."""
    torch.manual_seed(derive(seed, *path))
