"""This machine's limit: how fast torch multiplies float32 matrices here and now."""

from __future__ import annotations

from collections.abc import Callable

import torch

_SIDE = 2048


def multiplication(device: str = "cpu", side: int = _SIDE) -> Callable[[], None]:
    """A contender: one square product, on the threads that torch has now."""
    threads = torch.get_num_threads()
    generator = torch.Generator().manual_seed(0)
    left, right = (torch.randn(side, side, generator=generator).to(device) for _ in range(2))
    out = torch.empty_like(left)

    def call() -> None:
        torch.set_num_threads(threads)  # whatever another contender has chosen for itself
        torch.mm(left, right, out=out)
        if out.is_cuda:
            torch.cuda.synchronize(out.device)

    return call


def flops(side: int = _SIDE) -> float:
    """Of one product: a multiplication and an addition per term."""
    return 2.0 * side**3
