"""POPGym: all 48 environments with one set of settings, beside published scores."""

from __future__ import annotations

from amago.envs.domains.popgym import ALL_IDS
from amago.reproduce.entry import Experiment, Variant

EPOCHS, MINUTES = 80, 15
"""Of every figure on POPGym, so that they share their runs."""
_RECALL = ("RepeatPrevious", "Autoencode", "CountRecall", "Concentration")
"""Families in which nothing but memory helps."""


def _arms() -> tuple[Variant, ...]:
    arms = []
    for env_id in ALL_IDS:
        task, chosen = env_id.removeprefix("popgym/"), (f"env.id={env_id}",)
        arms.append(Variant("full", set=chosen, task=task))
        if task.startswith(_RECALL):
            arms.append(Variant("GRU", "gru", chosen, task))
            arms.append(Variant("no memory", "no-memory", chosen, task))
    return tuple(arms)


ENTRY = Experiment(
    paper="Figure 3",
    claim="one-agent-plays-all-of-popgym",
    question="How well does one set of settings do on all of POPGym?",
    measure="return, best 1",
    preset="popgym",
    arms=_arms(),
    seeds=(0,),
    epochs=EPOCHS,
    minutes=MINUTES,
    view="scores",
    control="no memory",
    holds=("full > random play", "full > no memory"),
    caveats=(
        "At most fifteen minutes of one CPU core against 15M steps on machines with GPUs.",
        "Published numbers are best evaluations; ours are final windows, the best in brackets.",
    ),
)
