"""What a run that goes on may change of its settings, and what it remembers of that."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from amago.config import MACHINE_SETTINGS, Config, differences, override
from amago.saved.header import go_on_command

_FIXED = re.compile(
    r"(env\.(id|ids|num_lanes)|encoder\..*|instruction\..*|memory|transformer\.(?!dropout$).*"
    r"|heads\.(?!popart_rate$|probability_floor$).*|run\.start_from"
    r"|agent\.(discounts|acting_discount|sequence_models))"
)
"""Settings that a checkpoint's weights, discounts and lanes depend on."""
_AFTERWARDS = {"run.epochs", *MACHINE_SETTINGS}
"""Settings that may change once a run is finished: tests, pictures and a control use them."""
_EPOCHS = re.compile(r"\+?[0-9]{1,9}")


def changed(
    folder: Path, config: Config, changes: Mapping[str, Any], epochs: int | str | None = None
) -> Config:
    """A run's settings with some replaced; `epochs` is their number in all, or "+50" more."""
    settings = {key.replace("-", "_"): value for key, value in changes.items()}
    if epochs is not None:
        settings["run.epochs"] = _in_all(epochs, config.run.epochs)
    new = override(config, settings)
    for key in differences(config, new):
        if _FIXED.fullmatch(key):
            raise ValueError(
                f"{key} of {folder} cannot be changed: its checkpoint depends on it; train a new "
                f"run, whose weights may come from this one: --run.start-from {folder}"
            )
    return new


def remembered(header: dict[str, Any], old: Config, new: Config, epoch: int) -> dict[str, Any]:
    """A run's header with one more entry in its list of changes, if there are any."""
    found = differences(old, new)
    if not found:
        return header
    when = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
    entry = {"epoch": epoch, "when": when, "settings": found}
    return {**header, "changes": [*header.get("changes", []), entry]}


def check_goes_on(folder: Path, epoch: int, old: Config, new: Config) -> None:
    """ValueError if nothing is left to train for settings that were changed."""
    more = f"`{go_on_command(folder, '+50')}` trains on"
    if epoch > new.run.epochs:
        raise ValueError(
            f"{folder} has trained {epoch} epochs, more than --epochs {new.run.epochs}; {more}, "
            f"--from EPOCH goes back to an earlier checkpoint"
        )
    if epoch == new.run.epochs and differences(old, new).keys() - _AFTERWARDS:
        raise ValueError(
            f"{folder} is finished after {epoch} epochs, so other settings would change nothing; "
            "add --epochs +50 to train on with them"
        )


def _in_all(epochs: int | str, planned: int) -> int:
    text = str(epochs)
    if not _EPOCHS.fullmatch(text):
        raise ValueError(
            f"--epochs takes a number of epochs in all, such as 200, or more of them, such as "
            f"+50, got {text!r}"
        )
    return planned + int(text) if text.startswith("+") else int(text)
