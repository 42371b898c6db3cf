"""Before a run begins, and between its parts: nothing exits, hangs or swallows in silence."""

from __future__ import annotations

import logging
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from test_trust_disk import _command, _fails
from test_trust_envs import Faulty, play

import amago
from amago.check.before import check_before_training
from amago.check.environment import examine
from amago.envs.faults import EnvFaultError
from amago.envs.registry import make_vector
from amago.envs.settings import EnvSettings
from amago.evaluation.play import PlaySettings
from amago.evaluation.pooled import pool
from amago.report.tables import number
from amago.stopping import Terminated


@pytest.mark.parametrize(
    ("fault", "told"), [("exit", "SystemExit: 3"), ("hang", "did not answer for 1 seconds")]
)
def test_an_environment_that_exits_or_hangs_is_told_before_training(
    fault: str, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "amago"):
        check_before_training(partial(Faulty, fault), 0, timeout=1.0)
    assert told in caplog.text
    if fault == "hang":
        assert "is silent for" in caplog.text and "Faulty, world seed 0, step 3" in caplog.text


def test_a_constructor_that_exits_or_hangs_is_an_error(caplog: pytest.LogCaptureFixture) -> None:
    def exits() -> Any:
        sys.exit(4)

    def hangs() -> Any:
        import time

        time.sleep(60)

    with pytest.raises(ValueError, match="got SystemExit: 4 while it was made"):
        amago.check_env(exits)
    with pytest.raises(ValueError, match="got TimeoutError: it did not answer for 1 seconds"):
        check_before_training(hangs, 0, timeout=1.0)


class Stopped(Faulty):
    """SIGTERM arrives in the middle of a step, or of a reset."""

    def _go_wrong(self, result: list[Any]) -> list[Any]:
        raise Terminated


if "Stopped-v0" not in gym.registry:
    gym.register("Stopped-v0", Stopped, order_enforce=False)


def test_a_signal_during_a_step_is_no_fault_of_the_environment() -> None:
    settings = EnvSettings(id="Stopped-v0", on_error="restart")
    with pytest.raises(Terminated) as stop:
        play(make_vector(settings, seed=0, num_lanes=2))
    assert stop.value.code == 143
    with pytest.raises(Terminated):
        examine(Stopped, 20)


def test_a_text_as_flag_is_an_error_behind_every_wrapper() -> None:
    for more in ({"horizon": 20}, {"trials": 2}):
        settings = EnvSettings(id="Faulty-v0", kwargs={"fault": "text as flag"}, **more)  # type: ignore[arg-type]
        with pytest.raises(EnvFaultError, match=r"expected True or False .* got 'False'"):
            play(make_vector(settings, seed=0, num_lanes=1))


class Speechless(Faulty):
    """Raises an error whose words cannot be made."""

    def _go_wrong(self, result: list[Any]) -> list[Any]:
        class WithoutWords(Exception):  # noqa: N818
            def __str__(self) -> str:
                raise RuntimeError("no words")

        raise WithoutWords


if "Speechless-v0" not in gym.registry:
    gym.register("Speechless-v0", Speechless, order_enforce=False)


def test_an_error_without_words_has_its_place() -> None:
    with pytest.raises(EnvFaultError, match=r"WithoutWords: its text cannot be made.* step 3"):
        play(make_vector(EnvSettings(id="Speechless-v0"), seed=0, num_lanes=1))
    assert any("WithoutWords" in problem.what for problem in examine(Speechless, 20).problems)


def test_an_evaluation_without_end_is_refused() -> None:
    for episodes in (0, -1, 10**20):
        with pytest.raises(ValueError, match=r"an evaluation (needs at least|takes at most)"):
            PlaySettings(episodes=episodes)


def test_returns_without_end_can_be_pooled_and_shown() -> None:
    rows = [{"eval/return_mean": mean, "eval/return_std": 0.0} for mean in (np.inf, 1.0, -np.inf)]
    for last in (1, 2, 3):
        test = {"return_mean": 1.0, "return_std": 0.0, "success_rate": None, "episodes": 1}
        found = pool(rows[:last], test)
        assert not np.isfinite(found["return_mean"]) and np.isnan(found["return_error"])
        assert number(found["return_mean"]) in ("inf", "nan")


def _as_nobody_in(folder: Path) -> None:
    os.chdir(folder)
    _command("resume", "/nonexistent", user=65534)


def test_a_working_folder_that_may_not_be_read_is_no_matter(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    if os.getuid():
        pytest.skip("needs root to give up privileges")
    private = tmp_path / "private" / "inner"
    private.mkdir(parents=True)
    private.parent.chmod(0o700)
    assert "is not a run" in _fails(capfd, _as_nobody_in, private)
