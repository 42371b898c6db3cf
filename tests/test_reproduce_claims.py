"""Claims: read from their folders, rendered into pages that cannot drift from the data."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from claim_numbers import unsupported
from matplotlib.image import imread
from test_report_helpers import write_run

import amago
from amago.baselines.catalogue import METHODS
from amago.config import Config, from_dict, override, to_dict
from amago.envs.catalogue import changed_settings
from amago.report.runs import read_run
from amago.reproduce.claims.claim import find_claims, made_today, read_claim, repeatable
from amago.reproduce.claims.export import export
from amago.reproduce.claims.holds import verdicts
from amago.reproduce.claims.pages import _CLAIMS, _pages, _replaced, write_all, write_indexes
from amago.reproduce.claims.tables import _claim_table, claim_page, index_table

RESULTS = Path(__file__).parents[1] / "results"
LARGEST_PICTURE = 100_000
CLAIM = """
question = "Does memory help?"
answer = "Yes."
metric = "return"
measure = "return"
control = "no memory"
command = '''
amago sweep wind
'''
caveats = ["One room."]

[[arms]]
name = "full"
folder = "full"

[[arms]]
name = "no memory"
folder = "no-memory"
"""


def _claim(folder: Path, text: str = CLAIM) -> Path:
    for seed, level in enumerate((2.0, 4.0)):
        write_run(folder / "data" / "full" / f"seed-{seed}", seed=seed, level=level)
    write_run(folder / "data" / "no-memory" / "seed-0", level=0.5)
    (folder / "claim.toml").write_text(text)
    return folder


def _commit(run: Path, commit: str | None) -> None:
    header = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps({**header, "git_commit": commit}))


def test_every_page_of_results_says_what_its_data_say() -> None:
    stale = [
        str(path.relative_to(RESULTS.parent))
        for path, text in _pages(RESULTS).items()
        if not path.is_file() or path.read_text(encoding="utf-8") != text
    ]
    assert not stale, f"run `make results` and commit: {', '.join(stale)}"


def test_no_number_in_an_answer_is_without_data() -> None:
    strange = {claim.name: unsupported(claim) for claim in find_claims(RESULTS)}
    assert not any(strange.values()), strange


def test_a_claim_that_does_not_hold_says_so_on_its_page_and_in_the_index() -> None:
    index = (RESULTS / "README.md").read_text(encoding="utf-8").splitlines()
    for claim in find_claims(RESULTS):
        rows = [row for row in index if row.startswith(f"| [{claim.name}]")]
        page = " ".join((claim.folder / "README.md").read_text(encoding="utf-8").split())
        failed = [verdict for verdict in verdicts(claim) if verdict.state == "fails"]
        for verdict in failed:
            assert f"**Does not hold**: {verdict.statement}" in page, claim.name
        assert rows and all(("does not hold" in row) == bool(failed) for row in rows), claim.name


def test_every_run_of_results_is_from_a_clean_commit() -> None:
    runs = [run for claim in find_claims(RESULTS) for arm in claim.arms for run in arm.runs]
    assert len(runs) > 100
    assert [str(run.path) for run in runs if not repeatable(run)] == []


def test_every_claim_has_a_small_picture_and_says_what_it_does_not_show() -> None:
    for claim in find_claims(RESULTS):
        picture = claim.folder / claim.picture
        assert picture.is_file() and picture.stat().st_size < LARGEST_PICTURE, picture
        assert claim.caveats and claim.command and claim.question.strip("?)")
        assert claim.answer or claim.holds or not claim.arms, claim.name
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+){2,}", claim.name), claim.name


def test_links_and_pictures_of_results_lead_to_files() -> None:
    for page in RESULTS.rglob("*.md"):
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).is_file(), f"{page}: {target}"


def test_a_table_has_the_final_window_first_then_the_maximum_and_all_seeds(tmp_path: Path) -> None:
    table = _claim_table(read_claim(_claim(tmp_path / "memory-helps")))
    header, _, full, control, random, oracle = table.splitlines()
    assert header == "| arm | return: final window | maximum | final test | minutes |"
    # Evaluations rise linearly; the window holds 80%, 90% and 100% of the level.
    mark = " (earlier settings, commit `c0ffee`)"
    assert full == f"| full{mark} | **2.70** (1.80 3.60) | 3.00 | 3.00 (2.00 4.00) | 2 |"
    assert control == f"| no memory{mark} | 0.450 | 0.500 | 0.500 | 2 |"
    assert random.startswith("| random play |") and oracle.startswith("| oracle |")


def test_runs_without_a_clean_commit_are_marked(tmp_path: Path) -> None:
    folder = _claim(tmp_path / "memory-helps")
    assert "†" not in claim_page(read_claim(folder))
    _commit(folder / "data" / "full" / "seed-1", "c0ffee-dirty")
    _commit(folder / "data" / "no-memory" / "seed-0", None)
    claim = read_claim(folder)
    assert [repeatable(run) for arm in claim.arms for run in arm.runs] == [True, False, False]
    page = claim_page(claim)
    assert "(1.80 3.60†)" in page and "0.450†" in page and "unknown†" in page
    assert "† cannot be repeated as is" in page


def test_the_index_leads_with_claims_that_can_be_repeated(tmp_path: Path) -> None:
    _commit(_claim(tmp_path / "a-claim") / "data" / "full" / "seed-0", None)
    _claim(tmp_path / "b-claim")
    rows = index_table(find_claims(tmp_path)).splitlines()[2:]
    assert rows[0] == (
        "| [b-claim](b-claim/README.md) | return | **2.70** (1.80 3.60) | 3.00 "
        "| no memory: 0.450 | 0.433 | `c0ffee`, earlier settings |"
    )
    assert "a-claim" in rows[1]
    second = _claim(tmp_path / "c-claim", CLAIM.replace("control", "order = 1\ncontrol"))
    rows = index_table(find_claims(tmp_path)).splitlines()[2:]
    assert second.name in rows[0]


def test_the_index_sorts_claims_by_the_age_of_their_settings(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("\n".join(_CLAIMS))
    old, new = _claim(tmp_path / "old-claim"), _claim(tmp_path / "new-claim")
    (new / "claim.toml").write_text(
        CLAIM.replace('folder = "no-memory"', 'folder = "no-memory"\nset = ["memory=feedforward"]')
    )
    for seed in (0, 1):
        _record(new / "data" / "full" / f"seed-{seed}", amago.preset("wind"))
    without = override(amago.preset("wind"), {"memory": "feedforward"})
    _record(new / "data" / "no-memory" / "seed-0", without)
    write_indexes(tmp_path)
    today, earlier = (tmp_path / "README.md").read_text().split("## Earlier settings")
    assert "## Today's settings" in today and "Without training" not in earlier
    assert new.name in today and new.name not in earlier
    assert old.name in earlier and old.name not in today


def _record(run: Path, config: Config) -> None:
    header = json.loads((run / "config.json").read_text())
    header |= {"preset": "wind", "config": to_dict(config)}
    (run / "config.json").write_text(json.dumps(header))


def test_settings_are_earlier_unless_todays_preset_and_the_arms_changes_give_them(
    tmp_path: Path,
) -> None:
    folder = _claim(tmp_path / "memory-helps")
    on_another_machine = override(amago.preset("wind"), {"run.threads": 7})
    for seed in (0, 1):
        _record(folder / "data" / "full" / f"seed-{seed}", on_another_machine)
    without = override(amago.preset("wind"), {"memory": "feedforward", "env.kwargs.horizon": 30})
    _record(folder / "data" / "no-memory" / "seed-0", without)
    assert [arm.earlier_settings for arm in read_claim(folder).arms] == [False, True]
    assert "Earlier settings" in claim_page(read_claim(folder))

    declared = 'folder = "no-memory"\nset = ["memory=feedforward", "env.kwargs.horizon=30"]'
    (folder / "claim.toml").write_text(CLAIM.replace('folder = "no-memory"', declared))
    claim = read_claim(folder)
    assert not claim.earlier_settings and "Earlier settings" not in claim_page(claim)
    assert index_table([claim]).endswith("| `c0ffee` |")

    other = override(amago.preset("wind"), {"optim.learning_rate": 0.5})
    _record(folder / "data" / "full" / "seed-1", other)
    assert [arm.earlier_settings for arm in read_claim(folder).arms] == [True, False]


def test_a_baseline_whose_own_settings_have_changed_is_marked(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", preset="wind")
    header = json.loads((run / "config.json").read_text())
    header["config"] = to_dict(override(amago.preset("wind"), {"env.num_lanes": 32}))
    today = asdict(METHODS["recurrent-ppo"].settings)

    def marked(**changes: Any) -> bool:
        baseline = {"method": "recurrent-ppo", "settings": {**today, **changes}}
        (run / "config.json").write_text(json.dumps({**header, "baseline": baseline}))
        return not made_today(read_run(run), ["baseline=recurrent-ppo"])

    assert not marked() and marked(entropy=0.5)


def test_every_row_whose_runs_todays_presets_would_not_give_is_marked() -> None:
    index = (RESULTS / "README.md").read_text().splitlines()
    for claim in find_claims(RESULTS):
        rows = [row for row in index if row.startswith(f"| [{claim.name}]")]
        page = (claim.folder / "README.md").read_text().splitlines()
        for arm in claim.arms:
            same = [_is_todays(run.preset, run.config, arm.settings) for run in arm.runs]
            commits = {run.git_commit[:7] for run in arm.runs if run.git_commit}
            marked = f" {arm.name} (earlier settings, commit "
            marks = [line for line in page if marked in line and all(c in line for c in commits)]
            said = bool(marks) and rows != [] and all("earlier settings" in row for row in rows)
            assert all(same) or said, f"{claim.name}: {arm.name}"


def _is_todays(preset: str, config: dict[str, Any], settings: Sequence[str]) -> bool:
    """Told without the code that marks rows."""
    if not _can_be_read(config):
        return False
    named = dict(text.partition("=")[::2] for text in settings)
    if "ablate" in named or "baseline" in named:  # names that stand for settings
        return True
    changed = changed_settings(from_dict(config), preset)
    # Some name what the preset has anyway.
    return set(changed) <= set(named)


def _can_be_read(config: dict[str, Any]) -> bool:
    try:
        from_dict(config)
    except ValueError:
        return False
    return True


def test_arms_of_several_tasks_get_a_panel_and_references_each(tmp_path: Path) -> None:
    text = CLAIM.replace('name = "full"', 'name = "full"\ntask = "easy"')
    text = text.replace('name = "no memory"', 'name = "full"\ntask = "hard"')
    folder = _claim(tmp_path / "results" / "both-work", text)
    rows = _claim_table(read_claim(folder)).splitlines()[2:]
    firsts = [row.split("|")[1].strip() for row in rows]
    assert firsts == ["easy", "", "", "hard", "", ""]
    write_all(tmp_path / "results")
    two = imread(folder / "picture.png").shape
    (folder / "claim.toml").write_text(CLAIM)
    write_all(tmp_path / "results")
    assert two[1] > imread(folder / "picture.png").shape[1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('metric = "return"', 'metric = "score"'), "metric is one of"),
        (("answer = ", "awnser = "), "unknown keys: awnser; missing keys: answer"),
        (('folder = "no-memory"', 'folder = "full"'), "names no arm.*no-memory"),
        (('folder = "full"', 'folder = "all"'), "expected runs in .*all"),
    ],
)
def test_a_claim_that_does_not_fit_its_data_is_a_clear_error(
    change: tuple[str, str], message: str, tmp_path: Path
) -> None:
    folder = _claim(tmp_path / "memory-helps", CLAIM.replace(*change))
    with pytest.raises(ValueError, match=message):
        read_claim(folder)


def test_a_folder_without_claim_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"claim\.toml.*question"):
        read_claim(tmp_path)
    with pytest.raises(ValueError, match="found none"):
        find_claims(tmp_path)
    with pytest.raises(ValueError, match="one is missing"):
        _replaced("no marker", "table")


def _sweep(root: Path) -> Path:
    for seed in (0, 1):
        write_run(root / "wind" / f"seed-{seed}", preset="wind", seed=seed, level=2.0 + seed)
    return root


def test_an_export_holds_the_evidence_and_no_weights(tmp_path: Path) -> None:
    root = _sweep(tmp_path / "sweep")
    (root / "wind" / "seed-0" / "checkpoints").mkdir()
    (root / "wind" / "seed-0" / "checkpoints" / "latest.safetensors").write_bytes(b"0" * 1000)
    with pytest.raises(ValueError, match=r"command\.txt"):
        export(root, tmp_path / "claim")
    target = export(root, tmp_path / "claim", command="amago sweep wind")
    names = {path.name for path in target.rglob("*") if path.is_file()}
    assert names == {
        "claim.toml", "README.md", "picture.png", "config.json", "result.json", "evals.csv",
        "pace.json",
    }  # fmt: skip
    claim = read_claim(target)
    assert claim.command == "amago sweep wind" and claim.metric.label == "success"
    before, after = read_run(root / "wind" / "seed-1"), claim.arms[0].runs[1]
    assert len(after.evaluations) == len(before.evaluations) == 10
    assert after.evaluations[-1]["eval/return_mean"] == 3.0


def test_a_later_export_keeps_what_was_written_and_adds_new_arms(tmp_path: Path) -> None:
    root = _sweep(tmp_path / "sweep")
    target = export(root, tmp_path / "claim", command="amago sweep wind")
    path = target / "claim.toml"
    path.write_text(path.read_text().replace('name = "wind"', 'name = "full"'))
    write_run(root / "wind__memory=gru" / "seed-0", preset="wind")
    export(root, target, command="ignored")
    claim = read_claim(target)
    assert [arm.name for arm in claim.arms] == ["full", "wind, memory=gru"]
    assert claim.command == "amago sweep wind"
