"""One row of experience → one vector."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from amago.nets.action import previous_action
from amago.nets.instruction import InstructionEncoder
from amago.nets.layers import mlp
from amago.nets.normalize import RunningNormalizer
from amago.nets.pixels import EMBEDDING_DIM, ImageEncoder
from amago.nets.settings import EncoderSettings, InstructionSettings
from amago.types import Batch, EnvSpec, ObsSpec

ONE_HOT_LIMIT = 1024
"""Ids of one observation that would be wider than this as one-hots are embedded instead."""
GRID_SIDE = 16
"""Grids of ids with both sides from here on go through a convolutional trunk."""


class TimestepEncoder(nn.Module):
    """What a custom encoder is: the rows of a batch in, one vector of `output_dim` each out."""

    output_dim: int

    def update_statistics(self, batch: Batch) -> None:
        """Called once per training batch, before it is encoded."""

    def forward(self, batch: Batch) -> Float[Tensor, "M E"]:
        raise NotImplementedError


class MLPEncoder(TimestepEncoder):
    """Normalised reals, one-hot or embedded categories, masks, features of images, the previous
    action and reward, the instruction, `first` and time/horizon, through an MLP with a
    LayerNorm on its output."""

    def __init__(
        self,
        spec: EnvSpec,
        settings: EncoderSettings,
        instruction: InstructionSettings | None = None,
    ) -> None:
        super().__init__()
        self.spec = spec
        self.keys = sorted(spec.obs)
        self.routes = {key: _route(item) for key, item in spec.obs.items()}
        width = categories = 0
        reals = 1  # prev_reward is a real feature
        self._plain: dict[str, int] = {}
        self.trunks, self.embeddings = nn.ModuleDict(), nn.ModuleDict()
        for key in self.keys:
            item = spec.obs[key]
            count, route = _count(item.shape), self.routes[key]
            reals += count if route == "real" else 0
            if route in ("flag", "one_hot"):
                categories += count
                self._plain[key] = count * (item.size if route == "one_hot" else 1)
            elif route == "embed":
                self.embeddings[_name(key)] = nn.Embedding(item.size, EMBEDDING_DIM)
                width += count * EMBEDDING_DIM
            elif route == "trunk":
                self.trunks[_name(key)] = trunk = ImageEncoder(item, settings)
                width += trunk.output_dim
        self.num_reals = reals
        self.num_quantities = reals + categories
        """How many numbers, flags and categories `surprise` judges."""
        self.forecast_dim = reals + sum(self._plain.values())
        self.normalizer = RunningNormalizer(reals) if settings.normalize else None
        self.instruction = None
        if spec.goals is not None:
            self.instruction = InstructionEncoder(spec.goals, instruction or InstructionSettings())
            width += self.instruction.output_dim
        with_time = spec.horizon is not None
        size_in = self.forecast_dim + width + spec.action.size + 1 + with_time
        self.net = mlp((size_in, *settings.hidden))
        self.norm = nn.LayerNorm(settings.hidden[-1])
        self.output_dim = settings.hidden[-1]

    def update_statistics(self, batch: Batch) -> None:
        if self.normalizer is not None:
            self.normalizer.update(self._reals(batch.obs, batch.prev_reward))

    def forward(self, batch: Batch) -> Float[Tensor, "M E"]:
        reals = self._normalised_reals(batch.obs, batch.prev_reward)
        features = [reals]
        features += [
            self._feature(key, batch.obs[key], reals.dtype)
            for key in self.keys
            if self.routes[key] != "real"
        ]
        if self.instruction is not None:
            features.append(self.instruction(batch, reals.dtype))
        features.append(previous_action(batch, self.spec.action))
        features.append(batch.first.to(reals.dtype)[:, None])
        if self.spec.horizon is not None:
            features.append((batch.time.to(reals.dtype) / self.spec.horizon)[:, None])
        encoded: Tensor = self.norm(self.net(torch.cat(features, -1)))
        return encoded

    def surprise(
        self,
        forecast: Float[Tensor, "M F"],
        change: Float[Tensor, "M numbers"],
        obs: dict[str, Tensor],
        reward: Float[Tensor, " M"],
    ) -> Float[Tensor, " M"]:
        """How wrong a forecast of observations and rewards was, per quantity.

        Numbers are forecast by how they `change`, and the reward as the network sees it, by their
        squared errors; flags and categories follow as logits, key by key, by their
        cross-entropies. Images and embedded ids are left out.
        """
        paid = self._normalised_reals(obs, reward)[:, -1:]
        numbers, *logits = forecast.split_with_sizes([self.num_reals, *self._plain.values()], -1)
        error: Tensor = (numbers - torch.cat((change, paid), -1)).square().sum(-1)
        for key, block in zip(self._plain, logits, strict=True):
            seen = _flat(obs[key])
            if self.routes[key] == "flag":
                flags = seen.to(block.dtype)
                terms = F.binary_cross_entropy_with_logits(block, flags, reduction="none")
            else:
                choices = block.view(*seen.shape, -1).transpose(1, 2)
                terms = F.cross_entropy(choices, seen.long(), reduction="none")
            error = error + terms.sum(-1)
        return error / self.num_quantities

    def change(
        self, before: dict[str, Tensor], after: dict[str, Tensor]
    ) -> Float[Tensor, "M numbers"]:
        """By how much the numbers of observations differ."""
        unpaid = self.norm.weight.new_zeros(len(next(iter(after.values()))))
        return (self._reals(after, unpaid) - self._reals(before, unpaid))[:, :-1]

    def _normalised_reals(
        self, obs: dict[str, Tensor], reward: Float[Tensor, " M"]
    ) -> Float[Tensor, "M F"]:
        reals = self._reals(obs, reward)
        return reals if self.normalizer is None else self.normalizer(reals)

    def _feature(self, key: str, values: Tensor, dtype: torch.dtype) -> Float[Tensor, "M F"]:
        route = self.routes[key]
        if route == "flag":
            return _flat(values).to(dtype)
        if route == "one_hot":
            hot = F.one_hot(values.long(), self.spec.obs[key].size)
            return hot.flatten(1).to(dtype)
        if route == "embed":
            embedded: Tensor = self.embeddings[_name(key)](values.long())
            return embedded.flatten(1)
        features: Tensor = self.trunks[_name(key)](values, dtype)
        return features

    def _reals(self, obs: dict[str, Tensor], reward: Float[Tensor, " M"]) -> Float[Tensor, "M F"]:
        reals = [
            _flat(obs[key]).to(reward.dtype) for key in self.keys if self.routes[key] == "real"
        ]
        return torch.cat([*reals, reward[:, None]], -1)


def _route(item: ObsSpec) -> str:
    """How one array of an observation enters the network."""
    if item.kind in ("real", "mask"):
        return {"real": "real", "mask": "flag"}[item.kind]
    if item.kind == "image":
        return "trunk"
    if len(item.shape) in (2, 3):
        sides = [size for axis, size in enumerate(item.shape) if axis != item.channels_axis]
        if min(sides) >= GRID_SIDE:
            return "trunk"
    return "one_hot" if _count(item.shape) * item.size <= ONE_HOT_LIMIT else "embed"


def _flat(values: Tensor) -> Tensor:
    """[M, ...] as [M, F], single numbers included."""
    return values.flatten(1) if values.ndim > 1 else values[:, None]


def _name(key: str) -> str:
    """A key as a module may be called, whatever attributes modules have."""
    return "obs/" + key.replace(".", "·")


def _count(shape: tuple[int, ...]) -> int:
    total = 1
    for size in shape:
        total *= size
    return total
