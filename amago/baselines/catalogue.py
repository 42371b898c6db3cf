"""The methods that can stand beside amago's own, by name."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from amago.baselines.settings import HistorySettings, PpoSettings
from amago.checks import did_you_mean
from amago.presets.ablations import ABLATIONS

_ALL_EPOCHS = 1_000_000


@dataclass(frozen=True)
class _Baseline:
    """A method of its own."""

    summary: str
    section: str
    """Its settings in the options of `amago baseline`."""
    settings: PpoSettings | HistorySettings
    """What those are unless somebody changes them."""
    keeps_weights: bool
    """Whether its run folder holds an agent of amago, which can act and go on."""
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Settings in place of the preset's."""
    env_id: str = ""
    """The only environment that it knows; empty: any."""


METHODS = {
    "recurrent-ppo": _Baseline(
        "PPO with an LSTM from sb3-contrib, over amago's encoder (needs amago[baselines])",
        section="ppo",
        settings=PpoSettings(),
        keeps_weights=False,
        # Few lanes, so that policy and data renew each other often.
        changes={"env.num_lanes": 32},
    ),
    "algorithm-distillation": _Baseline(
        "imitates learning histories of memory-free agents in 8×8 Dark Key-To-Door",
        section="histories",
        settings=HistorySettings(),
        keeps_weights=True,
        changes={
            "env.kwargs.grid": 8,
            "env.kwargs.horizon": 2000,
            "replay.context_length": 200,
            "rollout.offline_epochs": _ALL_EPOCHS,
            # Next actions are all that it learns: no values, no policy gradient, no filter.
            "agent.discounts": "single",
            "heads.num_critics": 1,
            "terms.critic.weight": 0.0,
            "terms.actor.weight": 0.0,
            "terms.cloning.weight": 1.0,
            "terms.cloning.filter": "none",
            # Rollouts are twenty times as long as the preset's.
            "run.eval_interval": 20,
            "run.eval_episodes": 32,
        },
        env_id="amago/DarkKeyToDoor-v0",
    ),
}
_AS_ABLATIONS = ("gcsl", "separate-memory", "target-memory", "gru", "no-memory")
"""Methods that differ from amago's own by settings alone."""


def find_method(name: str) -> _Baseline:
    """A method by its name."""
    if name not in METHODS:
        hint = did_you_mean(name, METHODS)
        raise ValueError(
            f"no baseline is called {name!r}; {hint}`amago baseline --list` shows all of them"
        )
    return METHODS[name]


def described(name: str, settings: Any) -> dict[str, Any]:
    """What the header of a run says of its method."""
    kept = METHODS[name].keeps_weights
    return {"method": name, "keeps_weights": kept, "settings": dataclasses.asdict(settings)}


def has_todays_settings(name: str, recorded: Any) -> bool:
    """Whether a run of a method had the settings that it has today, as its header says."""
    today = dataclasses.asdict(find_method(name).settings)
    return bool(json.loads(json.dumps(today)) == recorded)


def listing() -> list[tuple[str, str, str]]:
    """Name, summary and command of every method that amago's own can be compared with."""
    rows = [(name, own.summary, f"amago baseline {name} PRESET") for name, own in METHODS.items()]
    rows += [
        (name, ABLATIONS[name].summary, f"amago train PRESET --ablate {name}")
        for name in _AS_ABLATIONS
    ]
    return rows
