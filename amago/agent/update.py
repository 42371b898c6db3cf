"""One update: a batch in, new weights and the numbers that describe it out."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from amago.agent.accumulate import in_parts
from amago.agent.agent import Agent
from amago.agent.settings import AgentSettings, OptimSettings
from amago.agent.share import Share, share_batch
from amago.agent.transitions import Transitions
from amago.nets.layers import power_iterate
from amago.nets.place import Add, Place, placed
from amago.nets.precision import allow_bfloat16
from amago.types import Batch

_MAX_SKIPPED = 20


class Learner:
    """The agent's loss terms, one optimiser, and the target averages.

    `planned_updates` is the total number of updates, if known; used by learning-rate decay.
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
        self._fused = agent.discounts.device.type != "meta"  # where there is nothing to compute
        self.optimizer = torch.optim.AdamW(
            self.parameters,
            lr=optim.learning_rate,
            weight_decay=optim.weight_decay,
            betas=(0.9, optim.beta2),
            fused=self._fused,
        )
        self.bfloat16 = _mixed_precision(agent)
        """The kind of device on which networks multiply in bfloat16, if any."""
        self.add: Add | None = None
        """Sums a tensor over all ranks, where there are several; see amago.scale.learn."""
        self.updates = 0
        self.skipped = 0
        self.skipped_in_a_row = 0

    def step(self, batch: Batch) -> dict[str, Tensor]:
        """One gradient update from one batch, in as many parts as --optim.accumulate says."""
        return self.learn(share_batch(batch, accumulate=self.optim.accumulate)[0])

    def learn(self, share: Share) -> dict[str, Tensor]:
        """One gradient update from this rank's share of a batch.

        Metrics stay on the device until somebody reads them.
        """
        agent = self.agent
        if not share.finite:
            return self._skip({})
        agent.train()
        before = [tensor.clone() for tensor in self._moved_by_statistics()]
        power_iterate(agent)
        self.optimizer.zero_grad(set_to_none=True)
        with placed(share.place, self.add), allow_bfloat16(self.bfloat16):
            agent.update_statistics(share.batch)
            loss, metrics = self._backward(share)
        norm = nn.utils.clip_grad_norm_(self.parameters, self.optim.grad_clip, foreach=self._fused)
        metrics["grad/norm"] = norm
        metrics["grad/clipped"] = (norm > self.optim.grad_clip).to(norm.dtype)
        if not self._reads_as_finite(norm, loss):
            self._restore(before)
            return self._skip(metrics)
        self.updates += 1
        self.skipped_in_a_row = 0
        rate = _learning_rate(self.optim, self.updates, self.planned_updates)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()
        agent.update_targets(self.settings.target_tau)
        return metrics

    def _reads_as_finite(self, norm: Tensor, loss: Tensor) -> bool:
        """The one moment of an update at which the CPU waits for the device."""
        return bool(torch.isfinite(norm) & torch.isfinite(loss))

    def prepare(self, batch: Batch) -> Transitions:
        """Encode a batch once, make its targets, and move the statistics that depend on them."""
        transitions = Transitions(self.agent, batch, self.settings)
        self._move_statistics(transitions)
        return transitions

    def _move_statistics(self, transitions: Transitions) -> None:
        """Targets are made with PopArt's statistics before this batch and compared after it."""
        self.agent.update_scale(transitions.target)
        for term in self.agent.terms:
            term.update_statistics(transitions)

    def _backward(self, share: Share) -> tuple[Tensor, dict[str, Tensor]]:
        """Gradients of the whole batch, its loss, and what to log."""
        if share.place is None and not share.parts:
            loss, metrics = self.total_loss(self.prepare(share.batch))
            torch.autograd.backward(loss)
            return loss.detach(), metrics
        sums: dict[str, Tensor] = {}
        for place, transitions in self._parts(share):
            loss, metrics = self.total_loss(transitions)
            torch.autograd.backward(loss * place.weight)
            for name, value in {"": loss.detach(), **metrics}.items():
                sums[name] = sums.get(name, 0.0) + value.double() * place.weight
        if self.add is not None:
            sums = _added(self.add, self.parameters, sums)
        return sums.pop(""), sums

    def _parts(self, share: Share) -> Iterable[tuple[Place, Transitions]]:
        if share.parts:
            return in_parts(self.agent, share, self.settings, self._move_statistics)
        assert share.place is not None
        return [(share.place, self.prepare(share.batch))]

    def total_loss(self, transitions: Transitions) -> tuple[Tensor, dict[str, Tensor]]:
        """The weighted sum of all terms [AMAGO eq. 3 with the term of eq. 6], and what to log."""
        terms = self.agent.terms
        losses = {term.name: term.loss(transitions).mean() for term in terms}
        total = torch.stack([term.weight * losses[term.name] for term in terms]).sum()
        metrics = {f"loss/{name}": loss.detach() for name, loss in losses.items()}
        metrics["loss/total"] = total.detach()
        with torch.no_grad():
            for term in terms:
                metrics |= term.metrics(transitions)
        return total, metrics

    def _moved_by_statistics(self) -> list[Tensor]:
        """All that an update changes before its gradient is known to be finite."""
        heads = (self.agent.critics, self.agent.target_critics)
        outputs = [tensor for head in heads for tensor in head.layers[-1].parameters()]
        return [*self.agent.buffers(), *outputs]

    @torch.no_grad()
    def _restore(self, before: list[Tensor]) -> None:
        for tensor, value in zip(self._moved_by_statistics(), before, strict=True):
            tensor.copy_(value)

    def _skip(self, metrics: dict[str, Tensor]) -> dict[str, Tensor]:
        """Count an update that was not applied, and give up when nothing else happens."""
        self.updates += 1
        self.skipped += 1
        self.skipped_in_a_row += 1
        if self.skipped_in_a_row >= _MAX_SKIPPED:
            raise RuntimeError(
                f"{_MAX_SKIPPED} updates in a row had a non-finite batch, loss or gradient; "
                "look for NaN or huge values in observations and rewards, or lower "
                "--optim.learning-rate"
            )
        return {name: value for name, value in metrics.items() if torch.isfinite(value)}


def _mixed_precision(agent: Agent) -> str | None:
    """--run.bf16 holds on GPUs alone."""
    device = agent.discounts.device.type
    return device if agent.config.run.bf16 and device == "cuda" else None


def _learning_rate(optim: OptimSettings, update: int, planned_updates: int | None) -> float:
    """Linear warm-up, times a linear decay over the planned updates."""
    share = min(1.0, update / max(1, optim.warmup_updates))
    if planned_updates:
        gone = min(1.0, update / planned_updates)
        share *= 1.0 - gone * (1.0 - optim.final_fraction)
    return optim.learning_rate * share


def _added(add: Add, parameters: list[nn.Parameter], sums: dict[str, Tensor]) -> dict[str, Tensor]:
    """Sum gradients, in place, and metrics over all ranks: two exchanges in all."""
    gradients = [p.grad for p in parameters if p.grad is not None]
    flat = add(torch.cat([gradient.flatten() for gradient in gradients]))
    pieces = torch.split(flat, [gradient.numel() for gradient in gradients])
    shaped = [piece.view_as(own) for piece, own in zip(pieces, gradients, strict=True)]
    torch._foreach_copy_(gradients, shaped)
    return dict(zip(sums, add(torch.stack(list(sums.values()))).unbind(0), strict=True))
