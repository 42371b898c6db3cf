"""Every code block of README and docs runs as printed, with tiny settings."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_docs_helpers import PAGES, Block, blocks, commands, fast_world, run_page

LANGUAGES = {"python", "sh", "text"}
RUN = [page for page in PAGES if any(block.language != "text" for block in blocks(page))]
SLOW = [page for page in PAGES if any(block.slow for block in blocks(page))]


def _name(page: Path) -> str:
    return page.name


@pytest.mark.parametrize("page", RUN, ids=_name)
def test_the_code_of_a_page_runs_as_printed(page: Path, tmp_path: Path) -> None:
    with fast_world(tmp_path):
        run_page(page, slow=False)


@pytest.mark.slow
@pytest.mark.parametrize("page", SLOW, ids=_name)
def test_the_slow_code_of_a_page_runs_as_printed(page: Path, tmp_path: Path) -> None:
    with fast_world(tmp_path):
        run_page(page, slow=True)


def test_every_block_says_whether_it_runs() -> None:
    for page in PAGES:
        for block in blocks(page):
            assert block.language in LANGUAGES, f"{page.name}, line {block.line}: {block.kind!r}"


def test_a_block_that_fails_fails_its_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    for kind, code in (("python", "import no_such_module"), ("sh", "amago no-such-verb")):
        page.write_text(f"# Page\n\n```{kind}\n{code}\n```\n")
        with fast_world(tmp_path), pytest.raises((ImportError, AssertionError)):
            run_page(page, slow=False)


def test_blocks_of_a_page_share_their_names_and_slow_ones_wait(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```python\nx = 1\n```\n```python slow\nx += 1\n```\n```python\n1 / (2 - x)\n```\n"
    )
    assert blocks(page)[1] == Block("python slow", "x += 1\n", 4)
    run_page(page, slow=False)
    with pytest.raises(ZeroDivisionError):
        run_page(page, slow=True)


def test_continued_lines_are_one_command_and_comments_are_none() -> None:
    assert commands("# note\namago a \\\n  b   # why\n\namago c\n") == [
        "amago a    b   # why",
        "amago c",
    ]
