"""What happens next, forecast from state and action for an auxiliary loss."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor, nn

from amago.nets.layers import mlp
from amago.nets.normalize import RunningNormalizer


class WorldModel(nn.Module):
    """[state, action] → a forecast of the next row, which `MLPEncoder.surprise` judges.

    The action multiplies features of the state. What an action does usually depends on the
    state ("left is right here"), and a product shows this to the state's gradient at once; a
    network over both side by side must form that product first.

    Numbers are forecast by how they change, in units of how much they usually do. Most of a number
    is known from the row before: as a share of its whole spread, what the action adds would
    hardly count.
    """

    def __init__(
        self, state_dim: int, action_size: int, num_numbers: int, forecast_dim: int, hidden: int
    ) -> None:
        super().__init__()
        self.changes = RunningNormalizer(num_numbers, rate=1e-3, min_std=1e-4)
        self.features = nn.Sequential(nn.Linear(state_dim, hidden), nn.LeakyReLU())
        self.gains = nn.Linear(action_size, hidden)
        nn.init.normal_(self.gains.weight)
        self.net = mlp((hidden, hidden, forecast_dim))

    def forward(
        self, state: Float[Tensor, "M D"], action: Float[Tensor, "M A"]
    ) -> Float[Tensor, "M F"]:
        forecast: Tensor = self.net(self.features(state) * self.gains(action))
        return forecast
