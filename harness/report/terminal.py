"""Plain-text tables for people: aligned by what a terminal shows, not by length.

Pure functions of their arguments. A cell never breaks the layout or the terminal:
control and direction characters are shown as escapes, wide and combining characters
are measured, and a table that is wider than asked wraps its widest cells.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Final

from harness.visible_text import JOINERS, visible

GAP: Final = "  "
_RATE = r"[-+<>]?\d[\d.,]*(?:/\d+)?(?: ?%)?"
_NUMBER = re.compile(rf"(?:{_RATE}(?: to {_RATE})?|-|n/a)")
_NARROWEST = 8


def table(
    headers: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    width: int | None = None,
    indent: int = 0,
) -> str:
    """Return an aligned table without a final newline.

    Columns whose cells are all numbers, counts like `3/5`, `-` or `n/a` stand right.
    `width` is the number of terminal columns to stay within where wrapping can do
    it. Raises ValueError for a row of another length than the headers.
    """
    cells = [[visible(str(cell)) for cell in row] for row in (headers, *rows)]
    for row in cells:
        if len(row) != len(headers):
            raise ValueError(f"expected {len(headers)} cells, seen {len(row)}")
    if not headers:
        return ""
    columns = list(zip(*cells, strict=True))
    widths = [max(map(_lines_width, column)) for column in columns]
    if width is not None:
        widths = _narrowed(columns, width - indent - len(GAP) * (len(columns) - 1))
    right = [
        bool(column[1:]) and all(map(_NUMBER.fullmatch, column[1:]))
        for column in columns
    ]
    rule = ["-" * size for size in widths]
    lines = [
        line
        for row in (cells[0], rule, *cells[1:])
        for line in _row_lines(row, widths, right)
    ]
    return "\n".join((" " * indent + line).rstrip() for line in lines)


def on_lines_of_their_own(lines: Iterable[str]) -> str:
    """Return lines as text that ends with a newline; none can break or hide another.

    Records hold what endpoints say of themselves, line breaks included.
    """
    return "".join(visible(line).replace("\n", "\\u{a}") + "\n" for line in lines)


def display_width(text: str) -> int:
    """Return how many terminal columns one line of text takes."""
    if text.isascii():
        return len(text)
    return sum(map(_character_width, text))


def wrap(text: str, width: int) -> list[str]:
    """Break text at spaces into lines of at most `width` columns; long words are cut.

    Lines of the text stay lines. Raises ValueError for a width below 1.
    """
    if width < 1:
        raise ValueError("a line needs at least one column")
    return [line for part in text.split("\n") for line in _wrapped(part, width)]


def _character_width(character: str) -> int:
    if unicodedata.combining(character) or character in JOINERS:
        return 0
    if unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _lines_width(cell: str) -> int:
    return max(map(display_width, cell.split("\n")))


def _narrowed(columns: Sequence[Sequence[str]], room: int) -> list[int]:
    """Take room from the widest column first and cut words only at last."""
    widths = [max(map(_lines_width, column)) for column in columns]
    words = [max(map(_longest_word, column)) for column in columns]
    for floors in (words, [_NARROWEST] * len(widths)):
        while sum(widths) > room:
            spare = [
                (width, index)
                for index, (width, floor) in enumerate(zip(widths, floors, strict=True))
                if width > floor
            ]
            if not spare:
                break
            widths[max(spare)[1]] -= 1
    return widths


def _longest_word(cell: str) -> int:
    return max(map(display_width, cell.replace("\n", " ").split(" ")))


def _row_lines(
    row: Sequence[str], widths: Sequence[int], right: Sequence[bool]
) -> list[str]:
    wrapped = [wrap(cell, size) for cell, size in zip(row, widths, strict=True)]
    return [
        GAP.join(
            _padded(text, size, on_right)
            for text, size, on_right in zip(line, widths, right, strict=True)
        )
        for line in zip_longest(*wrapped, fillvalue="")
    ]


def _padded(text: str, width: int, on_right: bool) -> str:
    space = " " * (width - display_width(text))
    return space + text if on_right else text + space


def _wrapped(text: str, width: int) -> list[str]:
    lines: list[str] = []
    line = ""
    for word in text.split(" "):
        if line and display_width(line) + 1 + display_width(word) <= width:
            line = f"{line} {word}"
            continue
        if line:
            lines.append(line)
        *whole, line = _pieces(word, width)
        lines.extend(whole)
    return [*lines, line]


def _pieces(word: str, width: int) -> list[str]:
    pieces = [""]
    for character in word:
        if display_width(pieces[-1] + character) > width and pieces[-1]:
            pieces.append("")
        pieces[-1] += character
    return pieces
