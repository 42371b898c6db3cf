"""The transitions of a batch, as loss terms see them."""

from __future__ import annotations

from functools import cached_property

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from amago.agent.agent import Agent, States, action_mask, sequences_of
from amago.agent.settings import AgentSettings
from amago.agent.targets import draw_critics, n_step_target, td_target, tree_backup_target
from amago.nets.critic import ActionValues
from amago.nets.distributions import ActionDistribution
from amago.nets.value import Value
from amago.types import Batch


class Transitions:
    """M transitions of a batch, and what loss terms share about them.

    The batch is encoded when this is made; everything else is computed when first asked for, and
    once. `target` must be asked for before PopArt's statistics move, values after it.
    """

    def __init__(
        self, agent: Agent, batch: Batch, settings: AgentSettings, *, encode: bool = True
    ) -> None:
        """`encode=False` is for what needs no states; whoever asks gets some without gradient."""
        self.agent, self.batch, self.settings = agent, batch, settings
        self.sequences = sequences_of(batch)
        self._states: States | None = agent.read(batch) if encode else None

    @property
    def states(self) -> States:
        """The encoded batch, row by row."""
        if self._states is None:
            with torch.no_grad():
                self._states = self.agent.read(self.batch)
        return self._states

    def before(self, rows: Tensor) -> Tensor:
        """Of all rows of the batch, those in which transitions begin."""
        return self.sequences.drop_last(rows)

    def after(self, rows: Tensor) -> Tensor:
        """Of all rows of the batch, those in which transitions end."""
        return self.sequences.drop_first(rows)

    @cached_property
    def obs(self) -> dict[str, Tensor]:
        """What was observed when the action was chosen, [M, ...]."""
        return {key: self.before(value) for key, value in self.batch.obs.items()}

    @cached_property
    def next_obs(self) -> dict[str, Tensor]:
        """What was observed after it, [M, ...]."""
        return {key: self.after(value) for key, value in self.batch.obs.items()}

    @cached_property
    def action(self) -> Tensor:
        """The agent action that was taken, [M, ...]."""
        return self.after(self.batch.prev_action)

    @cached_property
    def unscaled_reward(self) -> Float[Tensor, " M"]:
        """The reward as the environment gave it."""
        return self.after(self.batch.prev_reward)

    @cached_property
    def reward(self) -> Float[Tensor, " M"]:
        """The reward times --agent.reward-scale, as critics learn it."""
        return self.unscaled_reward * self.settings.reward_scale

    @cached_property
    def done(self) -> Bool[Tensor, " M"]:
        """Whether nothing follows."""
        return self.after(self.batch.terminal)

    @cached_property
    def critic_state(self) -> Float[Tensor, "M D"]:
        """The state that critics read, with gradient."""
        return self.before(self.states.critic)

    @cached_property
    def actor_state(self) -> Float[Tensor, "M D"]:
        """The state that the actor reads, with gradient; often the same as the critics'."""
        shared = self.states.actor is self.states.critic
        return self.critic_state if shared else self.before(self.states.actor)

    @property
    def policy(self) -> ActionDistribution:
        """The policies of all discounts, over [M, G]."""
        return self._heads[0]

    @property
    def values(self) -> ActionValues:
        """What the critics know about the actions in each state."""
        return self._heads[1]

    @cached_property
    def taken(self) -> Value:
        """Q(s, a) of the actions that were taken, [C, M, G]."""
        return self.values.at(self.action)

    @cached_property
    def expected(self) -> Value:
        """Q(s, π(s)), [C, M, G], with gradient to the policy.

        The actor climbs critics that it cannot bend: neither they nor the state they see get
        gradients from here, unless --agent.critics-in-actor-loss says so [AMAGO appendix A.1].
        """
        trained = self.settings.critics_in_actor_loss == "trained"
        values = self.values if trained else self.values.detached()
        return values.under(self.policy)

    @cached_property
    def advantage(self) -> Float[Tensor, "M G"]:
        """mean Q(s, a) - mean V(s) on the normalised scale, without gradient [AMAGO eq. 4].

        V(s) is `expected`: for actions that are not discrete, the policy gradient's own sample.
        """
        taken, baseline = self.taken, self.expected
        with torch.no_grad():
            return taken.normalised.mean(0) - baseline.normalised.mean(0)

    @cached_property
    @torch.no_grad()
    def target(self) -> Float[Tensor, "M G"]:
        """TD targets on the scale of the rewards, from target actor and critics."""
        agent, settings, states = self.agent, self.settings, self.states
        drawn = draw_critics(agent.critics.num_critics, settings.target_critics, self.reward.device)
        allowed = action_mask(self.batch.obs)
        policy = agent.target_actor(
            self.after(states.target_actor), None if allowed is None else self.after(allowed)
        )
        values = agent.target_critics(self.after(states.target_critic), agent.popart, drawn)
        target = td_target(self.reward, self.done, values.under(policy).raw, agent.discounts)
        final = self.after(self.sequences.last_rows())
        if settings.trace:
            following = self.action.roll(-1, 0)  # what the last one of a window gets is not used
            likely = policy.agreement(following[:, None])
            goes_on = ~(self.done | final)[:, None]
            weight = goes_on * (settings.trace * agent.discounts) * likely
            return tree_backup_target(target, values.at(following).raw.amin(0), weight)
        if settings.n_step == 1:
            return target
        return n_step_target(
            target, self.reward, self.done, final, agent.discounts, settings.n_step
        )

    @cached_property
    def _heads(self) -> tuple[ActionDistribution, ActionValues]:
        allowed = action_mask(self.batch.obs)
        frozen = self.settings.encoder_in_actor_loss == "frozen"
        critic_state, state = self.critic_state, self.actor_state
        policy = self.agent.actor(
            state.detach() if frozen else state, None if allowed is None else self.before(allowed)
        )
        return policy, self.agent.critics(critic_state, self.agent.popart)
