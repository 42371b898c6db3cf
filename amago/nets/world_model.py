"""What happens next, predicted from state and action: an auxiliary loss."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from amago.nets.layers import mlp


class WorldModel(nn.Module):
    """[state, action] → the next row's normalised real features, the reward among them."""

    def __init__(self, state_dim: int, action_size: int, num_features: int, hidden: int) -> None:
        super().__init__()
        self.net = mlp((state_dim + action_size, hidden, hidden, num_features))

    def loss(
        self,
        state: Float[Tensor, "M D"],
        action: Float[Tensor, "M A"],
        following: Float[Tensor, "M F"],
    ) -> Float[Tensor, " M"]:
        predicted: Tensor = self.net(torch.cat((state, action), -1))
        return (predicted - following).square().mean(-1)
