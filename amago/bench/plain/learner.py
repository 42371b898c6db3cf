"""The update of the plain implementation, on padded rows."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from amago.bench.plain.agent import PlainAgent, Rows, SigmaLinear
from amago.types import Batch


@dataclass(frozen=True)
class _Padded(Rows):
    """The sequences of a batch side by side, [B, L+1]."""

    terminal: Tensor
    valid: Tensor
    """False in the rows that fill up short sequences."""


def padded(batch: Batch) -> _Padded:
    """A batch with zeros after the end of short sequences."""

    def pad(rows: Tensor) -> Tensor:
        sequences = list(torch.split(rows, list(batch.lengths)))
        return nn.utils.rnn.pad_sequence(sequences, batch_first=True)

    names = ("prev_action", "prev_reward", "time", "first", "terminal")
    return _Padded(
        obs={key: pad(rows) for key, rows in batch.obs.items()},
        valid=pad(torch.ones_like(batch.first)),
        **{name: pad(getattr(batch, name)) for name in names},
    )


class PlainLearner:
    def __init__(self, agent: PlainAgent) -> None:
        self.agent, self.updates = agent, 0
        self.parameters = [p for p in agent.parameters() if p.requires_grad]
        optim = agent.config.optim
        self.optimizer = torch.optim.AdamW(
            self.parameters, lr=optim.learning_rate, weight_decay=optim.weight_decay
        )

    def step(self, batch: Batch) -> dict[str, Tensor]:
        agent, optim = self.agent.train(), self.agent.config.optim
        for layer in agent.modules():
            if isinstance(layer, SigmaLinear):
                layer.power_iterate()
        rows = padded(batch)
        agent.normalizer.update(agent.reals(rows)[rows.valid])
        losses = self.losses(rows)
        self.optimizer.zero_grad()
        losses["loss/total"].backward()  # type: ignore[no-untyped-call]
        losses["grad/norm"] = nn.utils.clip_grad_norm_(self.parameters, optim.grad_clip)
        self.updates += 1
        for group in self.optimizer.param_groups:
            warm = min(1.0, self.updates / max(1, optim.warmup_updates))
            group["lr"] = optim.learning_rate * warm
        self.optimizer.step()
        self._move_targets()
        return {name: value.detach() for name, value in losses.items()}

    def losses(self, batch: _Padded) -> dict[str, Tensor]:
        agent = self.agent
        rows = batch.valid.shape[1]
        states = agent.states(batch, torch.ones(rows, rows, dtype=torch.bool).tril())
        state, following = states[:, :-1], states[:, 1:].detach()
        keep = batch.valid[:, 1:]
        action = F.one_hot(batch.prev_action[:, 1:, None], agent.shape[1])  # [B, L, 1, A]
        target = self._target(batch, following)
        self._rescale(target[keep])
        mean, std = agent.popart.read()

        logits = agent.actor(state).unflatten(-1, agent.shape)  # [B, L, G, A]
        probs = agent.probabilities(logits)
        values = torch.stack([critic(state).unflatten(-1, agent.shape) for critic in agent.critics])
        taken = (values * action).sum(-1)  # [C, B, L, G]
        expected = (values.detach() * probs).sum(-1)
        weight = (taken.mean(0) > expected.mean(0)).float().detach()
        terms = {
            "loss/critic": (taken - (target - mean) / std).square().mean(0),
            "loss/actor": -expected.amin(0),
            "loss/cloning": -weight * (logits.log_softmax(-1) * action).sum(-1),
        }
        means = {name: term[keep].mean() for name, term in terms.items()}
        weights = agent.config.terms
        total = weights.critic.weight * means["loss/critic"]
        total = total + weights.actor.weight * means["loss/actor"]
        return {**means, "loss/total": total + weights.cloning.weight * means["loss/cloning"]}

    @torch.no_grad()
    def _target(self, batch: _Padded, states: Tensor) -> Tensor:
        agent, settings = self.agent, self.agent.config.agent
        mean, std = agent.popart.read()
        probs = agent.probabilities(agent.target_actor(states).unflatten(-1, agent.shape))
        values = []
        for index in torch.randperm(len(agent.target_critics))[: settings.target_critics].tolist():
            table = agent.target_critics[index](states).unflatten(-1, agent.shape)
            values.append((table * probs).sum(-1) * std + mean)
        alive = (~batch.terminal[:, 1:]).float()[..., None]
        reward = settings.reward_scale * batch.prev_reward[:, 1:, None]
        return reward + agent.discounts * alive * torch.stack(values).amin(0)

    @torch.no_grad()
    def _rescale(self, target: Tensor) -> None:
        """Move PopArt's statistics and keep every value where it was."""
        agent = self.agent
        first = agent.popart.mass == 0
        old_mean, old_std = agent.popart.read()
        agent.popart.update(target)
        if first:
            return
        mean, std = agent.popart.read()
        scale = (old_std / std).repeat_interleave(agent.shape[1])
        shift = ((old_mean - mean) / std).repeat_interleave(agent.shape[1])
        for critic in (*agent.critics, *agent.target_critics):
            assert isinstance(critic, nn.Sequential)
            output = critic[-1]
            assert isinstance(output, nn.Linear)
            output.weight.mul_(scale[:, None])
            output.bias.mul_(scale).add_(shift)

    @torch.no_grad()
    def _move_targets(self) -> None:
        agent = self.agent
        for target, online in (
            (agent.target_actor, agent.actor),
            (agent.target_critics, agent.critics),
        ):
            for slow, fast in zip(target.parameters(), online.parameters(), strict=True):
                slow.lerp_(fast, agent.config.agent.target_tau)
