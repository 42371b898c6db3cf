"""Tables that a script writes into a page, between two lines that name them."""

from __future__ import annotations

from pathlib import Path


def put(page: Path, name: str, text: str) -> None:
    """Replace what stands between `<!-- NAME -->` and `<!-- end of NAME -->`."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    before, first, rest = page.read_text().partition(begin)
    _, second, after = rest.partition(end)
    if not (first and second):
        raise ValueError(f"{page} has no place for the table: it needs the lines {begin}{end}")
    page.write_text(f"{before}{begin}\n{text}\n\n{end}{after}")
