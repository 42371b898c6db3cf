"""Whether an LMDB file is as long as it must be.

LMDB maps its file into memory; a page that a truncated file no longer has would end the process
with SIGBUS. So the file is measured before it is opened. Layout: lmdb.h and mdb.c of LMDB 0.9.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path

_MAGIC = 0xBEEFC0DE
_META = struct.Struct("<16xII16xI36xQI36xQQQ")
"""magic, version, page size, root of free pages, -, root of databases, last page, transaction."""
_HEADER = struct.Struct("<QHHHH")
_NODE = struct.Struct("<HHHH")
_BRANCH, _LEAF, _OVERFLOW = 1, 2, 4
_BIG_DATA, _SUB_DATABASE = 1, 2
_NO_PAGE = 2**64 - 1


def check_pages(path: Path) -> None:
    """ValueError where a file of LMDB lacks pages that its last commit refers to."""
    if not path.exists() or path.stat().st_size == 0:
        return  # a new store
    with path.open("rb") as file:
        try:
            page_size, roots, last = _newest_meta(file.fileno())
            size = os.fstat(file.fileno()).st_size
            if size >= (last + 1) * page_size:
                return
            # Pages at the end may be free, and were never written: only those in use count.
            needed = max(_pages(file.fileno(), page_size, roots), default=1)
        except struct.error as error:
            raise _short(path, "pages that it refers to are not there") from error
        except ValueError as error:
            raise _short(path, str(error)) from error
        if size < (needed + 1) * page_size:
            raise _short(path, f"{(needed + 1) * page_size} bytes are needed, {size} are there")


def _newest_meta(file: int) -> tuple[int, list[int], int]:
    """Page size, roots of both trees and the last page of the newest transaction."""
    first = _META.unpack(os.pread(file, _META.size, 0))
    page_size = first[2]
    if first[0] != _MAGIC or not 512 <= page_size <= 65536:
        raise ValueError("this is no file of LMDB")
    second = _META.unpack(os.pread(file, _META.size, page_size))
    newest = max(first, second, key=lambda meta: meta[7])
    return page_size, [newest[3], newest[5]], newest[6]


def _pages(file: int, page_size: int, roots: list[int]) -> Iterator[int]:
    """The numbers of all pages that trees with those roots are made of."""
    waiting, seen = [root for root in roots if root != _NO_PAGE], set[int]()
    while waiting:
        number = waiting.pop()
        if number in seen:
            raise ValueError("its pages form a circle")
        seen.add(number)
        yield number
        page = os.pread(file, page_size, number * page_size)
        _, _, flags, lower, upper = _HEADER.unpack_from(page)
        if flags & _OVERFLOW:
            yield number + (lower | upper << 16) - 1
        elif flags & (_BRANCH | _LEAF):
            for index in range((lower - 16) // 2):
                (at,) = struct.unpack_from("<H", page, 16 + 2 * index)
                waiting += _children(page, at, is_branch=bool(flags & _BRANCH))


def _children(page: bytes, at: int, *, is_branch: bool) -> list[int]:
    """The pages that one node of a tree refers to."""
    low, high, flags, key_size = _NODE.unpack_from(page, at)
    data = at + _NODE.size + key_size
    if is_branch:
        return [low | high << 16 | flags << 32]
    if flags & _BIG_DATA:
        return [struct.unpack_from("<Q", page, data)[0]]
    if flags & _SUB_DATABASE:
        (root,) = struct.unpack_from("<Q", page, data + 40)
        return [] if root == _NO_PAGE else [root]
    return []


def _short(path: Path, reason: str) -> ValueError:
    return ValueError(
        f"{path} is damaged or was cut short ({reason}); restore it from a copy, or remove the "
        f"folder {path.parent} and go on without it: `amago resume {path.parent.parent} --from "
        "EPOCH`"
    )
