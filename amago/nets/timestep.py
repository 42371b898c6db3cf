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

_ONE_HOT_LIMIT = 1024
"""Ids of one observation that would be wider than this as one-hots are embedded instead."""
_GRID_SIDE = 16
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
        width, reals = 0, 1  # prev_reward is a real feature
        self.categories: dict[str, int] = {}
        """Width of the flags and one-hots of each observation that has them."""
        self.trunks, self.embeddings = nn.ModuleDict(), nn.ModuleDict()
        for key in self.keys:
            item = spec.obs[key]
            count, route = _count(item.shape), self.routes[key]
            reals += count if route == "real" else 0
            if route in ("flag", "one_hot"):
                self.categories[key] = count * (item.size if route == "one_hot" else 1)
            elif route == "embed":
                self.embeddings[_name(key)] = nn.Embedding(item.size, EMBEDDING_DIM)
                width += count * EMBEDDING_DIM
            elif route == "trunk":
                self.trunks[_name(key)] = trunk = ImageEncoder(item, settings)
                width += trunk.output_dim
        self.num_reals = reals
        self.normalizer = RunningNormalizer(reals) if settings.normalize else None
        self.instruction = None
        if spec.goals is not None:
            self.instruction = InstructionEncoder(spec.goals, instruction or InstructionSettings())
            width += self.instruction.output_dim
        with_time = spec.horizon is not None
        width += reals + sum(self.categories.values())
        size_in = width + spec.action.size + 1 + with_time
        self.net = mlp((size_in, *settings.hidden))
        self.norm = nn.LayerNorm(settings.hidden[-1])
        self.output_dim = settings.hidden[-1]

    def update_statistics(self, batch: Batch) -> None:
        if self.normalizer is not None:
            self.normalizer.update(self.raw_reals(batch.obs, batch.prev_reward))

    def forward(self, batch: Batch) -> Float[Tensor, "M E"]:
        reals = self.reals(batch.obs, batch.prev_reward)
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
            # Whoever plays on beyond the horizon that was trained meets no larger times.
            time = batch.time.to(reals.dtype) / self.spec.horizon
            features.append(time.clamp(max=1.0)[:, None])
        encoded: Tensor = self.norm(self.net(torch.cat(features, -1)))
        return encoded

    def reals(self, obs: dict[str, Tensor], reward: Float[Tensor, " M"]) -> Float[Tensor, "M F"]:
        """Real-valued features as the network reads them; the reward is the last."""
        raw = self.raw_reals(obs, reward)
        return raw if self.normalizer is None else self.normalizer(raw)

    def raw_reals(
        self, obs: dict[str, Tensor], reward: Float[Tensor, " M"]
    ) -> Float[Tensor, "M F"]:
        """The same before they are normalised."""
        numbers = [
            flat(obs[key]).to(reward.dtype) for key in self.keys if self.routes[key] == "real"
        ]
        return torch.cat([*numbers, reward[:, None]], -1)

    def _feature(self, key: str, values: Tensor, dtype: torch.dtype) -> Float[Tensor, "M F"]:
        route = self.routes[key]
        if route == "flag":
            return flat(values).to(dtype)
        if route == "one_hot":
            hot = F.one_hot(values.long(), self.spec.obs[key].size)
            return hot.flatten(1).to(dtype)
        if route == "embed":
            embedded: Tensor = self.embeddings[_name(key)](values.long())
            return embedded.flatten(1)
        features: Tensor = self.trunks[_name(key)](values, dtype)
        return features


def _route(item: ObsSpec) -> str:
    """How one array of an observation enters the network."""
    if item.kind in ("real", "mask"):
        return {"real": "real", "mask": "flag"}[item.kind]
    if item.kind == "image":
        return "trunk"
    if len(item.shape) in (2, 3):
        sides = [size for axis, size in enumerate(item.shape) if axis != item.channels_axis]
        if min(sides) >= _GRID_SIDE:
            return "trunk"
    return "one_hot" if _count(item.shape) * item.size <= _ONE_HOT_LIMIT else "embed"


def flat(values: Tensor) -> Tensor:
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
