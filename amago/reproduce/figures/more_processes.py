"""Collectors and learners: the same learning on more processes. Every run uses two of them."""

from __future__ import annotations

from amago.reproduce.entry import Experiment, Variant

_PLACES = {
    "local": (),
    "2 sync collectors": ("scale.collectors=2",),
    "2 async collectors": ("scale.collectors=2", "scale.mode=async"),
    "2 learners": ("scale.learners=2",),
}
_BARS = {"T-Maze 100": ("t-maze", 1.0), "Dark Key-To-Door 5×5": ("dark-key-to-door", 22)}

ENTRY = Experiment(
    paper="",
    claim="learning-is-the-same-on-more-processes",
    question="Do collectors and learners in processes of their own learn as much as one process?",
    measure="return",
    preset="t-maze",
    arms=tuple(
        Variant(name, set=places, task=task, preset=preset)
        for task, (preset, _) in _BARS.items()
        for name, places in _PLACES.items()
    ),
    seeds=(0, 1),
    holds=tuple(f"{task}: {name} >= {bar}" for task, (_, bar) in _BARS.items() for name in _PLACES),
    caveats=(
        "All processes of a run are on one machine with two cores.",
        "Two seeds show that nothing is broken, not that scores are equal to a percent.",
    ),
)
