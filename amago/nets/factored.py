"""Actions of several dimensions: a product of categoricals, bits included."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from amago.nets.distributions import (
    categorical_sample,
    entropy,
    finite_log_softmax,
    floored_probabilities,
)
from amago.types import ActionSpec


class Factors(nn.Module):
    """D dimensions of up to V values each, and what each value writes into an action row.

    Multi-discrete: value v of dimension d is one entry of the row. Multi-binary: every bit is
    a dimension of two values, of which 0 writes nothing.
    """

    exists: Tensor
    codes: Tensor
    entries: Tensor

    def __init__(self, action: ActionSpec) -> None:
        super().__init__()
        self.binary = action.kind == "multi_binary"
        sizes = torch.tensor([2] * action.size if self.binary else action.sizes)
        D, V = len(sizes), int(sizes.max())
        exists = torch.arange(V) < sizes[:, None]  # [D, V]
        codes = torch.zeros(D, V, action.size)
        if self.binary:
            codes[torch.arange(D), 1, torch.arange(D)] = 1.0
        else:
            codes[exists] = torch.eye(action.size)
        self.register_buffer("exists", exists, persistent=False)
        self.register_buffer("codes", codes, persistent=False)
        # Where a value's logit or flag lies in a flat row; anywhere for values that do not exist.
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

    def values(self, action: Float[Tensor, "*rows A"]) -> Float[Tensor, "*rows D V"]:
        """One-hots of the values that action rows hold."""
        if self.binary:
            return torch.stack((1.0 - action, action), -1)
        return action[..., self.entries] * self.exists

    def rows(self, values: Float[Tensor, "*rows D V"]) -> Float[Tensor, "*rows A"]:
        """The inverse of `values`."""
        return torch.einsum("...dv,dva->...a", values, self.codes.to(values.dtype))


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

    def sample(self, generator: torch.Generator | None = None) -> Float[Tensor, "*rows A"]:
        return self.factors.rows(categorical_sample(self.probs, generator))

    def mode(self) -> Float[Tensor, "*rows A"]:
        best = F.one_hot(self.probs.argmax(-1), self.probs.shape[-1])
        return self.factors.rows(best.to(self.probs.dtype))

    def log_prob(self, action: Float[Tensor, "... A"]) -> Float[Tensor, "..."]:
        logs = finite_log_softmax(self._logits)
        return (logs * self.factors.values(action)).sum((-1, -2))

    def entropy(self) -> Float[Tensor, "*rows"]:
        return entropy(self.probs).sum(-1)


MAX_CANDIDATES = 8
"""Most values of one dimension that an expectation evaluates."""


class Candidates:
    """Sampled actions in which one random dimension takes several values.

    An estimate of E[Q] and its gradient without relaxing the actions. With dimension d drawn
    uniformly and the others sampled, D·Σ_v ∇p_d(v)·(Q(v) - Q(v₀)) is an unbiased estimate of
    ∇E[Q]: the sum over one dimension is exact, as it is for plain discrete actions, and the
    baseline Q(v₀), v₀ the sampled value, costs nothing because Σ_v ∇p_d(v) = 0. A dimension
    with more than MAX_CANDIDATES possible values is summed over v₀ and a uniform choice of
    the others, scaled up; its value is then Q(v₀) alone.
    """

    def __init__(self, policy: FactoredCategorical) -> None:
        factors, probs = policy.factors, policy.probs
        *rows, D, V = probs.shape
        action = policy.sample()
        dimension = torch.randint(D, rows, device=probs.device)
        index = dimension[..., None, None].expand(*rows, 1, V)
        chosen = probs.gather(-2, index)[..., 0, :]  # [*rows, V]
        current = factors.values(action).gather(-2, index)[..., 0, :]
        possible = chosen.detach() > 0
        # v₀ first, then the others in random order, then what cannot be.
        order = torch.rand_like(chosen).masked_fill(~possible, -1.0) + 2.0 * current
        score, self.values = order.topk(min(V, MAX_CANDIDATES), -1)  # [*rows, K]
        self.exists: Tensor = score >= 0
        self.probs: Tensor = chosen.gather(-1, self.values) * self.exists
        count = possible.sum(-1)
        self.complete: Tensor = count <= self.values.shape[-1]
        others = max(self.values.shape[-1] - 1, 1)
        share = torch.where(self.complete, torch.ones_like(count), (count - 1) / others)
        self.gain: Tensor = D * share.to(probs.dtype)
        codes = factors.codes.to(probs.dtype)[dimension]  # [*rows, V, A]
        self._base = action - torch.einsum("...v,...va->...a", current, codes)
        self._codes = codes

    def __len__(self) -> int:
        return int(self.values.shape[-1])

    def action(self, number: int) -> Float[Tensor, "*rows A"]:
        """The sampled actions with their `number`-th candidate value."""
        value = self.values[..., number, None, None]
        code = self._codes.gather(-2, value.expand(*value.shape[:-1], self._codes.shape[-1]))
        return self._base + code[..., 0, :]

    def expectation(self, outputs: Float[Tensor, "K C M G"]) -> Float[Tensor, "C M G"]:
        """E[Q] from the candidates' Q; its gradient is the estimate of ∇E[Q]."""
        weights = self.probs.movedim(-1, 0)[:, None]  # [K, 1, *rows]
        exact = (weights.detach() * outputs).sum(0)
        value = torch.where(self.complete, exact, outputs[0])
        slope = self.gain * (weights * (outputs - outputs[0])).sum(0)
        return value + (slope - slope.detach())
