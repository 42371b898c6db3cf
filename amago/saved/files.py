"""Writing that a crash cannot leave half-done."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from amago.checks import printable
from amago.disk import sync_path


def write_json(path: Path, value: Any) -> None:
    """Replace a JSON file as a whole."""
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text(json.dumps(value, indent=1) + "\n")
    sync_path(temporary)
    temporary.replace(path)
    sync_path(path.parent)


def read_json(path: Path) -> Any:
    """The value in a JSON file; control characters in its texts are spelled out."""
    try:
        return plain(json.loads(path.read_text()))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not valid JSON ({error}); restore it from a copy") from error


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a file of JSON lines that is complete."""
    with path.open("rb") as file:
        return [json.loads(line) for line in file]


def count_rows(path: Path) -> int:
    """How many lines a file of JSON lines has; none where there is no file."""
    return path.read_bytes().count(b"\n") if path.is_file() else 0


def plain(value: Any) -> Any:
    """The same value with texts that can be printed, whoever wrote them."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {printable(key): plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


def empty_folder(folder: Path, *, remove: bool) -> None:
    """Remove what is in a folder, and the folder itself if asked; links are not followed."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    if remove:
        folder.rmdir()
