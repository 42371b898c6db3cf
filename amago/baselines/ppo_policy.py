"""Recurrent PPO's networks over amago's encoder, and the trained policy as amago plays it."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sb3_contrib.common.recurrent.policies import RecurrentActorCriticPolicy
from stable_baselines3.common.distributions import Distribution
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor, nn

from amago.agent.agent import action_mask
from amago.baselines.rows import RowVectors
from amago.config import Config
from amago.nets.timestep import MLPEncoder
from amago.types import ActionSpec, Array, Timestep

_NEVER = -1e8
"""Logit of an action that is not allowed; infinity would make the entropy undefined."""


class RowFeatures(BaseFeaturesExtractor):
    """amago's timestep encoder: observation, previous action and reward, reset, time, instruction.

    Remembers which actions the rows allow, for the policy that asked.
    """

    def __init__(self, observation_space: Any, rows: RowVectors, config: Config) -> None:
        super().__init__(observation_space, config.encoder.hidden[-1])
        self.rows = rows
        self.encoder = MLPEncoder(rows.spec, config.encoder, config.instruction)
        self.allowed: Tensor | None = None

    def forward(self, observations: Tensor) -> Tensor:
        batch = self.rows.read(observations)
        self.allowed = action_mask(batch.obs)
        features: Tensor = self.encoder(batch)
        return features

    def update_statistics(self, observations: Tensor) -> None:
        """Show rows to the encoder's normaliser."""
        self.encoder.update_statistics(self.rows.read(observations))


class MaskedLstmPolicy(RecurrentActorCriticPolicy):
    """The recurrent policy of sb3-contrib, which obeys action masks and does not step through
    sequences in Python."""

    @staticmethod
    def _process_sequence(
        features: Tensor, lstm_states: Any, episode_starts: Tensor, lstm: nn.LSTM
    ) -> Any:
        """The same numbers in one call of the LSTM: rollouts begin where sequences do."""
        starts = episode_starts.reshape(lstm_states[0].shape[1], -1)
        if not starts[:, 1:].any():
            alive = (1.0 - starts[:, 0]).view(1, -1, 1)
            lstm_states = tuple(state * alive for state in lstm_states)
            episode_starts = torch.zeros_like(episode_starts)
        return RecurrentActorCriticPolicy._process_sequence(
            features, lstm_states, episode_starts, lstm
        )

    def _get_action_dist_from_latent(self, latent_pi: Tensor) -> Distribution:
        features: Any = self.features_extractor
        allowed: Tensor | None = features.allowed
        if allowed is None:
            return super()._get_action_dist_from_latent(latent_pi)
        action: ActionSpec = features.rows.spec.action
        parts = torch.split(allowed, list(action.sizes) or [action.size], -1)
        # A part that allows nothing, such as those of padding, allows everything.
        useful = torch.cat([part | ~part.any(-1, keepdim=True) for part in parts], -1)
        logits = self.action_net(latent_pi).masked_fill(~useful, _NEVER)
        masked: Distribution = self.action_dist.proba_distribution(action_logits=logits)
        return masked


class PpoPolicy:
    """The trained networks as a player; implements amago.types.Policy."""

    def __init__(
        self, networks: MaskedLstmPolicy, rows: RowVectors, *, seed: int, greedy: bool
    ) -> None:
        self.networks, self.rows, self.greedy = networks, rows, greedy
        # Distributions of Stable-Baselines3 draw from torch's global generator only.
        self._random = torch.Generator().manual_seed(seed).get_state()

    def initial_state(self, num_lanes: int) -> tuple[Tensor, Tensor]:
        lstm = self.networks.lstm_actor
        zeros = torch.zeros(
            lstm.num_layers, num_lanes, lstm.hidden_size, device=self.networks.device
        )
        return zeros, zeros.clone()

    @torch.no_grad()
    def act(self, timestep: Timestep, state: Any) -> tuple[Array, Any]:
        self.networks.set_training_mode(False)
        device = self.networks.device
        vectors = torch.from_numpy(self.rows.write(timestep)).to(device)
        starts = torch.from_numpy((timestep.time == 0).astype(np.float32)).to(device)
        distribution, state = self.networks.get_distribution(vectors, state, starts)
        devices = [device] if device.type == "cuda" else []
        with torch.random.fork_rng(devices):
            torch.set_rng_state(self._random)
            action = distribution.get_actions(deterministic=self.greedy).cpu().numpy()
            self._random = torch.get_rng_state()
        action = action.reshape(len(timestep), *self.rows.spec.action.shape)
        if self.rows.spec.action.kind == "continuous":
            return np.clip(action, -1.0, 1.0), state
        return action.astype(np.int64), state

    def select(self, state: tuple[Tensor, Tensor], lanes: Array) -> tuple[Tensor, Tensor]:
        hidden, cell = state
        return hidden[:, lanes], cell[:, lanes]
