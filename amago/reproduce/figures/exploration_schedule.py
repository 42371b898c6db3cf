"""Exploration noise within a rollout and over training."""

from __future__ import annotations

from amago.reproduce.entry import Measurement

ENTRY = Measurement(
    paper="Figure 13",
    claim="exploration-fades-within-a-rollout",
    question="How does exploration noise fall within a rollout and over training?",
    measure="ε",
    module="amago.reproduce.schedule",
    view="schedule",
    minutes=0.1,
    caveats=(
        "Computed from the settings of the paper's Table 4, not measured.",
        "Every rollout multiplies ε with a random number from 0 to 1.",
    ),
)
