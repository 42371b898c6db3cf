"""Writes the generated files of a results folder: python -m amago.reproduce results."""

from __future__ import annotations

import sys
from pathlib import Path

from amago.reproduce.claims.pages import write_all


def main(arguments: list[str]) -> None:
    """Pages, pictures and indexes of the folder that is named, results by default."""
    root = Path(arguments[0] if arguments else "results")
    for path in write_all(root):
        print(path)


if __name__ == "__main__":
    main(sys.argv[1:])
