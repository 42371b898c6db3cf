"""What a run tells a spreadsheet, TensorBoard and W&B, and that a resume continues each."""

from __future__ import annotations

import csv
import importlib.util
import json
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_run_helpers import lines, tiny

from amago import api
from amago.training.logger import _JsonLines
from amago.training.trackers.table import CsvTracker
from amago.training.trackers.tracker import final_scores
from amago.training.trackers.wandb import WandbTracker

needs_tensorboard = pytest.mark.skipif(
    importlib.util.find_spec("tensorboard") is None, reason="TensorBoard is not installed"
)
needs_wandb = pytest.mark.skipif(
    importlib.util.find_spec("wandb") is None, reason="W&B is not installed"
)


@pytest.fixture(scope="module")
def tracked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A run that stopped after two epochs and went on to its third, with every tracker there is.

    Its W&B files are beside it.
    """
    base = tmp_path_factory.mktemp("tracked")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WANDB_MODE", "offline")
        patch.setenv("WANDB_DIR", str(base))
        patch.setenv("WANDB_SILENT", "true")
        patch.setattr("amago.evaluation.evaluate.oracle_records", lambda *_: None)
        project = "mine" if importlib.util.find_spec("wandb") else ""
        config = tiny("wind", {"run.epochs": 3, "run.wandb_project": project, "run.report": True})
        with pytest.raises(RuntimeError, match="power"):
            api.train(config, 0, base / "run", on_epoch=_fails_after(2), progress=False)
        api.resume(base / "run", trust=True, progress=False, set={"optim.learning_rate": 1e-5})
        yield base / "run"


def _fails_after(number: int) -> Any:
    def fail(epoch: Any) -> None:
        if epoch.number == number:
            raise RuntimeError("power is gone")

    return fail


def test_metrics_csv_has_the_numbers_of_metrics_jsonl(tracked: Path) -> None:
    with (tracked / "metrics.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    assert [row["epoch"] for row in table] == ["1", "2", "3"]
    for row, metrics in zip(table, lines(tracked), strict=True):
        for name, value in metrics.items():
            if isinstance(value, list):
                cells = [row[f"{name}/{number}"] for number in range(1, len(value) + 1)]
                assert list(map(float, cells)) == value
            else:
                assert float(row[name]) == value
    assert table[0]["loss/critic"] == "", "the first epoch only collects"


def test_a_column_that_comes_late_gets_its_place_in_every_row(tmp_path: Path) -> None:
    rows = _JsonLines(tmp_path / "metrics.jsonl")
    table = CsvTracker(tmp_path)
    for row in ({"epoch": 1}, {"epoch": 2, "x": [0.5, 1.5]}, {"epoch": 3}, {"epoch": 4, "y": 7}):
        rows.write(row)
        table.log(row, {})
    rows.close()
    text = "epoch,x/1,x/2,y\n1,,,\n2,0.5,1.5,\n3,,,\n4,,,7\n"
    assert (tmp_path / "metrics.csv").read_text() == text
    CsvTracker(tmp_path)  # a resumed run writes the same bytes
    assert (tmp_path / "metrics.csv").read_text() == text


def test_a_table_forgets_the_rows_that_its_metrics_lost(tmp_path: Path) -> None:
    (tmp_path / "metrics.csv").write_text("epoch\n1\n2\n")
    (tmp_path / "metrics.jsonl").write_text('{"epoch": 1}\n')
    CsvTracker(tmp_path)
    assert (tmp_path / "metrics.csv").read_text() == "epoch\n1\n"
    (tmp_path / "metrics.jsonl").write_text("")
    CsvTracker(tmp_path)
    assert not (tmp_path / "metrics.csv").exists()


@needs_tensorboard
def test_tensorboard_has_curves_pictures_and_hyperparameters_in_one_file(tracked: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

    (file,) = (tracked / "tensorboard").iterdir()
    events = EventAccumulator(str(file)).Reload()
    curve = [(event.step, event.value) for event in events.Scalars("rollout/return_mean")]
    told = [(row["env_steps"], row["rollout/return_mean"]) for row in lines(tracked)]
    assert curve == [(step, pytest.approx(value)) for step, value in told]
    assert events.Scalars("updates_per_second") and events.Scalars("final/return_mean")
    curves, film = (events.Images(name)[0].encoded_image_string for name in ("curves", "film"))
    assert curves == (tracked / "curves.png").read_bytes()
    assert film.startswith(b"GIF8")
    stored = events.PluginTagToContent("hparams")["_hparams_/session_start_info"]
    data = HParamsPluginData()
    data.ParseFromString(stored)
    values = data.session_start_info.hparams
    assert values["optim.learning_rate"].number_value == 1e-5
    assert values["env.id"].string_value == "amago/Wind-v0" and values["seed"].number_value == 0


@needs_wandb
def test_a_resume_continues_the_same_wandb_run(tracked: Path) -> None:
    state = json.loads((tracked / "wandb.json").read_text())
    first, second = _parts(tracked.parent, state["id"])
    assert state["epoch"] == 3
    rows = [row for part in (first, second) for row in _sent(part) if "rollout/return_mean" in row]
    told = [{k: v for k, v in row.items() if not isinstance(v, list)} for row in lines(tracked)]
    assert [row["_step"] for row in rows] == [2, 4, 6]
    assert [{key: row[key] for key in known} for row, known in zip(rows, told, strict=True)] == told


@needs_wandb
def test_wandb_has_config_curves_film_and_how_the_run_ended(tracked: Path) -> None:
    state = json.loads((tracked / "wandb.json").read_text())
    first, second = _parts(tracked.parent, state["id"])
    for part, rate in ((first, 3e-4), (second, 1e-5)):
        config = _config(part)
        assert config["seed"] == 0 and config["env"]["id"] == "amago/Wind-v0"
        assert (config["optim"]["learning_rate"] == 1e-5) == (rate == 1e-5)
    (curves,), (film,) = (second.rglob(pattern) for pattern in ("curves_*.png", "film_*.gif"))
    assert curves.stat().st_size and film.read_bytes().startswith(b"GIF8")
    last = _sent(second)[-1]
    assert last["epoch"] == 3 and last["film"]["path"].endswith(film.name)
    exits = [
        [r.exit.exit_code for r in _records(part) if r.HasField("exit")] for part in (first, second)
    ]
    assert exits == [[1], [0]]


@needs_wandb
def test_a_complete_run_that_is_trained_on_stays_one_wandb_run(
    tracked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = tracked.parent  # W&B reads its folder once in a process
    for name, value in (("MODE", "offline"), ("DIR", str(base)), ("SILENT", "true")):
        monkeypatch.setenv(f"WANDB_{name}", value)
    config = tiny("wind", {"run.wandb_project": "mine", "run.report": True})
    run = api.train(config, 0, tmp_path / "run", progress=False)
    api.resume(run.run_dir, epochs="+1", trust=True, progress=False)
    state = json.loads((run.run_dir / "wandb.json").read_text())
    first, second = _parts(base, state["id"])
    assert state["epoch"] == 3
    rows = [row for part in (first, second) for row in _sent(part)]
    # Two epochs, the pictures of the first end, the third epoch, the pictures of the second end.
    assert [row["_step"] for row in rows] == [2, 4, 5, 6, 7]
    assert all("path" in rows[index]["film"] for index in (2, 4))


@needs_wandb
def test_going_back_to_an_earlier_epoch_begins_another_wandb_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import wandb

    started: list[Any] = []

    class Sent:
        def __init__(self, **arguments: Any) -> None:
            self.id, self.epochs, self.summary = arguments["id"], [], {}
            started.append(self)

        def log(self, row: dict[str, Any], **_: Any) -> None:
            self.epochs.append(row["epoch"])

        def define_metric(self, *_: Any, **__: Any) -> None: ...

    monkeypatch.setattr(wandb, "init", Sent)
    config = tiny("wind", {"run.wandb_project": "mine"})
    _write_run(tmp_path, config, epochs=2)
    WandbTracker(tmp_path, config)
    _write_run(tmp_path, config, epochs=1)  # what a killed run finds at its checkpoint
    again = WandbTracker(tmp_path, config)
    again.log({"epoch": 2}, {})
    again.log({"epoch": 3}, {})
    WandbTracker(tmp_path, config, exact=False)
    assert [run.epochs for run in started] == [[1, 2], [3], [1]]
    assert started[0].id == started[1].id != started[2].id


@needs_wandb
def test_wandb_that_does_not_start_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import wandb

    told: list[Exception] = [
        wandb.errors.UsageError("No API key configured."),
        ValueError("WANDB_MODE\n  should be 'online' or 'offline'"),
    ]

    def refuse(**_: Any) -> None:
        raise told.pop(0)

    monkeypatch.setattr(wandb, "init", refuse)
    config = tiny("wind", {"run.wandb_project": "mine"})
    _write_run(tmp_path, config, epochs=0)
    for said in ("No API key", "WANDB_MODE should be 'online'"):
        with pytest.raises(
            ValueError, match=rf"{said}.*check the name.*wandb login.*WANDB_MODE=off"
        ):
            WandbTracker(tmp_path, config)


def test_the_scores_of_a_result_are_sent_and_its_counts_are_not() -> None:
    result = {"seed": 3, "greedy": False, "return_mean": 2.0, "pooled": {"return_error": 0.5}}
    assert final_scores(result) == {"final/return_mean": 2.0, "final/pooled_return_error": 0.5}


def _write_run(folder: Path, config: Any, epochs: int) -> None:
    from amago.saved.header import write_header

    write_header(folder, config, 0, "wind", {})
    for name in ("metrics", "timing"):
        rows = "".join(f'{{"epoch": {epoch}}}\n' for epoch in range(1, epochs + 1))
        (folder / f"{name}.jsonl").write_text(rows)


def _parts(base: Path, name: str) -> list[Path]:
    """What W&B stored of one run offline, one folder per session of amago."""
    return sorted((base / "wandb").glob(f"offline-run-*-{name}"))


def _records(part: Path) -> list[Any]:
    """All records of an offline W&B file; a process of W&B writes the last one a little later."""
    (file,) = part.glob("run-*.wandb")
    deadline = time.monotonic() + 30
    while True:
        found = _read(file.read_bytes())
        if any(record.HasField("exit") for record in found) or time.monotonic() > deadline:
            return found
        time.sleep(0.1)


def _read(data: bytes) -> list[Any]:
    """What an offline W&B file holds: pieces of records in blocks, each with a small head."""
    from wandb.proto.wandb_internal_pb2 import Record

    at, piece, found = 7, b"", []
    block, whole, last = 32768, 1, 4
    while at + 7 <= len(data):
        left = block - at % block
        if left < 7:
            at += left
            continue
        _, size, kind = struct.unpack_from("<IHB", data, at)
        if at + 7 + size > len(data):  # not all of it is written yet
            break
        piece += data[at + 7 : at + 7 + size]
        at += 7 + size
        if kind in (whole, last):
            found.append(Record.FromString(piece))
            piece = b""
    return found


def _sent(part: Path) -> list[dict[str, Any]]:
    rows = []
    for record in _records(part):
        row: dict[str, Any] = {}
        for item in record.history.item if record.HasField("history") else ():
            *parents, name = item.nested_key or [item.key]
            node = row
            for parent in parents:
                node = node.setdefault(parent, {})
            node[name] = json.loads(item.value_json)
        rows += [row] if row else []
    return rows


def _config(part: Path) -> dict[str, Any]:
    run = next(record.run for record in _records(part) if record.HasField("run"))
    return {item.key: json.loads(item.value_json) for item in run.config.update}
