"""What probes count: doors, goals and answers, checked against the environments themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_reproduce_helpers import write_arms

from amago.envs.registry import make_vector
from amago.envs.settings import EnvSettings
from amago.evaluation.play import play
from amago.reproduce import views
from amago.reproduce.claims.claim import read_claim
from amago.reproduce.claims.holds import verdicts
from amago.reproduce.entry import Experiment
from amago.reproduce.measures import MEASURES
from amago.reproduce.published import authors_scores
from amago.reproduce.registry import entries
from amago.rollout.random_policy import RandomPolicy
from amago.rollout.stats import RolloutRecord, Trial
from amago.types import Step

BESIDE = {
    name: entry
    for name, entry in entries().items()
    if isinstance(entry, Experiment) and entry.view == "beside"
}


def _played(episodes: int, watchers: Any = (), **env: Any) -> tuple[list[RolloutRecord], Any]:
    lanes = make_vector(EnvSettings(**env), seed=3, num_lanes=8)
    return play(RandomPolicy(lanes.spec, 0), lanes, episodes, watchers=watchers), lanes


def test_doors_are_counted_as_the_environment_opens_them() -> None:
    opened: list[int] = []
    lanes = make_vector(
        EnvSettings(id="amago/DarkKeyToDoor-v0", kwargs={"grid": 2, "horizon": 700}),
        seed=3, num_lanes=4,
    )  # fmt: skip

    def watch(step: Step) -> None:
        opened.append(int(lanes.task.opened.sum()))

    records = play(RandomPolicy(lanes.spec, 0), lanes, 4, watchers=[watch])
    assert sum(opened) > 100, "a room of four cells"
    # The first of the watched steps is the first row, in which nothing was opened yet.
    assert MEASURES["doors"](records) == pytest.approx(sum(opened) / 4)
    # Ends of the 500 steps may cut a trial in each of the lanes.
    assert MEASURES["last-doors"](records) == pytest.approx(sum(opened[-500:]) / 4, abs=1.0)
    assert MEASURES["first-doors"](records) == pytest.approx(sum(opened[:501]) / 4, abs=1.0)


def test_goals_and_answers_are_shares() -> None:
    records, _ = _played(
        24, id="amago/MazeRunner-v0", kwargs={"size": 7, "horizon": 200, "min_goals": 3}
    )
    share = MEASURES["goals"](records)
    assert share == pytest.approx(np.mean([record.total for record in records]) / 3)
    assert share is not None and 0.1 < share < 1.0
    assert MEASURES["success"](records) == np.mean([record.success for record in records])
    world: dict[str, Any] = {"task": "x", "lane": 0, "length": 10, "success": None, "blocks": None}
    halves = [RolloutRecord(total=total, world_seed=0, **world) for total in (-1.0, 1.0, 0.5)]
    assert MEASURES["answers"](halves) == pytest.approx((0.0 + 1.0 + 0.75) / 3)
    cut = RolloutRecord(total=3.0, world_seed=0, trials=(Trial(4, 2.0, True), Trial(10, 1.0, True)),
                        **world)  # fmt: skip
    assert MEASURES["doors"]([cut]) == 1.0, "a trial that the end cuts off has its key alone"


def test_random_play_answers_few_queries() -> None:
    records, _ = _played(8, id="popgym/CountRecallMedium")
    share = MEASURES["answers"](records)
    assert share is not None and 0.0 < share < 0.15, "one of 27 answers is right"


@pytest.mark.parametrize("name", BESIDE)
def test_an_entry_beside_the_authors_code_asks_what_they_measured(name: str) -> None:
    entry = BESIDE[name]
    asked = [probe.name for probe in entry.probes if probe.name in authors_scores()]
    assert asked and all(probe.measure in MEASURES for probe in entry.probes)
    for probe in entry.probes:
        assert probe.episodes == 256
        if probe.name in authors_scores():
            assert probe.greedy is True
            best = authors_scores()[probe.name]["full"].value
            assert any(
                said.startswith(f"{probe.name} of full >= ") and float(said.split(">= ")[1]) == best
                for said in entry.holds
            )
    assert "env_steps of full <= 800000" in entry.holds


def test_their_numbers_and_ours_stand_in_one_table(tmp_path: Any) -> None:
    experiment = BESIDE["beside-dark-key-to-door"]
    folder = write_arms(experiment, tmp_path, seeds=2)
    claim = read_claim(folder)
    table = views.table(claim)
    assert "| doors | full | 0.905 (0.900 0.910) | 0.050 | 27.4 [25.0, 29.9] |" in table
    assert "| last-doors | best of that study | – | – | 46.0 |" in table
    said = " ".join(table.split())
    assert "8,000,000 environment steps" in said and "RSM-ICLR" in said
    states = {verdict.statement: verdict.state for verdict in verdicts(claim)}
    assert states["doors of full >= 27.4"] == "fails"
    assert states["env_steps of full <= 800000"] == "open", "these runs have no such count"
