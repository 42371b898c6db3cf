"""The registry: every figure has an entry, and every entry can be run, drawn and judged."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_reproduce_helpers import write_arms
from test_run_helpers import command

from amago.envs.domains.crafter.spec import goal_spec
from amago.envs.domains.popgym import ALL_IDS
from amago.reproduce import views
from amago.reproduce.claims.claim import read_claim
from amago.reproduce.claims.holds import _check_statement
from amago.reproduce.claims.probes import split_goals
from amago.reproduce.claims.tables import claim_page
from amago.reproduce.entry import Experiment, Leaderboard, Measurement, Named, Probe, Variant
from amago.reproduce.plan import command as command_line
from amago.reproduce.plan import missing_presets, planned, resolve
from amago.reproduce.published import crafter_scores, popgym_data_scores, popgym_scores
from amago.reproduce.registry import by_folder, choose, entries

EXPERIMENTS = {name: e for name, e in entries().items() if isinstance(e, Experiment)}
ROOT = Path(__file__).parents[1]


def test_every_figure_and_table_of_the_paper_has_an_entry() -> None:
    named = " ".join(entry.paper for entry in entries().values())
    figures = {int(number) for number in re.findall(r"Figure (\d+)", named)}
    tables = {int(number) for number in re.findall(r"Table (\d+)", named)}
    assert figures == set(range(1, 30)) and tables == {1, 2, 3, 4}
    first = [name for name in entries() if name in ("agent", "popgym", "crafter-goals")]
    assert first == ["agent", "popgym", "crafter-goals"], "in the order of the paper"


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_settings_of_every_arm_exist(name: str) -> None:
    experiment = EXPERIMENTS[name]
    for scale in ("cpu", "paper"):
        assert not missing_presets(experiment, scale)
        for arm in experiment.arms:
            preset = experiment.preset_of(arm, scale)
            config = resolve(preset, experiment.settings_of(arm, scale))
            assert preset.endswith("/paper") == (scale == "paper")
            assert config.run.epochs > 1
    folders = [arm.folder for arm in experiment.arms]
    assert len(folders) == len(set(folders)) and all(
        re.fullmatch(r"[a-z0-9-]+", f) for f in folders
    )


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_entry_speaks_of_its_own_arms_and_of_views_that_exist(name: str) -> None:
    experiment = EXPERIMENTS[name]
    names = [arm.name for arm in experiment.arms]
    assert experiment.holds and experiment.caveats and experiment.view in views._view_names()
    for statement in experiment.holds:
        _check_statement(statement, names)
    assert not experiment.control or experiment.control in names
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+){2,}", experiment.claim)
    spec = goal_spec(expanded=False)
    for probe in experiment.probes:
        for text in probe.instructions:
            assert len(spec.instruction(text)) == len(split_goals(text))


def test_claims_have_folders_of_their_own() -> None:
    claims = [e.claim for e in entries().values() if isinstance(e, Experiment | Measurement)]
    assert len(claims) == len(set(claims))
    found = by_folder("package-delivery-needs-memory-hindsight-and-discounts-at-paper-scale")
    assert found is not None and (found[0], found[2]) == ("package-delivery", "paper")
    assert by_folder("no-such-claim") is None


def test_what_is_shown_elsewhere_is_there() -> None:
    for entry in entries().values():
        if isinstance(entry, Named) and not entry.where.startswith("`"):
            assert (ROOT / entry.where).is_file(), entry.where
    assert isinstance(entries()["leaderboard"], Leaderboard)


def test_a_statement_about_an_arm_that_does_not_exist_is_a_clear_error() -> None:
    with pytest.raises(ValueError, match="speaks of 'no mermory'; there are full, no memory"):
        _check_statement("full > no mermory", ["full", "no memory"])
    with pytest.raises(ValueError, match="expected a statement such as"):
        _check_statement("full is better", ["full"])


def test_an_unknown_name_is_an_error_that_helps(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = command(capsys, "reproduce", "package-delivry")
    assert code == 2 and "did you mean package-delivery" in err
    assert "`amago reproduce --list` shows them all" in err
    assert list(choose(["wind"])) == ["wind"] and choose([]) == entries()


def test_runs_with_the_same_settings_are_shared_and_baselines_have_their_verb(
    tmp_path: Path,
) -> None:
    folders = [
        {run.job.run_dir for run in planned(EXPERIMENTS[name], "cpu", [0], tmp_path)}
        for name in ("popgym", "popgym-memories")
    ]
    assert folders[1] < folders[0], "the second figure needs no runs of its own"
    (baseline,) = [
        run.job
        for run in planned(EXPERIMENTS["rewired-maze"], "cpu", [3], tmp_path)
        if run.arm.baseline
    ]
    line = command_line(baseline, "start")
    assert line[2:6] == ["amago", "baseline", "recurrent-ppo", "maze-runner"]
    assert line[line.index("--seed") + 1] == "3" and "--baseline" not in line
    assert "overwrite" in command_line(baseline, "resume") and "overwrite" not in line


def test_budgets_are_settings_of_the_cpu_scale_alone() -> None:
    arm = Variant("full", set=("run.epochs=7",))
    experiment = Experiment(
        "Figure 0", "a-b-c", "?", "return", "wind", (arm,), epochs=5, minutes=2,
        on_cpu=("env.num_lanes=4",), set=("env.kwargs.horizon=30",),
    )  # fmt: skip
    settings = experiment.settings_of(arm, "cpu")
    assert set(settings) == {
        "env.kwargs.horizon=30", "run.epochs=7", "run.max_minutes=2", "env.num_lanes=4",
    }  # fmt: skip
    assert set(experiment.settings_of(arm, "paper")) == {"env.kwargs.horizon=30", "run.epochs=7"}


def test_published_numbers_cover_popgym_and_name_their_sources() -> None:
    known = {*popgym_scores(), *popgym_data_scores()}
    ids = {name.removeprefix("popgym/").lower() for name in ALL_IDS}
    assert ids <= known, ids - known
    assert popgym_scores()["repeatpreviousmedium"] == {"gru": -0.315, "best": 0.789}
    assert crafter_scores()["no relabeling"]["wake up"] == pytest.approx(0.045)
    for path in (ROOT / "amago" / "reproduce" / "published").glob("*.csv"):
        assert path.read_text(encoding="utf-8").startswith("# "), path


def _one_per_view() -> Iterator[str]:
    seen = set()
    for name, experiment in EXPERIMENTS.items():
        if experiment.view not in seen:
            seen.add(experiment.view)
            yield name


@pytest.mark.parametrize("name", list(_one_per_view()))
def test_the_page_of_a_claim_has_its_verdict_its_tables_and_its_arms(
    name: str, tmp_path: Path
) -> None:
    experiment = EXPERIMENTS[name]
    claim = read_claim(write_arms(experiment, tmp_path, experiment.arms[:3]))
    page = claim_page(claim)
    assert f"# {experiment.question}" in page and f"amago reproduce {name}" in page
    ours = experiment.paper.startswith("the ")
    assert f"For comparison: {experiment.paper}{'' if ours else ' of the paper'}." in page
    for arm in claim.arms:
        assert f"{arm.name} (earlier settings, commit `c0ffee`)" in page
    assert "Holds: " in page or "Does not hold" in page or "Not known yet" in page
    assert len(views.table(claim)) > 20 or experiment.view in ("curves", "losses", "discounts")


def test_probes_are_told_apart_by_their_folder(tmp_path: Path) -> None:
    (run, *_) = planned(EXPERIMENTS["wind"], "cpu", [0], tmp_path)
    job = run.probe(Probe("held-out"))
    assert job.run_dir.parent == run.job.run_dir.parent
    assert job.run_dir.name == "seed-0--held-out"
