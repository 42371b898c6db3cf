"""A forecast of the next row from state and action, and its error."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from amago.nets.action import action_features
from amago.nets.layers import mlp
from amago.nets.normalize import RunningNormalizer
from amago.nets.precision import mixed, widened
from amago.nets.timestep import MLPEncoder, flat
from amago.types import ActionSpec


class WorldModel(nn.Module):
    """[state, action] → the next row's features: numbers first, then logits of categories.

    The action multiplies features of the state. What an action does usually depends on the
    state ("left is right here"), and a product shows this to the state's gradient at once; a
    network over both side by side must form that product first.

    Numbers are forecast by how much they change, in units of their usual change. Most of a number
    is known from the row before: as a share of its whole spread, the effect of the action would
    hardly count. Images and embedded ids are left out.
    """

    def __init__(
        self, encoder: MLPEncoder, state_dim: int, action: ActionSpec, hidden: int
    ) -> None:
        super().__init__()
        self.action, self.num_reals = action, encoder.num_reals
        self.widths = dict(encoder.categories)
        self.flags = {key for key in self.widths if encoder.routes[key] == "flag"}
        sizes = {key: 1 if key in self.flags else encoder.spec.obs[key].size for key in self.widths}
        self.num_features = self.num_reals + sum(w // sizes[k] for k, w in self.widths.items())
        self.changes = RunningNormalizer(self.num_reals - 1, rate=1e-3, min_std=1e-4)
        self.features = nn.Sequential(nn.Linear(state_dim, hidden), nn.LeakyReLU())
        self.gains = nn.Linear(action.size, hidden)
        nn.init.normal_(self.gains.weight)
        self.net = mlp((hidden, hidden, self.num_reals + sum(self.widths.values())))

    def forward(self, state: Float[Tensor, "M D"], action: Tensor) -> Float[Tensor, "M F"]:
        with mixed():
            gains = self.gains(action_features(action, self.action, state.dtype))
            forecast: Tensor = self.net(self.features(state) * gains)
        return widened(forecast)

    def error(
        self,
        forecast: Float[Tensor, "M F"],
        change: Float[Tensor, "M numbers"],
        reward: Float[Tensor, "M 1"],
        obs: dict[str, Tensor],
    ) -> Float[Tensor, " M"]:
        """Forecast error per feature of the row that followed.

        Normalised changes of numbers and the normalised reward count by their squared errors,
        flags and categories by their cross-entropies.
        """
        numbers, *logits = forecast.split_with_sizes([self.num_reals, *self.widths.values()], -1)
        error: Tensor = (numbers - torch.cat((change, reward), -1)).square().sum(-1)
        for key, block in zip(self.widths, logits, strict=True):
            seen = flat(obs[key])
            if key in self.flags:
                flags = seen.to(block.dtype)
                terms = F.binary_cross_entropy_with_logits(block, flags, reduction="none")
            else:
                choices = block.view(*seen.shape, -1).transpose(1, 2)
                terms = F.cross_entropy(choices, seen.long(), reduction="none")
            error = error + terms.sum(-1)
        return error / self.num_features
