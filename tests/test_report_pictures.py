"""Every kind of picture: all text lies inside of it, and no two texts overlap."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox
from rich.console import Console
from test_goals_helpers import record_script
from test_report_helpers import write_run
from test_reproduce_helpers import write_arms

from amago.goals import GoalSpec
from amago.replay.describe import GoalChoice
from amago.replay.relabel import Choice, _relabeled
from amago.report.attention import Attention, caption, plot_attention
from amago.report.curves import plot_run, plot_sweep
from amago.report.memory import memory_tables, plot_memory
from amago.report.relabeling import plot_choices, plot_relabel
from amago.report.runs import find_runs, read_run
from amago.report.suites import _plot_suite, _suite_rows
from amago.reproduce import views
from amago.reproduce.claims.claim import find_claims, read_claim
from amago.reproduce.registry import entries

matplotlib.use("Agg")
RESULTS = Path(__file__).parents[1] / "results"
CLAIMS = [claim for claim in find_claims(RESULTS) if claim.drawn]
SLACK = 1.0
"""Pixels that anti-aliasing may take."""

Drawn = list[tuple[str, Bbox]]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], tuple[Figure, Drawn]]]:
    """The last figure that was saved, and the texts that are really drawn on it."""
    figures: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: figures.append(figure))
    monkeypatch.setattr("amago.reproduce.views.figure.save_small", lambda f, _: figures.append(f))

    def read() -> tuple[Figure, Drawn]:
        canvas, texts = FigureCanvasAgg(figures[-1]), []
        draw = Text.draw

        def record(text: Text, renderer: object, *args: object, **kwargs: object) -> None:
            draw(text, renderer, *args, **kwargs)  # type: ignore[arg-type]
            if text.get_text().strip() and text.get_visible():
                texts.append((text.get_text(), text.get_window_extent(renderer)))  # type: ignore[arg-type]

        canvas.draw()  # the layout settles at the first drawing
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Text, "draw", record)
            canvas.draw()
        return figures[-1], texts

    yield read


def _memory_report() -> dict[str, Any]:
    def point(rows: int) -> dict[str, Any]:
        scores = {"return_mean": 0.1 * rows, "return_error": 0.1, "success_rate": 0.5}
        return {"rows": rows, **scores, "lost": 1.0, "lost_error": 0.1}

    shares = dict.fromkeys(("this row", "rollout start", "trial starts", "rewards", "other"), 0.2)
    head = {"half_within": 128, "most_within": 512, "share": shares, "even": shares}
    arm = {"mean": 12.5, "error": 2.0}
    arms = ("same, kept", "same, wiped", "changed, kept", "changed, wiped")
    return {
        "attention": {"rollouts": 4, "heads": [{"layer": 1, "head": 1, **head}], "mean": head},
        "recall": {"points": [point(2**n) for n in range(11)], "whole": point(2000),
                   "left_out": [], "needed": 64},
        "change": {"what": "new key and door, same room", "time": 250, "worlds": 16,
                   "arms": dict.fromkeys(arms, arm), "misled": arm},
    }  # fmt: skip


def test_the_picture_of_a_memory_report_is_readable(
    drawn: Callable[[], tuple[Figure, Drawn]], tmp_path: Path
) -> None:
    plot_memory(_memory_report(), tmp_path / "memory.png", "amago/DarkKeyToDoor-v0: transformer")
    figure, texts = drawn()
    assert [axes.get_xlabel() for axes in figure.axes] == [
        "share, mean of all heads", "n, rows that memory keeps", "world after that step",
    ]  # fmt: skip
    titles = [axes.get_title().split("\n")[-1] for axes in figure.axes]
    assert titles[1:] == ["no clear loss from 64 rows on", "A fact made false at step 250"]
    _assert_readable(figure, texts)


def test_the_tables_of_a_memory_report_fit_a_narrow_terminal() -> None:
    console = Console(width=80, record=True, file=io.StringIO())
    for part in memory_tables(_memory_report()):
        console.print(part, highlight=False, markup=False)
    text = console.export_text()
    assert "…" not in text and max(map(len, text.splitlines())) <= 80
    for said in (
        "looked at most for",
        "up to 64 rows back",
        "false memories mislead",
        "1024",
        "all",
    ):
        assert said in text


def _assert_readable(figure: Figure, texts: Drawn) -> None:
    assert len(texts) > 5
    width, height = figure.bbox.width, figure.bbox.height
    for text, box in texts:
        inside = box.x0 > -SLACK and box.y0 > -SLACK
        inside = inside and box.x1 < width + SLACK and box.y1 < height + SLACK
        assert inside, f"{text!r} is cut off: {box} in {width}×{height}"
    for (one, first), (other, second) in combinations(texts, 2):
        common = Bbox.intersection(first, second)
        apart = common is None or min(common.width, common.height) <= SLACK
        assert apart, f"{one!r} and {other!r} overlap"


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.name)
def test_the_picture_of_a_claim_is_readable_and_has_one_legend(claim, drawn) -> None:  # type: ignore[no-untyped-def]
    views.draw(claim, Path("unused.png"))
    figure, texts = drawn()
    _assert_readable(figure, texts)
    assert len(figure.legends) == 1 and all(axes.get_legend() is None for axes in figure.axes)


@pytest.mark.parametrize("name", [
    "popgym", "half-cheetah-velocity", "metaworld", "crafter-tasks", "popart", "value-by-discount",
    "stable-block", "crafter-plans", "crafter-lengths",
])  # fmt: skip
def test_the_picture_of_every_kind_of_figure_is_readable(name, tmp_path, drawn) -> None:  # type: ignore[no-untyped-def]
    experiment = entries()[name]
    arms = experiment.arms[:2] if name == "popart" else experiment.arms  # its tasks look alike
    claim = read_claim(write_arms(experiment, tmp_path, arms, seeds=1))
    views.draw(claim, tmp_path / "picture.png")
    figure, texts = drawn()
    _assert_readable(figure, texts)
    assert len(figure.legends) == 1 and all(axes.get_legend() is None for axes in figure.axes)


@pytest.mark.parametrize("settings", [0, 3, 7])
def test_the_picture_of_a_sweep_is_readable(settings: int, tmp_path: Path, drawn) -> None:  # type: ignore[no-untyped-def]
    for seed in (0, 1):
        write_run(tmp_path / "dark-key-to-door" / f"seed-{seed}", seed=seed)
    long = "".join(f"__stage.setting_{index}=1" for index in range(settings))
    write_run(tmp_path / f"wind{long}" / "seed-0", preset="wind", success=False)
    plot_sweep(find_runs(tmp_path), tmp_path / "summary.png")
    _assert_readable(*drawn())


@pytest.mark.parametrize("success", [True, False])
def test_the_picture_of_a_run_is_readable(success: bool, tmp_path: Path, drawn) -> None:  # type: ignore[no-untyped-def]
    plot_run(read_run(write_run(tmp_path / "run", success=success)), tmp_path / "curves.png")
    _assert_readable(*drawn())


def test_the_picture_of_a_suite_is_readable(tmp_path: Path, drawn) -> None:  # type: ignore[no-untyped-def]
    for name in ("RepeatPreviousEasy", "PositionOnlyCartPoleHard", "MultiarmedBanditMedium"):
        for memory in ("", "__memory=gru"):
            folder = tmp_path / f"popgym__env.id={name}{memory}" / "seed-0"
            write_run(folder, preset="popgym", level=0.5)
    _plot_suite(_suite_rows(find_runs(tmp_path)), tmp_path / "suite.png")
    _assert_readable(*drawn())


def test_the_picture_of_attention_is_readable(tmp_path: Path, drawn) -> None:  # type: ignore[no-untyped-def]
    weights = np.tril(np.ones((4, 30, 30))) / 30
    happened = {"trial starts": [10], "rewards": [5, 20], "goals": [7]}
    attention = Attention([weights, weights], [np.ones(4), np.ones(4)], happened)
    plot_attention(attention, tmp_path / "attention.png")
    _assert_readable(*drawn())


def test_the_head_that_attends_to_events_is_shown_and_the_caption_says_how_much() -> None:
    even = np.tril(np.ones((10, 10)))
    even /= even.sum(1, keepdims=True)
    looking = even.copy()
    looking[6:], looking[6:, 5] = 0.0, 1.0  # from row 6 on, all attention goes to row 5
    quiet, layers = (
        [np.ones(2), np.array([1.0, 0.5])],
        [np.stack([even, even]), np.stack([even, looking])],
    )
    attention = Attention(layers, quiet, {"rewards": [5]})
    assert attention.telling_head == (1, 1)
    assert attention.share(looking)[0] == 1.0
    assert attention.share(even)[0] == pytest.approx(attention.share(even)[1])
    assert "Layer 2, head 2 (framed) gives 100%" in caption(attention)
    assert "times as much as even attention" in caption(attention)
    assert "no more than even" in caption(Attention([layers[0]], [quiet[0]], {"rewards": [5]}))
    nothing = Attention(layers, quiet, {})
    assert nothing.telling_head == (1, 1) and "No event is marked" in caption(nothing)


def test_the_pictures_of_relabeling_are_readable(tmp_path: Path, drawn) -> None:  # type: ignore[no-untyped-def]
    letters = GoalSpec(3, 1, "token", vocabulary=("", *"abcdefghij"))
    script = [[], *([[ord(c) - 96] for c in row] for row in ("c", "a", "", "b", "d", ""))]
    before = record_script(letters, script, "a, j")
    choice = Choice(np.array([4]), letters.read("b"))
    after = _relabeled(before, letters.read("a, b"))
    plot_relabel(before, after, letters, tmp_path / "relabel.png", choice)
    _assert_readable(*drawn())
    plot_choices([GoalChoice("a", 2, 0.3, 0.1), GoalChoice("b", 900, 0.1, 0.2)], tmp_path / "x.png")
    _assert_readable(*drawn())


def test_text_that_is_cut_off_or_overlaps_is_found(drawn) -> None:  # type: ignore[no-untyped-def]
    for x, y in ((0.5, 0.5), (0.97, 0.2)):
        figure = Figure(figsize=(4, 3))
        for place in ((0.1, 0.9), (0.5, 0.9), (0.1, 0.1), (0.5, 0.1), (0.45, 0.5), (x, y)):
            figure.text(*place, "some words")
        figure.savefig("unused.png")
        with pytest.raises(AssertionError, match="overlap" if x == 0.5 else "cut off"):
            _assert_readable(*drawn())
