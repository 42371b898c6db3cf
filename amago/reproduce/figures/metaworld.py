"""Meta-World ML-1: success in training and held-out tasks over context lengths."""

from __future__ import annotations

from amago.reproduce.entry import Experiment, Probe, Variant

_CONTEXTS = (16, 64, 256)
_TASKS = ("reach", "push")

ENTRY = Experiment(
    paper="Figure 6, left",
    claim="short-contexts-suffice-in-meta-world",
    question="Which context length does Meta-World need, and does it carry over to new tasks?",
    measure="success",
    metric="success",
    preset="metaworld",
    arms=tuple(
        Variant(
            f"context {length}",
            set=(f"env.kwargs.task={task}", f"replay.context_length={length}"),
            task=task,
        )
        for task in _TASKS
        for length in _CONTEXTS
    ),
    seeds=(0,),
    probes=(
        Probe("train", which="best", episodes=64),
        Probe("held-out", ("env.kwargs.split=test",), which="best", episodes=64),
    ),
    view="splits",
    holds=("reach: held-out of context 64 > 50%",),
    caveats=("Two of the ML-1 tasks; the paper does not name its sample.",),
)
