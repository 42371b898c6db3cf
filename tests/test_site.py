"""The site, the model cards, the notebook and the examples that come with the package."""

from __future__ import annotations

import importlib
import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from test_run_helpers import command

ROOT = Path(__file__).parents[1]
EXAMPLES: Any = importlib.import_module("amago.cli.examples")  # the package has its function


def _script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / "site" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_site_is_built_without_a_broken_link(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "site" / "build.py", tmp_path / "site"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    site = tmp_path / "site"
    texts = {name: (site / name).read_text(encoding="utf-8") for name in (
        "index.html", "docs/tutorial.html", "docs/api.html", "docs/zoo.html",
        "results/index.html", "docs/concepts.html",
    )}  # fmt: skip
    assert "dark-key-to-door.gif" in texts["index.html"]
    assert (site / "docs" / "images" / "dark-key-to-door.gif").is_file()
    assert "Train an agent" in texts["docs/api.html"], "docstrings are in the reference"
    for name, page in texts.items():
        loaded = re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="(https?:[^"]+)"', page)
        assert not loaded, f"{name} loads {loaded} from elsewhere"


def test_a_broken_link_ends_the_build(tmp_path: Path) -> None:
    build = _script("build")
    build.gather(tmp_path / "pages")
    (tmp_path / "pages" / "docs" / "start.md").write_text("# Start\n\n[gone](page.md)\n")
    assert build.build(tmp_path / "pages", tmp_path / "site") != 0


def test_readme_and_cards_say_what_the_agents_files_say() -> None:
    cards = _script("cards")
    hint = "the zoo has changed: run `make cards`"
    assert (ROOT / "docs" / "zoo.md").read_text(encoding="utf-8") == cards.cards_page(), hint
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    block = text.partition(cards.BEGIN)[2].partition(cards.END)[0]
    assert cards.printed() in block, hint
    assert re.search(r"world 0: return \S+, random play \S+, oracle \S+", block)


def test_the_readme_is_short_and_opens_with_a_small_film() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    prose = re.sub(
        r"```.*?```|<!-- (?:claims|board).*?end of (?:claims|board) -->", "", text, flags=re.DOTALL
    )
    assert 350 <= len(prose.split()) <= 600
    film = ROOT / "docs" / "images" / "dark-key-to-door.gif"
    assert film.stat().st_size < 1.5e6 and text.index("[gif]") < text.index("## ")


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.ipynb")), ids=lambda p: p.stem)
def test_notebooks_run_from_top_to_bottom(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    notebook = nbformat.read(path, as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells), "stored without outputs"
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": tmp_path}}).execute()
    shown = [kind for cell in notebook.cells for out in cell.get("outputs", ())
             for kind in out.get("data", ())]  # fmt: skip
    assert "image/gif" in shown and "image/png" in shown
    (trained,) = (cell for cell in notebook.cells if "amago.train(" in cell.source)
    (progress,) = (out for out in trained.outputs if out.output_type == "display_data")
    page = progress["data"]["text/html"]
    assert '<progress value="4" max="4">' in page and "complete" in page, "kept up to date"
    assert "<th>eval return</th>" in page and "\x1b" not in page
    printed = "".join(out.text for out in trained.outputs if out.output_type == "stream")
    assert len(printed.splitlines()) < 10, printed


def test_examples_are_listed_printed_and_copied(tmp_path: Path, capsys: Any) -> None:
    code, out, _ = command(capsys, "examples")
    assert code == 0 and "custom_env" in out and "notebook: A trained agent" in out
    code, out, _ = command(capsys, "examples", "plain_loop")
    assert code == 0 and out.rstrip() == (ROOT / "examples/plain_loop.py").read_text().rstrip()
    code, out, _ = command(capsys, "examples", "--copy", tmp_path / "mine")
    names = {path.name for path in (ROOT / "examples").iterdir() if path.is_file()}
    assert code == 0 and {path.name for path in (tmp_path / "mine").iterdir()} == names
    code, _, err = command(capsys, "examples", "custom_env", "--copy", tmp_path / "mine")
    assert code == 2 and "exists already" in err
    code, _, err = command(capsys, "examples", "custom_envs")
    assert code == 2 and "custom_env" in err and "`amago examples` lists them all" in err


def test_an_installation_without_examples_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(EXAMPLES, "__file__", str(tmp_path / "amago" / "cli" / "examples.py"))
    monkeypatch.setattr(EXAMPLES.importlib.metadata, "files", lambda _: [])
    code, _, err = command(capsys, "examples")
    assert code == 2 and "install it again from a checkout or wheel" in err


def test_the_wheel_will_hold_every_example() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = project["tool"]["setuptools"]["data-files"][EXAMPLES._FOLDER]
    packed = {path for pattern in patterns for path in ROOT.glob(pattern)}
    assert packed == {path for path in (ROOT / "examples").iterdir() if path.is_file()}
    assert project["project"]["authors"] == [{"name": "amago contributors"}]
