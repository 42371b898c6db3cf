"""config.json, the header of a run folder: what was asked for, by which code."""

from __future__ import annotations

import datetime
import importlib.metadata
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from amago.config import Config, from_dict, to_dict
from amago.saved.files import read_json, write_json
from amago.saved.trust import check_files, trust_flag

CONTROL = "control"
"""The folder, inside that of a run, of the same training without memory."""
NO_MEMORY = "no memory"
"""What results, tables and curves call the control."""


def write_header(
    folder: Path,
    config: Config,
    seed: int,
    preset: str,
    custom: Mapping[str, str],
    baseline: Mapping[str, Any] | None = None,
) -> None:
    """`custom` names the user's own classes, which a run folder does not hold; `baseline` is the
    method of a run that is not amago's own, with its settings."""
    header = {
        "version": importlib.metadata.version("amago"),
        "preset": preset,
        "seed": seed,
        "config": to_dict(config),
        "custom": dict(custom),
        "git_commit": git_commit(),
        "created": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        **({} if baseline is None else {"baseline": dict(baseline)}),
    }
    write_json(folder / "config.json", header)


def rewrite_header(folder: Path, header: dict[str, Any], config: Config) -> None:
    """Give a run other settings."""
    write_json(folder / "config.json", {**header, "config": to_dict(config)})


def read_header(folder: Path) -> dict[str, Any]:
    """config.json of a run folder."""
    path = folder / "config.json"
    if not path.exists():
        raise ValueError(
            f"{folder} is not a run: it has no config.json (was it moved or removed?); "
            "runs are made by `amago train`"
        )
    check_files(folder)
    header: dict[str, Any] = read_json(path)
    whole = isinstance(header, dict) and {"config", "seed"} <= set(header)
    seed, custom = (header["seed"], header.get("custom", {})) if whole else (None, None)
    if type(seed) is not int or seed < 0 or not isinstance(custom, dict):
        raise ValueError(
            f"{path} is not the header of a run: expected an object with config and a seed; "
            "restore it from a copy"
        )
    return header


def go_on_command(folder: Path, epochs: str = "") -> str:
    """The command that continues a run, or the call where it needs a user's own classes."""
    if folder.name == CONTROL and (folder.parent / "config.json").is_file():
        folder = folder.parent  # which takes its control along
    header = read_header(folder)
    custom = header.get("custom", {})
    if custom:
        given = "".join(f", {name}={value}" for name, value in custom.items())
        more = f', epochs="{epochs}"' if epochs else ""
        return f'amago.resume("{folder}"{given}{more})'
    more = f" --epochs {epochs}" if epochs else ""
    return f"amago resume {folder}{more}{trust_flag(from_dict(header['config']))}"


def read_config(folder: Path) -> Config:
    """The settings of a run folder."""
    return from_dict(read_header(folder)["config"])


def keeps_weights(header: dict[str, Any]) -> bool:
    """Whether a run has checkpoints: a baseline of another library may have numbers alone."""
    baseline = header.get("baseline")
    return not isinstance(baseline, dict) or bool(baseline.get("keeps_weights"))


def lacks_control(folder: Path) -> bool:
    """Whether a run with a result asks for a control that the result does not have."""
    header = folder / "config.json"
    match read_json(header) if header.is_file() else None:
        case {"config": {"run": {"control": True}}, **rest} if not rest.get("baseline"):
            scores = read_json(folder / "result.json").get("reference_scores", {})
            return NO_MEMORY not in scores
    return False


def check_kept(folder: Path | str, header: dict[str, Any]) -> None:
    """A baseline of another library keeps its numbers; it can neither act nor go on."""
    if not keeps_weights(header):
        method = header["baseline"].get("method")
        raise ValueError(
            f"{folder} is a run of the baseline {method}, which keeps its numbers "
            "and no weights; repeat it with --exist overwrite"
        )


def check_custom(folder: Path | str, header: dict[str, Any], given: Mapping[str, str]) -> None:
    """A run made with a user's own classes needs them again; it never imports them itself."""
    missing = sorted(set(header.get("custom", {})) - set(given))
    if missing:
        wanted = ", ".join(f"{key}={header['custom'][key]}" for key in missing)
        raise ValueError(
            f"{folder} was trained with its own classes ({wanted}); name its environment again "
            "with --env module:Class, or pass all of them from Python: "
            f"amago.resume(run_dir, {wanted}) or amago.load(run_dir, {wanted})"
        )


def git_commit() -> str | None:
    """The commit of the code that runs, if it runs from a checkout."""
    source = Path(__file__).resolve().parent
    command = ["git", "-C", str(source), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)
    except OSError:
        return None
    return done.stdout.strip() or None
