"""report.html: what it shows, that it stands alone, and that it never costs a run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from test_report_helpers import write_run
from test_run_helpers import command, tiny

import amago
from amago.envs.catalogue import changed_settings, preset
from amago.report.page import Shown, report_page
from amago.report.runs import read_run
from amago.report.svg import Line, chart


def _trained(folder: Path, overrides: dict[str, Any] | None = None) -> str:
    settings = {"run.report": True, "env.kwargs": {"grid": 3, "trial_limit": 4, "horizon": 12}}
    amago.train(tiny("dark-key-to-door", {**settings, **(overrides or {})}), 0, folder,
                preset="dark-key-to-door")  # fmt: skip
    return (folder / "report.html").read_text(encoding="utf-8")


def _stands_alone(page: str) -> bool:
    sources = re.findall(r'(?:src|href)="([^"]{0,20})', page)
    return "<script" not in page and all(source.startswith("data:image/") for source in sources)


def test_a_finished_run_has_a_report_that_stands_alone(tmp_path: Path, capsys: Any) -> None:
    page = _trained(tmp_path / "run")
    assert _stands_alone(page)
    for name in ("Scores", "Film", "Learning", "Adaptation", "Attention", "random play", "oracle"):
        assert name in page
    assert page.count("data:image/gif;base64,") == page.count("data:image/png;base64,") == 1
    assert "env.kwargs.grid" in page and "run.epochs" in page and "env.id" not in page
    assert "Return per trial in the film: " in page
    (tmp_path / "run" / "report.html").unlink()
    code, out, _ = command(capsys, "report", tmp_path / "run")
    assert code == 0 and "report.html" in out
    assert (tmp_path / "run" / "report.html").read_text(encoding="utf-8") == page


def test_the_report_can_be_left_out(tmp_path: Path) -> None:
    amago.train(tiny("dark-key-to-door"), 0, tmp_path / "run")
    assert not (tmp_path / "run" / "report.html").exists()


class Blind(gym.Env[Any, Any]):
    """Cannot be drawn."""

    observation_space = gym.spaces.Box(0.0, 1.0, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)
    horizon = 4

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.time = 0
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.time += 1
        return np.zeros(2, np.float32), float(action), self.time == self.horizon, False, {}


def test_an_environment_that_cannot_be_drawn_costs_the_film_alone(tmp_path: Path) -> None:
    config = tiny("gym", {"run.report": True, "memory": "gru"})
    amago.train(config, 0, tmp_path / "run", env=Blind)
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "No film: " in page and "only a Transformer has attention" in page
    assert "return per rollout" in page and "return per tenth" not in page
    assert "<h1>Blind, seed 0</h1>" in page
    # Without the class, what is in the folder is still shown.
    assert "Nothing was played: " in amago.api.report(tmp_path / "run").read_text(encoding="utf-8")


def test_text_of_a_folder_is_escaped(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", preset="<b>x")
    result = json.loads((folder / "result.json").read_text())
    evil = "<img src=x onerror=1>"
    result["reference_scores"][evil] = {"return_mean": 1.0, "success_rate": None}
    (folder / "result.json").write_text(json.dumps(result))
    shown = Shown(film_note=evil, attention_note=evil)
    page = report_page(read_run(folder), {evil: (evil, evil)}, shown)
    assert evil not in page and "<b>x" not in page and _stands_alone(page)


def test_an_unfinished_run_has_a_report_without_scores(tmp_path: Path) -> None:
    page = report_page(read_run(write_run(tmp_path / "run", complete=False)), {}, Shown())
    assert "The run is not complete" in page and "polyline" in page


def test_changed_settings_name_both_values_and_arguments_one_by_one() -> None:
    config = amago.override(preset("wind"), {"env.kwargs.horizon": 9, "run.threads": 3})
    assert changed_settings(config, "wind") == {"env.kwargs.horizon": (9, None)}
    assert "env.id" in changed_settings(config, "")


def test_a_chart_spans_its_values_and_says_what_they_are() -> None:
    lines = {"agent": Line([(0, 0.0), (1500, 7.0), (2000, float("nan"))], "agent")}
    drawn = chart(lines, "steps", "return")
    assert "<polyline" in drawn and "1.5k" in drawn and "nan" not in drawn
    assert chart({"agent": Line([], "agent")}, "steps", "return") == ""
    heights = [float(y) for _, y in re.findall(r"([\d.]+),([\d.]+)", drawn)]
    assert heights[0] > heights[1], "more is higher"


@pytest.mark.parametrize("value", [0.0, -3.0, 1e9])
def test_a_flat_line_is_drawn(value: float) -> None:
    assert "<polyline" in chart({"a": Line([(0, value), (1, value)], "agent")}, "x", "y")
