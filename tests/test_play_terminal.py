"""`amago watch`: an agent in the terminal."""

from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console
from test_run_helpers import command

from amago.play.session import Session
from amago.play.shelf import Shelf
from amago.play.terminal import _blocks, _panel


def test_watching_plays_a_rollout_and_says_what_it_earned(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, err = command(capsys, "watch", "--speed", 10_000, "--seed", 7)
    assert code == 0, err
    assert "DarkKeyToDoor" in out and "step 100 of 100" in out
    assert "random play" in out and "oracle 28" in out


def test_a_picture_becomes_half_blocks() -> None:
    picture = np.zeros((8, 8, 3), np.uint8)
    picture[:4] = 255
    text = _blocks(picture, width=4)
    assert text.plain == "▀▀▀▀\n▀▀▀▀\n"
    assert [span.style for span in text.spans[:1]] == ["#ffffff on #ffffff"]
    assert [span.style for span in text.spans[-1:]] == ["#000000 on #000000"]


def test_the_panel_shows_policy_and_values() -> None:
    shelf = Shelf()
    session = Session(shelf.load("dark-key-to-door"), 1)
    session.step()
    console = Console(file=io.StringIO(), width=120)
    console.print(_panel(session))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    for part in ("left", "stay", "Q γ=0.98", "step 1 of 100", "return per tenth"):
        assert part in text


@pytest.mark.parametrize("flag", ["--speed=0", "--seed=-1"])
def test_speeds_and_seeds_are_checked(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = command(capsys, "watch", flag)
    assert code == 2 and "--speed must be more than 0" in err
