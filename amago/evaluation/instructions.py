"""Success per instruction, as in the tables of a paper."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from amago.envs.settings import EnvSettings
from amago.evaluation.play import PlaySettings, check_fits, make_lanes, play
from amago.rollout.random_policy import RandomPolicy
from amago.rollout.scores import summarise
from amago.types import EnvSpec, Policy

_AS_DRAWN = "(as drawn)"


def success_per_instruction(
    policy: Policy,
    trained: EnvSpec,
    env: EnvSettings,
    settings: PlaySettings,
    instructions: Sequence[str],
) -> list[dict[str, Any]]:
    """How often the policy and random play complete each instruction, and their returns.

    The last row is of the instructions that the environment itself draws. All rows meet the
    same worlds.
    """
    rows = []
    for instruction in (*instructions, ""):
        asked = replace(settings, instruction=instruction)
        row: dict[str, Any] = {"instruction": instruction or _AS_DRAWN}
        for name in ("success", "random"):
            # Each in lanes of its own: what one achieves may change what lanes ask for later.
            with contextlib.closing(make_lanes(env, asked)) as lanes:
                check_fits(trained, lanes.spec)
                random = RandomPolicy(lanes.spec, settings.action_seed)
                player = policy if name == "success" else random
                scores = summarise(play(player, lanes, settings.episodes))
            row[name] = scores["success_rate"]
            row[f"{name}_return"] = scores["return_mean"]
        rows.append(row)
    return rows
