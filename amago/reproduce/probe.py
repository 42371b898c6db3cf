"""One evaluation after training: python -m amago.reproduce.probe RUN PROBE FOLDER.

PROBE is a Probe as JSON. Writes result.json into the folder: one row of scores per checkpoint and
instruction.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from amago.config import Config, literal, override
from amago.envs.settings import EnvSettings
from amago.evaluation.instructions import success_per_instruction
from amago.evaluation.play import PlaySettings, check_fits, make_lanes, make_policy, play
from amago.process import prepare_process
from amago.reproduce.entry import Probe
from amago.reproduce.measures import MEASURES
from amago.rollout.random_policy import RandomPolicy
from amago.rollout.scores import success_by_length, summarise
from amago.saved import kept
from amago.saved.files import write_json
from amago.saved.header import read_header
from amago.saved.source import Source, find_source
from amago.seeding import derive
from amago.sweep.jobs import parse_overrides

_KEPT = "kept"


def _run_probe(run: Path, probe: Probe) -> dict[str, Any]:
    """The scores of every checkpoint that the probe asks for."""
    rows = []
    seed = int(read_header(run)["seed"])
    for source in _sources(run, probe.which):
        config = source.config
        env = _changed(config, probe.set)
        settings = PlaySettings(
            episodes=probe.episodes,
            num_lanes=probe.lanes or config.env.eval_lanes,
            world_seed=derive(seed, f"probe {probe.name}"),
            action_seed=derive(seed, f"acting in probe {probe.name}"),
            greedy=config.agent.greedy if probe.greedy is None else probe.greedy,
        )
        epoch = int(source.path.name)
        scores = _scores(source, env, settings, probe)
        rows += [{"epoch": epoch, **row} for row in scores]
    return {"probe": probe.name, "episodes": probe.episodes, "rows": rows}


def _scores(
    source: Source, env: EnvSettings, settings: PlaySettings, probe: Probe
) -> list[dict[str, Any]]:
    agent = source.build().eval()
    if probe.instructions:
        policy = make_policy(agent, settings)
        return success_per_instruction(policy, agent.spec, env, settings, probe.instructions)
    policy, random = make_policy(agent, settings), RandomPolicy(agent.spec, settings.action_seed)
    with contextlib.closing(make_lanes(env, settings)) as lanes:
        check_fits(agent.spec, lanes.spec)
        curriculum, measure = lanes.curriculum, MEASURES[probe.measure]
        records = play(policy, lanes, settings.episodes)
        lanes.curriculum = curriculum  # both meet the same worlds
        others = play(random, lanes, settings.episodes)
    result = summarise(records)
    row = {"success": result["success_rate"], "success_return": result["return_mean"]}
    row |= {"score": measure(records), "random_score": measure(others)}
    by_length = success_by_length(records)
    return [{**row, "by_length": by_length} if by_length else row]


def _sources(run: Path, which: str) -> Iterator[Source]:
    if which != _KEPT:
        yield find_source(run, which)
        return
    for path in reversed(kept.kept(run / "checkpoints")):
        yield find_source(run, str(int(path.name)))


def _changed(config: Config, assignments: tuple[str, ...]) -> EnvSettings:
    changes = {key: literal(value) for key, value in parse_overrides(assignments).items()}
    return override(config, changes).env


def main(run: str, probe: str, folder: str) -> None:
    prepare_process(1)
    fields: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in json.loads(probe).items()
    }
    result = _run_probe(Path(run), Probe(**fields))
    Path(folder).mkdir(parents=True, exist_ok=True)
    write_json(Path(folder) / "result.json", result)


if __name__ == "__main__":
    main(*sys.argv[1:])
