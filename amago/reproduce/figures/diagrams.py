"""Figures that show how something works, and those that another command draws: by name only."""

from __future__ import annotations

from amago.reproduce.entry import Named

ENTRIES = {
    "agent": Named("Figure 1", "The agent as a diagram.", "docs/images/pipeline.svg"),
    "relabeling": Named(
        "Figure 2", "Hindsight relabeling of instructions.", "docs/instructions.md"
    ),
    "architectures": Named(
        "Figure 10", "How actor and critics share networks.", "docs/algorithm.md"
    ),
    "attention": Named(
        "Figure 15",
        "Attention over a rollout of a trained agent.",
        "`amago eval RUN --attention attention.png`",
    ),
    "block": Named("Figure 16", "The Transformer block.", "docs/algorithm.md"),
    "rare-goals": Named(
        "Figure 17", "One rollout before and after relabeling.", "`amago relabel RUN`"
    ),
    "large-maze": Named(
        "Figure 21", "A maze, as a film of it shows it.", "`amago eval RUN --video film.mp4`"
    ),
    "crafter-worlds": Named(
        "Figure 23", "Worlds of Crafter, as films show them.", "`amago eval RUN --video film.mp4`"
    ),
    "goal-choices": Named(
        "Figure 27",
        "How often each goal is chosen, with and without importance sampling.",
        "`amago relabel RUN --choices`",
    ),
    "network-sizes": Named(
        "Table 3", "Sizes of all networks by domain.", "`amago presets DOMAIN/paper`"
    ),
    "training-settings": Named(
        "Table 4", "Training settings by domain.", "`amago presets DOMAIN/paper`"
    ),
}
