"""What happens next, forecast from state and action for an auxiliary loss."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from amago.nets.layers import mlp


class WorldModel(nn.Module):
    """[state, action] → a forecast of the next row, which `MLPEncoder.surprise` judges."""

    def __init__(self, state_dim: int, action_size: int, forecast_dim: int, hidden: int) -> None:
        super().__init__()
        self.net = mlp((state_dim + action_size, hidden, hidden, forecast_dim))

    def forward(
        self, state: Float[Tensor, "M D"], action: Float[Tensor, "M A"]
    ) -> Float[Tensor, "M F"]:
        forecast: Tensor = self.net(torch.cat((state, action), -1))
        return forecast
