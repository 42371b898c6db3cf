"""Actions of several dimensions: a product of categoricals, bits included."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from amago.nets.action import action_features
from amago.nets.distributions import (
    categorical_sample,
    chosen,
    entropy,
    finite_log_softmax,
    floored_probabilities,
)
from amago.nets.place import draw
from amago.types import ActionSpec


class Factors(nn.Module):
    """D dimensions of up to V values each, and the features of each value.

    An action is D ids. Multi-discrete: value v of dimension d is one entry of the features.
    Multi-binary: every bit is a dimension of two values, of which 0 has no entry.
    """

    exists: Tensor
    codes: Tensor
    entries: Tensor

    def __init__(self, action: ActionSpec) -> None:
        super().__init__()
        self.action, self.binary = action, action.kind == "multi_binary"
        sizes = [2] * action.size if self.binary else list(action.sizes)
        D, V = len(sizes), max(sizes)
        with torch.device("cpu"):  # values, also where a network is only described ("meta")
            exists = torch.arange(V) < torch.tensor(sizes)[:, None]  # [D, V]
            codes = torch.zeros(D, V, action.size)
            if self.binary:
                codes[torch.arange(D), 1, torch.arange(D)] = 1.0
            else:
                codes[exists] = torch.eye(action.size)
        self.register_buffer("exists", exists, persistent=False)
        self.register_buffer("codes", codes, persistent=False)
        # Where a value's logit or flag lies among the features; values that do not exist have any.
        self.register_buffer("entries", codes.argmax(-1), persistent=False)

    def table(self, flat: Float[Tensor, "*rows A"]) -> Float[Tensor, "*rows D V"]:
        """Logits of every value; those of values that do not exist mean nothing."""
        if self.binary:
            return torch.stack((torch.zeros_like(flat), flat), -1)
        return flat[..., self.entries]

    def allowed(self, mask: Bool[Tensor, "*rows A"] | None) -> Bool[Tensor, "*#rows D V"]:
        """Values that a concatenated mask allows; a dimension without any allows all."""
        if mask is None:
            return self.exists
        flags = mask[..., self.entries] & self.exists
        return (flags | ~flags.any(-1, keepdim=True)) & self.exists


class FactoredCategorical:
    """Independent floored categoricals, one per dimension."""

    def __init__(
        self,
        factors: Factors,
        logits: Float[Tensor, "*rows A"],
        floor: float = 0.0,
        mask: Bool[Tensor, "*rows A"] | None = None,
    ) -> None:
        self.factors = factors
        table, allowed = factors.table(logits), factors.allowed(mask)
        self._logits = table.masked_fill(~allowed, -torch.inf)
        sizes = factors.exists.sum(-1, keepdim=True).to(logits.dtype)
        self.probs = floored_probabilities(
            table, torch.clamp(0.1 / sizes, max=floor), allowed.expand(table.shape)
        )  # [*rows, D, V]

    def sample(self, generator: torch.Generator | None = None) -> Int[Tensor, "*rows D"]:
        return categorical_sample(self.probs, generator)

    def mode(self) -> Int[Tensor, "*rows D"]:
        return self.probs.argmax(-1)

    def log_prob(self, action: Int[Tensor, "... D"]) -> Float[Tensor, "..."]:
        return chosen(finite_log_softmax(self._logits), action).sum(-1)

    def agreement(self, action: Int[Tensor, "... D"]) -> Float[Tensor, "..."]:
        """Their probability."""
        return self.log_prob(action).exp()

    def entropy(self) -> Float[Tensor, "*rows"]:
        return entropy(self.probs).sum(-1)


_MAX_CANDIDATES = 8
"""Most values of one dimension that an expectation evaluates."""


class Candidates:
    """Sampled actions in which one random dimension takes several values.

    An estimate of E[Q] and its gradient without relaxing the actions. With dimension d drawn
    uniformly and the others sampled, D·Σ_v ∇p_d(v)·(Q(v) - Q(v₀)) is an unbiased estimate of
    ∇E[Q]: the sum over one dimension is exact, as it is for plain discrete actions, and the
    baseline Q(v₀), v₀ the sampled value, costs nothing because Σ_v ∇p_d(v) = 0. A dimension
    with more than _MAX_CANDIDATES possible values is summed over v₀ and a uniform choice of
    the others, scaled up; its value is then Q(v₀) alone.
    """

    def __init__(self, policy: FactoredCategorical) -> None:
        factors, probs = policy.factors, policy.probs
        *rows, D, V = probs.shape
        action = policy.sample()
        dimension = draw(lambda s: torch.randint(D, s, device=probs.device), rows)
        index = dimension[..., None, None].expand(*rows, 1, V)
        varied = probs.gather(-2, index)[..., 0, :]  # [*rows, V]
        current = action.gather(-1, dimension[..., None])  # [*rows, 1]
        possible = varied.detach() > 0
        # v₀ first, then the others in random order, then what cannot be.
        order = draw(
            lambda s: torch.rand(s, dtype=varied.dtype, device=varied.device), varied.shape
        )
        order = order.masked_fill(~possible, -1.0)
        order = order + 2.0 * F.one_hot(current[..., 0], V)
        score, self.values = order.topk(min(V, _MAX_CANDIDATES), -1)  # [*rows, K]
        self.exists: Tensor = score >= 0
        self.probs: Tensor = varied.gather(-1, self.values) * self.exists
        count = possible.sum(-1)
        self.complete: Tensor = count <= self.values.shape[-1]
        others = max(self.values.shape[-1] - 1, 1)
        share = torch.where(self.complete, torch.ones_like(count), (count - 1) / others)
        self.gain: Tensor = D * share.to(probs.dtype)
        self._codes = factors.codes.to(probs.dtype)[dimension]  # [*rows, V, A]
        self._base = action_features(action, factors.action, probs.dtype) - self._code(current)

    def __len__(self) -> int:
        return int(self.values.shape[-1])

    def features(self, number: int) -> Float[Tensor, "*rows A"]:
        """Features of the sampled actions with their `number`-th candidate value."""
        return self._base + self._code(self.values[..., number, None])

    def _code(self, value: Int[Tensor, "*rows 1"]) -> Float[Tensor, "*rows A"]:
        """Features of one value of the varied dimension."""
        index = value[..., None].expand(*value.shape, self._codes.shape[-1])
        return self._codes.gather(-2, index)[..., 0, :]

    def expectation(self, outputs: Float[Tensor, "K C M G"]) -> Float[Tensor, "C M G"]:
        """E[Q] from the candidates' Q; its gradient is the estimate of ∇E[Q]."""
        weights = self.probs.movedim(-1, 0)[:, None]  # [K, 1, *rows]
        exact = (weights.detach() * outputs).sum(0)
        value = torch.where(self.complete, exact, outputs[0])
        slope = self.gain * (weights * (outputs - outputs[0])).sum(0)
        return value + (slope - slope.detach())
