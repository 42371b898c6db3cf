"""`amago examples`."""

from __future__ import annotations

import ast
import importlib.metadata
import json
import shutil
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from amago.checks import did_you_mean
from amago.cli.parsing import parse

_COLUMNS = 80
_FOLDER = "share/amago/examples"
"""Where pip puts them (pyproject.toml, data-files)."""


@dataclass(frozen=True)
class ExamplesOptions:
    """List the example programs that come with amago, print one, or copy them."""

    name: tyro.conf.Positional[str | None] = None
    """An example; without one, all are meant."""
    copy: Path | None = None
    """Copy to this folder instead of printing; nothing is overwritten."""


def examples(arguments: Sequence[str]) -> int:
    options = parse(ExamplesOptions, arguments, "amago examples")
    known = {path.stem: path for path in _paths()}
    if options.name is not None and options.name not in known:
        hint = did_you_mean(options.name, known)
        raise ValueError(
            f"no example is called {options.name!r}; {hint}`amago examples` lists them all"
        )
    chosen = known if options.name is None else {options.name: known[options.name]}
    if options.copy is not None:
        for path in chosen.values():
            print(_copied(path, options.copy))
    elif options.name is not None:
        print(chosen[options.name].read_text(encoding="utf-8"), end="")
    else:
        width = max(map(len, known))
        for name, path in known.items():
            listed = f"{name:<{width}}  {_first_line(path)}"
            print(textwrap.fill(listed, _COLUMNS, subsequent_indent=" " * (width + 2)))
        print("`amago examples NAME` prints one, `--copy DIR` copies one or all.")
    return 0


def _paths() -> list[Path]:
    """In a checkout its folder; otherwise what pip has installed."""
    checkout = Path(__file__).parents[2]
    if (checkout / "pyproject.toml").is_file() and (checkout / "examples").is_dir():
        found = [path for path in (checkout / "examples").iterdir() if path.is_file()]
    else:
        listed = importlib.metadata.files("amago") or ()
        found = [Path(str(file.locate())).resolve() for file in listed if _FOLDER in str(file)]
    programs = sorted(path for path in found if path.suffix in (".py", ".ipynb"))
    if not programs:
        raise ValueError(
            "this installation of amago has no examples; install it again from a checkout or wheel"
        )
    return programs


def _first_line(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        return f"notebook: {''.join(json.loads(text)['cells'][0]['source']).splitlines()[0][2:]}"
    return (ast.get_docstring(ast.parse(text)) or "").splitlines()[0]


def _copied(path: Path, folder: Path) -> Path:
    place = folder / path.name
    if place.exists():
        raise ValueError(f"{place} exists already; choose another folder or remove it")
    folder.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copyfile(path, place))
