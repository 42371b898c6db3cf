"""Building blocks: MLPs, spectrally reparameterised layers, ensembles of MLPs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Generic, TypeVar

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from amago.nets.place import draw, is_part
from amago.nets.precision import exact
from amago.nets.settings import NEGATIVE_SLOPE, Activation

_T = TypeVar("_T")


def mlp(
    sizes: Sequence[int], *, activate_last: bool = False, activation: Activation = "leaky_relu"
) -> nn.Sequential:
    """Linear layers with activations between them."""
    layers: list[nn.Module] = []
    for index, (size_in, size_out) in enumerate(pairwise(sizes)):
        layers.append(nn.Linear(size_in, size_out))
        if activate_last or index < len(sizes) - 2:
            layers.append(nn.LeakyReLU(NEGATIVE_SLOPE[activation]))
    return nn.Sequential(*layers)


class Dropout(nn.Dropout):
    """Dropout of [M, ...] whose masks are those of the whole batch's rows."""

    def forward(self, x: Float[Tensor, "M ..."]) -> Float[Tensor, "M ..."]:
        if not (self.training and self.p and is_part()):
            return super().forward(x)
        keep = 1.0 - self.p
        mask = draw(
            lambda s: torch.empty(s, dtype=x.dtype, device=x.device).bernoulli_(keep), x.shape
        )
        return x * mask.div_(keep)


class TensorCache(Generic[_T]):
    """Keeps what was computed from tensors until one of them changes.

    Acting uses the same weights at every step, so what derives from them is computed once.
    """

    def __init__(self) -> None:
        self._last: tuple[object, _T] | None = None

    def __call__(self, compute: Callable[[], _T], *sources: Tensor) -> _T:
        key = [(source._version, source.data_ptr(), source.dtype) for source in sources]
        if self._last is None or self._last[0] != key:
            self._last = (key, compute())
        return self._last[1]


class SigmaLinear(nn.Module):
    """A linear layer whose weight is (γ/σ(W))·W, σ the spectral norm [σReparam].

    u and v estimate the leading singular vectors; `power_iterate` refines them once per
    learner step. They are exact at the start, where γ = σ(W): the layer begins as a plain one.
    """

    u: Tensor
    v: Tensor

    def __init__(self, size_in: int, size_out: int, *, bias: bool = True) -> None:
        super().__init__()
        plain = nn.Linear(size_in, size_out, bias=bias)
        self.weight, self.bias = plain.weight, plain.bias
        left, sigma, right = torch.linalg.svd(plain.weight.detach(), full_matrices=False)
        self.gain = nn.Parameter(sigma[0].clone())
        self.register_buffer("u", left[:, 0].contiguous())
        self.register_buffer("v", right[0].contiguous())
        self._acting = TensorCache[Tensor]()

    @torch.no_grad()
    def power_iterate(self) -> None:
        self.v.copy_(F.normalize(self.weight.mT @ self.u, dim=0))
        self.u.copy_(F.normalize(self.weight @ self.v, dim=0))

    def effective_weight(self) -> Float[Tensor, "out in"]:
        if self.training or torch.is_grad_enabled():
            return self._reparameterised()
        return self._acting(self._by_columns, self.weight, self.gain, self.u)

    def _reparameterised(self) -> Tensor:
        with exact():
            sigma = torch.dot(self.u, self.weight @ self.v)
            return self.weight * (self.gain / sigma)

    def _by_columns(self) -> Tensor:
        """Stored column by column: products of few rows with it are faster."""
        return self._reparameterised().mT.contiguous().mT

    def forward(self, x: Float[Tensor, "*rows in"]) -> Float[Tensor, "*rows out"]:
        return F.linear(x, self.effective_weight(), self.bias)


def power_iterate(module: nn.Module) -> None:
    """One power iteration of every reparameterised layer inside a module."""
    for layer in module.modules():
        if isinstance(layer, SigmaLinear):
            layer.power_iterate()


class EnsembleLinear(nn.Module):
    """C independent linear layers as one batched matrix product."""

    def __init__(self, members: int, size_in: int, size_out: int) -> None:
        super().__init__()
        bound = 1.0 / math.sqrt(size_in)
        self.weight = nn.Parameter(torch.empty(members, size_in, size_out).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(members, 1, size_out).uniform_(-bound, bound))

    def parameters_of(
        self, members: Int[Tensor, " chosen"] | None, detach: bool
    ) -> tuple[Tensor, Tensor]:
        weight: Tensor = self.weight.detach() if detach else self.weight
        bias: Tensor = self.bias.detach() if detach else self.bias
        if members is not None:
            weight, bias = weight[members], bias[members]
        return weight, bias

    def forward(
        self,
        x: Float[Tensor, "C M in"],
        members: Int[Tensor, " C"] | None = None,
        detach: bool = False,
    ) -> Float[Tensor, "C M out"]:
        weight, bias = self.parameters_of(members, detach)
        return torch.baddbmm(bias, x, weight)


def symlog(x: Tensor) -> Tensor:
    """sign(x)·log(1 + |x|): keeps huge and tiny numbers on one scale."""
    return torch.sign(x) * torch.log1p(torch.abs(x))


def symexp(x: Tensor) -> Tensor:
    """The inverse of symlog."""
    return torch.sign(x) * torch.expm1(torch.abs(x))
