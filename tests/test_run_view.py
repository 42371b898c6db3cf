"""What a terminal shows while a run goes on."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console
from test_run_helpers import lines, tiny

import amago
from amago import api
from amago.training.view import _RARE_COLUMNS, COLUMNS, _lines_of_columns, _LiveView, _PlainView


def _screen(values: dict[str, float], width: int = 80) -> str:
    """The live view of one epoch, as a terminal of this width shows it."""
    console = Console(width=width, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    view = _LiveView(20, 3, console)
    view.epoch({"epoch": 3, **values}, {})
    console.print(view._render())
    return console.export_text()


@pytest.mark.parametrize("width", [40, 80, 200])
def test_nothing_is_cut_off_whatever_is_shown(width: int) -> None:
    columns = (*COLUMNS, *_RARE_COLUMNS)
    text = _screen({key: -1.234e-05 * 10**n for n, (_, key) in enumerate(columns)}, width)
    assert "…" not in text and all(len(line) <= width for line in text.splitlines())
    words = text.split()
    assert all(word in words for label, _ in columns for word in label.split())
    assert "-1.23e-05" in words


def test_only_what_is_known_has_a_column() -> None:
    text = _screen({"rollout/return_mean": 2.0, "updates_per_second": 9.7})
    assert "updates/s" in text and "success" not in text and "random" not in text
    assert _lines_of_columns({}, 80) == []
    assert _lines_of_columns({"a b": "1", "c": "22"}, 4) == [["a b"], ["c"]]


def test_random_play_stands_beside_every_later_epoch_also_of_a_resumed_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "plot_run", lambda *_: None)
    config = tiny("wind", {"run.epochs": 3, "run.eval_interval": 2, "run.report": False})
    run = amago.train(config, 0, tmp_path / "run", view=_PlainView(3))
    known = f"random play {lines(run.run_dir)[1]['random/return_mean']:.3g} |"
    first, second, third = capsys.readouterr().out.splitlines()[1:]
    assert "random" not in first and known in second and known in third
    run.resume(epochs="+1", view=_PlainView(4))
    assert known in capsys.readouterr().out
    assert ["random/return_mean" in row for row in lines(run.run_dir)] == [
        False,
        True,
        False,
        False,
    ]
