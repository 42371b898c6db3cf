"""Markdown: tables, and paragraphs of a hundred columns."""

from __future__ import annotations

import csv
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path

_WIDTH = 100


def markdown(names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table."""
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def csv_table(path: Path) -> str:
    """A CSV file as a table."""
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = list(csv.reader(file))
    return markdown(header, rows)


def wrapped(text: str) -> str:
    """One paragraph."""
    return textwrap.fill(" ".join(text.split()), _WIDTH, break_on_hyphens=False,
                         break_long_words=False)  # fmt: skip


def paragraph(text: str) -> str:
    """One paragraph; a picture keeps its line."""
    return text if text.startswith("!") else wrapped(text)


def bullet(text: str) -> str:
    """One item of a list."""
    return textwrap.fill(" ".join(text.split()), _WIDTH, initial_indent="- ",
                         subsequent_indent="  ", break_on_hyphens=False,
                         break_long_words=False)  # fmt: skip
