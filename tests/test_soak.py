"""What a soak calls growth, and where its table goes; the soak itself takes an hour."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
SAMPLES = 60


@pytest.fixture(scope="module")
def soak() -> ModuleType:
    spec = importlib.util.spec_from_file_location("soak", ROOT / "benchmarks" / "soak.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules["soak"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def _samples(soak: ModuleType, **late: float) -> list[Any]:
    """Looks at a run that stays as it is, but for some factors in its last third."""
    samples, steps = [], 0.0
    for number in range(SAMPLES):
        factors = late if number >= SAMPLES - SAMPLES // 3 else {}
        steps += 100.0 * factors.get("speed", 1.0)
        samples.append(soak.Sample(
            5.0 * number, 250.0 * factors.get("memory", 1.0), int(10 * factors.get("handles", 1)),
            3, 7, 2 + int(factors.get("checkpoints", 0)), 1.5 * factors.get("replay", 1.0),
            4 * number, round(steps), 2.0 * number, 0.01 * factors.get("fixed", 1.0),
        ))  # fmt: skip
    return samples


def test_a_run_that_stays_as_it_is_does_not_grow(soak: ModuleType) -> None:
    assert soak.growing({"flat": _samples(soak)}) == []
    assert soak.compare(_samples(soak))[soak.SPEED] == pytest.approx((50, 50))
    assert soak.growing({"faster": _samples(soak, speed=1.5)}) == []


@pytest.mark.parametrize(
    ("what", "factor"),
    [("memory", 1.2), ("handles", 1.5), ("checkpoints", 2), ("replay", 1.2), ("speed", 0.85)],
)
def test_growth_and_slowness_are_found(what: str, factor: float, soak: ModuleType) -> None:
    (found,) = soak.growing({"run": _samples(soak, **{what: factor})})
    assert (what if what != "speed" else soak.RELATIVE) in found


def test_a_machine_that_slows_everything_is_no_slower_run(soak: ModuleType) -> None:
    assert soak.growing({"busy": _samples(soak, speed=0.55, fixed=1.8)}) == []


def test_a_run_without_epochs_is_not_called_flat(soak: ModuleType) -> None:
    from dataclasses import replace

    still = [replace(sample, env_steps=3) for sample in _samples(soak)]
    assert any(soak.RELATIVE in line for line in soak.growing({"still": still}))


def test_the_page_has_a_place_for_the_table(soak: ModuleType, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text((ROOT / "docs" / "reliability.md").read_text())
    table = soak.table({"relabeling": _samples(soak)})
    soak.write(page, table)
    assert f"{soak.MARKS[0]}\n{table}\n{soak.MARKS[1]}" in page.read_text()
    page.write_text("nothing here")
    with pytest.raises(ValueError, match="no place"):
        soak.write(page, table)
