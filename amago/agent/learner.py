"""One update: a batch in, new weights and the numbers that describe it out."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from amago.agent.agent import Agent, Views, action_mask, sequences_of
from amago.agent.filters import FILTERS
from amago.agent.losses import (
    critic_loss,
    filter_weight,
    filtered_bc_loss,
    policy_gradient_loss,
)
from amago.agent.metrics import describe
from amago.agent.settings import AgentSettings, OptimSettings
from amago.agent.targets import draw_critics, n_step_target, td_target
from amago.nets.action import action_features
from amago.nets.layers import power_iterate
from amago.nets.sequences import Sequences
from amago.nets.timestep import MLPEncoder
from amago.types import Batch

MAX_SKIPPED = 20


class Learner:
    """The agent's losses, one optimiser, and the target averages.

    `planned_updates` is how many there will be, if anybody knows: what a falling step size
    falls over.
    """

    def __init__(
        self,
        agent: Agent,
        settings: AgentSettings,
        optim: OptimSettings,
        planned_updates: int | None = None,
    ) -> None:
        self.agent, self.settings, self.optim = agent, settings, optim
        self.planned_updates = planned_updates
        self.parameters = [p for p in agent.parameters() if p.requires_grad]
        self.optimizer = torch.optim.AdamW(
            self.parameters,
            lr=optim.learning_rate,
            weight_decay=optim.weight_decay,
            fused=True,
        )
        self.updates = 0
        self.skipped = 0
        self.skipped_in_a_row = 0

    def step(self, batch: Batch) -> dict[str, Tensor]:
        """One gradient update; metrics stay on the device until somebody reads them."""
        agent = self.agent
        if not _finite(batch):
            return self._skip({})
        agent.train()
        before = [tensor.clone() for tensor in self._statistics()]
        power_iterate(agent)
        agent.update_statistics(batch)
        loss, metrics = self.losses(batch)
        self.optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        norm = nn.utils.clip_grad_norm_(self.parameters, self.optim.grad_clip, foreach=True)
        metrics["grad/norm"] = norm
        if not bool(torch.isfinite(norm) & torch.isfinite(loss.detach())):
            with torch.no_grad():
                for tensor, value in zip(self._statistics(), before, strict=True):
                    tensor.copy_(value)
            return self._skip(metrics)
        self.updates += 1
        self.skipped_in_a_row = 0
        self._set_learning_rate()
        self.optimizer.step()
        agent.update_targets(self.settings.target_tau)
        return metrics

    def losses(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """Total loss of one batch [AMAGO eq. 3 with the term of eq. 6], and what describes it.

        Moves the world model's and PopArt's statistics: targets are made on the scale before
        this batch, compared on the scale after it.
        """
        agent, settings = self.agent, self.settings
        sequences = sequences_of(batch)
        begin, end = sequences.drop_last, sequences.drop_first
        action, allowed = end(batch.prev_action), action_mask(batch.obs)
        mask = None if allowed is None else begin(allowed)

        views = agent.views(batch)
        target = self._target(batch, sequences, views)
        scale, shift = agent.popart.update(target)
        agent.critics.rescale(scale, shift)
        agent.target_critics.rescale(scale, shift)

        state = begin(views.critic)
        actor_state = state if views.actor is views.critic else begin(views.actor)
        frozen = settings.encoder_in_actor_loss == "frozen"
        policy = agent.actor(actor_state.detach() if frozen else actor_state, mask)
        values = agent.critics(state, agent.popart)
        taken = values.at(action)
        # The actor climbs critics that it cannot bend: neither they nor the state they see
        # get gradients from this term [AMAGO appendix A.1].
        detached = values.detached() if settings.critics_in_actor_loss == "frozen" else values
        expected = detached.under(policy)
        baseline = expected  # V(s) from the policy gradient's own sample, unless more are asked for
        if settings.value_samples > 1:
            with torch.no_grad():
                baseline = detached.under(policy, settings.value_samples)
        weight = filter_weight(taken, baseline, FILTERS[settings.bc_filter])
        terms = {
            "critic": (settings.critic_weight, critic_loss(taken, target)),
            "actor": (settings.actor_weight, policy_gradient_loss(expected)),
            "bc": (settings.bc_weight, filtered_bc_loss(policy, action, weight)),
        }
        if agent.world_model is not None:
            assert isinstance(agent.encoder, MLPEncoder)
            before, after = (
                {key: side(value) for key, value in batch.obs.items()} for side in (begin, end)
            )
            change = agent.encoder.change(before, after)
            agent.world_model.changes.update(change)
            features = action_features(action, agent.spec.action, actor_state.dtype)
            forecast = agent.world_model(actor_state, features)
            error = agent.encoder.surprise(
                forecast, agent.world_model.changes(change), after, end(batch.prev_reward)
            )
            terms["world_model"] = (settings.world_model_weight, error)
        losses = {name: term.mean() for name, (_, term) in terms.items()}
        total = torch.stack([terms[name][0] * loss for name, loss in losses.items()]).sum()
        metrics = describe(agent, losses, total, policy, taken, target, weight)
        return total, metrics

    @torch.no_grad()
    def _target(self, batch: Batch, sequences: Sequences, views: Views) -> Tensor:
        """What the critics should have said of every transition, on the scale of the rewards."""
        agent, settings, end = self.agent, self.settings, sequences.drop_first
        reward = end(batch.prev_reward) * settings.reward_scale
        done, allowed = end(batch.terminal), action_mask(batch.obs)
        drawn = draw_critics(agent.critics.num_critics, settings.target_critics, reward.device)
        policy = agent.target_actor(
            end(views.target_actor), None if allowed is None else end(allowed)
        )
        values = agent.target_critics(end(views.target_critic), agent.popart, drawn)
        target = td_target(reward, done, values.under(policy).raw, agent.discounts)
        if settings.n_step == 1:
            return target
        final = end(sequences.last_rows())
        return n_step_target(target, reward, done, final, agent.discounts, settings.n_step)

    def _statistics(self) -> list[Tensor]:
        """All that an update moves before its gradient is known to be finite."""
        heads = (self.agent.critics, self.agent.target_critics)
        outputs = [tensor for head in heads for tensor in head.layers[-1].parameters()]
        return [*self.agent.buffers(), *outputs]

    def _skip(self, metrics: dict[str, Tensor]) -> dict[str, Tensor]:
        """Count an update that was not applied, and give up when nothing else happens."""
        self.updates += 1
        self.skipped += 1
        self.skipped_in_a_row += 1
        if self.skipped_in_a_row >= MAX_SKIPPED:
            raise RuntimeError(
                f"{MAX_SKIPPED} updates in a row had a non-finite batch, loss or gradient; "
                "look for NaN or huge values in observations and rewards, or lower "
                "--optim.learning-rate"
            )
        return {name: value for name, value in metrics.items() if torch.isfinite(value)}

    def _set_learning_rate(self) -> None:
        share = min(1.0, self.updates / max(1, self.optim.warmup_updates))
        if self.planned_updates:
            gone = min(1.0, self.updates / self.planned_updates)
            share *= 1.0 - gone * (1.0 - self.optim.final_share)
        for group in self.optimizer.param_groups:
            group["lr"] = self.optim.learning_rate * share


def _finite(batch: Batch) -> bool:
    arrays = [batch.prev_action, batch.prev_reward, *batch.obs.values()]
    return all(bool(torch.isfinite(x).all()) for x in arrays if x.is_floating_point())
