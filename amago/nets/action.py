"""Agent actions as the numbers that networks read."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from amago.types import ActionSpec, Batch


def action_features(
    action: Tensor, spec: ActionSpec, dtype: torch.dtype
) -> Float[Tensor, "*rows A"]:
    """Ids as one-hots (several of them concatenated); bits and vectors as they are."""
    if spec.kind == "discrete":
        return F.one_hot(action, spec.size).to(dtype)
    if spec.kind == "multi_discrete":
        parts = zip(action.unbind(-1), spec.sizes, strict=True)
        return torch.cat([F.one_hot(ids, size) for ids, size in parts], -1).to(dtype)
    return action.to(dtype)


def previous_action(batch: Batch, spec: ActionSpec) -> Float[Tensor, "M A"]:
    """The features of every row's previous action; zeros where there was none."""
    dtype = batch.prev_reward.dtype
    features = action_features(batch.prev_action, spec, dtype)
    return features * (batch.time != 0).to(dtype)[:, None]
