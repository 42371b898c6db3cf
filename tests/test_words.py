"""The prose of the repository: line length, links, plain words, and a tree that is true."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

import amago
from amago.baselines.catalogue import METHODS
from amago.config import dotted

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    path for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("results/**/*.md"))
)
SOURCES = sorted(
    path
    for folder in ("amago", "tests", "examples", "benchmarks")
    for path in (ROOT / folder).rglob("*.py")
)
ELSEWHERE = ("https://github.com/UT-Austin-RPL/amago",)
"""The only links that leave the repository."""
WIDTH = 100
BANNED = {
    "step size": "learning rate",
    "not kept": "deleted, or leave the number out",
    "told apart": "separate, isolate",
    "of now": "current",
    "resume is resume": "resuming is exact",
    "it ended so": "result:",
    "if anybody knows": "if known",
    "to and fro": "back and forth",
    "what made the difference": "we did not isolate the cause",
    "just reached": "met narrowly",
    "takes something back": "overrides",
    "begin anew": "start from scratch",
}
"""Words that readers stumbled over, and what to write instead."""


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_lines_are_short(page: Path) -> None:
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        table = line.lstrip().startswith("|")
        assert table or len(line) <= WIDTH, f"{_name(page)}:{number} has {len(line)} characters"


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_words_are_those_of_the_field(page: Path) -> None:
    _check_words(page)


def test_words_in_code_and_claims_are_those_of_the_field() -> None:
    for path in (*SOURCES, *sorted((ROOT / "results").glob("*/claim.toml"))):
        if path != Path(__file__):
            _check_words(path)


def _check_words(page: Path) -> None:
    text = " ".join(page.read_text(encoding="utf-8").lower().split())
    found = [f"{word!r}: write {better!r}" for word, better in BANNED.items() if word in text]
    assert not found, f"{_name(page)}: {'; '.join(found)}"


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_lead_to_files_of_the_repository(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        if target in ELSEWHERE:
            continue
        linked = (page.parent / target).resolve()
        assert linked.exists() and linked.is_relative_to(ROOT), f"{_name(page)}: {target}"


def test_sources_cite_only_documents_of_the_repository() -> None:
    known = {page.name for page in PAGES}
    for path in SOURCES:
        cited = re.findall(r"\b([\w-]+\.md)\b", path.read_text(encoding="utf-8"))
        missing = sorted({name for name in cited if name not in known} - {"page.md"})
        assert not missing, f"{_name(path)} cites {missing}"


def test_every_page_of_the_docs_is_in_their_index() -> None:
    for index in (ROOT / "docs" / "README.md", ROOT / "docs" / "notebook" / "README.md"):
        text = index.read_text(encoding="utf-8")
        for page in index.parent.glob("*.md"):
            assert page == index or f"({page.name})" in text, f"{page.name} is not in {index}"


def test_the_index_of_the_docs_and_the_site_have_one_order() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"^\d+\. \*\*\[([^]]+)\]", index, re.MULTILINE) == [
        "Start", "Concepts", "Your environment", "Instructions", "Algorithm", "Results",
        "Performance", "Scaling", "Contributing",
    ]  # fmt: skip
    linked = re.findall(r"\]\((?:\.\./results/)?([\w-]+\.md)\)", index.partition("9. ")[0])
    site = (ROOT / "docs" / "site" / "mkdocs.yml").read_text(encoding="utf-8").partition("nav:")[2]
    pages = re.findall(r": \S+/([\w-]+\.md)$", site, re.MULTILINE)
    assert linked == pages[:-1]  # the last is the API reference, made from docstrings


def _listed(page: Path) -> list[str]:
    """The parts of amago that the tree of a page lists, as `├── nets/` or `├── cli/ · api.py`."""
    lines = page.read_text(encoding="utf-8").partition("amago/\n")[2].partition("```")[0]
    branches = re.findall(r"^[├└]── ([^①-⑨\n]*?)(?:\s{2,}|\s*[①-⑨]|$)", lines, re.MULTILINE)
    return [name.strip().rstrip("/") for branch in branches for name in branch.split("·")]


@pytest.mark.parametrize("page", ["README.md", "docs/architecture.md"])
def test_the_tree_of_a_page_lists_the_parts_that_there_are(page: str) -> None:
    listed = set(_listed(ROOT / page))
    assert len(listed) == len(_listed(ROOT / page)), f"{page} lists a part twice"
    parts = {path.name for path in (ROOT / "amago").iterdir() if (path / "__init__.py").is_file()}
    modules = {path.name for path in (ROOT / "amago").glob("*.py") if path.name[0] != "_"}
    assert parts <= listed, f"{page} does not list {sorted(parts - listed)}"
    assert listed <= parts | modules, f"{page} lists {sorted(listed - parts - modules)}"


def test_contributing_names_the_layers_of_the_contract_in_their_order() -> None:
    contract = (ROOT / ".importlinter").read_text(encoding="utf-8")
    lines = contract.partition("layers =\n")[2].partition("ignore_imports")[0].splitlines()
    layers = [set(re.findall(r"amago\.(\w+)", line)) for line in lines if "#" not in line]
    parts = {path.name for path in (ROOT / "amago").iterdir() if (path / "__init__.py").is_file()}
    shown = parts | {"api", "config", "types", "goals"}
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    order = text.partition("one way**: `")[2].partition("`")[0]
    named = [set(re.findall(r"\w+", layer)) for layer in order.split("→")]
    assert named == [layer & shown for layer in layers if layer & shown]


OLD = {"results", "notebook", "zoo.md"}
DOCS = [page for page in PAGES if not OLD & {*page.relative_to(ROOT).parts}]
"""Pages about the code of today; results, notebook and model cards are about the commit that they
name."""


@pytest.mark.parametrize("page", DOCS, ids=_name)
def test_files_and_functions_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for name, function in re.findall(r"`([\w/]+\.py)`(?:,? `(\w+)[\w.]*`)?", text):
        found = [root / name for root in (ROOT, ROOT / "amago") if (root / name).is_file()]
        found += [path for path in SOURCES if "/" not in name and path.name == name]
        assert found, f"{_name(page)} names {name}"
        assert function in found[0].read_text(encoding="utf-8"), f"{_name(page)}: {name} {function}"


@pytest.mark.parametrize("page", DOCS, ids=_name)
def test_settings_that_a_page_names_exist(page: Path) -> None:
    settings = set(dotted(amago.preset("gym")))
    for method in METHODS.values():
        settings |= {f"{method.section}.{field.name}" for field in fields(method.settings)}
    named = re.findall(r"--((?:\w+\.)+[\w.-]*\w)", page.read_text(encoding="utf-8"))
    for name in (flag.replace("-", "_") for flag in named):
        known = name in settings or name.startswith("env.kwargs.")
        assert known, f"{_name(page)} names --{name}, which is no setting"
