"""metrics.csv: the rows of metrics.jsonl for a spreadsheet."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from amago.saved.files import read_rows
from amago.training.trackers.tracker import Pictures, Row


class CsvTracker:
    """Derived from metrics.jsonl: a column that is new, or a resumed run, writes it anew."""

    def __init__(self, folder: Path) -> None:
        self._source, self._path = folder / "metrics.jsonl", folder / "metrics.csv"
        self._columns: list[str] = []
        self._write_all()

    def log(self, metrics: Row, timing: Row) -> None:
        row = _flat(metrics)
        if row.keys() <= set(self._columns):
            with self._path.open("a", newline="") as file:
                file.write(self._lines([row]))
        else:
            self._write_all()

    def end(self, result: Row, pictures: Pictures) -> None: ...

    def close(self) -> None: ...

    def _write_all(self) -> None:
        rows = [_flat(row) for row in read_rows(self._source)]
        self._columns = list(dict.fromkeys(name for row in rows for name in row))
        if not rows:
            self._path.unlink(missing_ok=True)
            return
        head = dict(zip(self._columns, self._columns, strict=True))
        temporary = self._path.with_name(self._path.name + ".tmp")
        temporary.write_text(self._lines([head, *rows]), newline="")
        temporary.replace(self._path)

    def _lines(self, rows: list[Row]) -> str:
        text = io.StringIO()
        csv.DictWriter(text, self._columns, lineterminator="\n").writerows(rows)
        return text.getvalue()


def _flat(metrics: Row) -> Row:
    """A list gets one column per entry: name/1, name/2 and so on."""
    flat: Row = {}
    for name, value in metrics.items():
        if isinstance(value, list):
            flat |= {f"{name}/{number}": entry for number, entry in enumerate(value, 1)}
        else:
            flat[name] = value
    return flat
