"""Command lines, settings and state files of any content get an answer, never a traceback."""

from __future__ import annotations

import contextlib
import io
import json
import math
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_run_helpers import api_dict

import amago
from amago import api
from amago.cli import main
from amago.config import Config, dotted, from_dict
from amago.saved import checkpoint

PATHS = sorted(dotted(amago.preset("t-maze")))
NUMBERS = st.sampled_from(
    ["0", "-1", "-0.5", "1e309", "nan", "inf", "-inf", "1e400", "9" * 30, "0.5", "3", "1_0", "0x1"]
)
VALUES = NUMBERS | st.sampled_from(
    ["", " ", "None", "True", "[]", "{}", "()", "'", "\x1b[2J", "a" * 5000, "--", "-", "ä", "1,2"]
)
QUICK = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


def run(*arguments: str) -> tuple[int, str]:
    """Exit code and errors of a command line that must neither hang nor fall over."""
    err = io.StringIO()
    with (
        contextlib.redirect_stderr(err),
        contextlib.redirect_stdout(io.StringIO()),
        pytest.raises(SystemExit) as end,
    ):
        main(arguments)
    code = end.value.code
    return code if isinstance(code, int) else int(code is not None), err.getvalue()


def numbers(value: Any) -> list[float]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return [number for item in value for number in numbers(item)]
    return [value] if isinstance(value, int | float) else []


@pytest.fixture(scope="module", autouse=True)
def _no_training() -> Any:
    """What would be trained is kept in place of being trained."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(api, "train", lambda config, *_, **__: ACCEPTED.append(config) or {})
        verb = sys.modules["amago.cli.train"]
        patch.setattr(verb, "run_to_the_end", lambda folder, work: len(work()))
        yield


ACCEPTED: list[Config] = []


@QUICK
@given(st.sampled_from(PATHS), VALUES)
def test_any_value_of_any_setting_is_taken_or_refused_in_one_sentence(
    path: str, value: str
) -> None:
    ACCEPTED.clear()
    code, err = run("train", "t-maze", "--" + path.replace("_", "-"), value)
    assert code in (0, 2) and "Traceback" not in err and "unexpected" not in err, err
    assert code == 2 or all(math.isfinite(number) for number in numbers(api_dict(ACCEPTED[0])))


@QUICK
@given(st.lists(VALUES | st.sampled_from(["train", "eval", "--seed", "--from", "."]), max_size=4))
def test_any_command_line_is_answered(arguments: list[str]) -> None:
    verb = ["train", "resume", "eval", "verify", "relabel", "presets", "import", "pack"]
    code, err = run(verb[len(str(arguments)) % len(verb)], *arguments)
    assert code in (0, 2) and "Traceback" not in err and "unexpected" not in err, err


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


@settings(QUICK, max_examples=150)
@given(st.sampled_from(PATHS), JSON)
def test_any_config_file_is_read_or_refused(path: str, value: Any) -> None:
    values: dict[str, Any] = json.loads(json.dumps(api_dict(amago.preset("t-maze"))))
    *parents, name = path.split(".")
    node = values
    for parent in parents:
        node = node[parent]
    node[name] = value
    try:
        config = from_dict(values)
    except ValueError as error:
        assert str(error)
    else:
        assert all(math.isfinite(number) for number in numbers(api_dict(config)))


STATE: dict[str, Any] = {
    "version": 1, "epoch": 3, "env_steps": 9, "updates": 4, "skipped": 0, "exploration_steps": 1.0,
    "episodes": [1, 2], "curriculum": {}, "window": [0, 3], "collected": None,
    "best_return": None, "best_epoch": None, "offsets": [10, 10], "seconds": 1.5,
}  # fmt: skip


_FREE = ("best_return", "curriculum")
"""Counters that may be negative, or anything."""


@settings(QUICK, max_examples=150)
@given(st.sampled_from(sorted(STATE)), JSON | st.just("gone"))
def test_any_state_file_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, name: str, value: Any
) -> None:
    folder: Path = tmp_path_factory.getbasetemp() / "000003"
    folder.mkdir(exist_ok=True)
    (folder / "state.json").write_text(json.dumps(STATE))
    assert checkpoint.read_state(folder) == STATE
    state = {**STATE, name: value}
    if value == "gone":
        del state[name]
    (folder / "state.json").write_text(json.dumps(state))
    try:
        found = checkpoint.read_state(folder)
    except ValueError as error:
        assert str(folder) in str(error)
    else:
        assert found.keys() | {"collected"} == STATE.keys()
        assert found["epoch"] == 3
        assert all(type(found[key]) is int for key in ("env_steps", "updates", "skipped"))
        assert all(math.isfinite(number) and number >= 0 for key in STATE
                   for number in numbers(found.get(key)) if key not in _FREE)  # fmt: skip
