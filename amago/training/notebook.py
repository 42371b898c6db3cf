"""What a person sees of a run in a notebook: one piece of HTML that changes in place."""

from __future__ import annotations

import importlib
import sys
from html import escape
from pathlib import Path
from typing import Any

from amago.training.view import COLUMNS, number


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    module = sys.modules.get("IPython")
    shell = None if module is None else module.get_ipython()
    return getattr(shell, "kernel", None) is not None


class NotebookView:
    """A progress bar and a table below the cell, without control characters."""

    def __init__(self, epochs: int, done: int = 0) -> None:
        self._epochs, self._done, self._folder = epochs, done, ""
        self._phase, self._values = "start", dict[str, Any]()
        self._handle: Any = None

    def begin(self, folder: Path) -> None:
        self._folder = str(folder)
        self._show()

    def phase(self, name: str, fraction: float = 0.0) -> None:
        if name != self._phase:  # not at every update: a browser has to draw each
            self._phase = name
            self._show()

    def epoch(self, metrics: dict[str, Any], timing: dict[str, Any]) -> None:
        self._done = metrics["epoch"]
        self._values |= {**metrics, **timing}
        self._show()

    def close(self) -> None:
        self._phase = "complete" if self._done >= self._epochs else "ended"
        self._show()

    def _show(self) -> None:
        output: Any = importlib.import_module("IPython.display")
        page = output.HTML(self.html())
        if self._handle is None:
            self._handle = output.display(page, display_id=True)
        else:
            self._handle.update(page)

    def html(self) -> str:
        """The picture of this moment."""
        known = [(label, number(self._values[k])) for label, k in COLUMNS if k in self._values]
        head = "".join(f"<th>{escape(label)}</th>" for label, _ in known)
        row = "".join(f"<td>{escape(value)}</td>" for _, value in known)
        table = f"<table><tr>{head}</tr><tr>{row}</tr></table>" if known else ""
        return (
            f'<div><progress value="{self._done}" max="{self._epochs}"></progress> '
            f"epoch {self._done}/{self._epochs}, {escape(self._phase)} "
            f"<code>{escape(self._folder)}</code>{table}</div>"
        )
