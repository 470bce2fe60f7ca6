"""What the contracts of `fairtrial score` take and show alike.

Each takes files that have to be there, a new output folder, the primary metric and the
form of what is shown. Each shows its figures one a line, with the counts of a rate and
a mark at the primary metric, and closes with where the record lies.
"""

from __future__ import annotations

import argparse
import json
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.canonical import Json

NOT_MEASURED = "not measured"
_WIDTH = 32


def add_file(
    parser: argparse.ArgumentParser, option: str, metavar: str, text: str
) -> None:
    """Declare a file or folder that the contract reads."""
    parser.add_argument(option, type=Path, required=True, metavar=metavar, help=text)


def add_result_arguments(parser: argparse.ArgumentParser, task: str) -> None:
    """Declare the output, the primary metric and the form of what is shown."""
    from harness.scoring.answers import SELECTABLE

    names = SELECTABLE[task]
    parser.add_argument(
        "--output", type=Path, required=True, metavar="DIR", help="a new folder"
    )
    parser.add_argument(
        "--metric",
        metavar="NAME",
        help=f"the primary metric: {', '.join(names)} (default: {names[0]})",
    )
    parser.add_argument("--json", action="store_true", help="JSON on stdout")


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of what is shown."""

    title: str
    value: float | int | str | None
    """A share, a count or words; None: not measured."""
    part: int | None = None
    whole: int | None = None
    note: str = ""
    primary: bool = False

    def line(self) -> str:
        """Return the line."""
        text = NOT_MEASURED if self.value is None else str(self.value)
        if isinstance(self.value, float):
            text = f"{self.value:.4f}"
        if self.value is not None and self.whole is not None:
            text += f"  {self.part}/{self.whole}"
        text += f"  {self.note}" if self.note else ""
        return f"  {self.title:{_WIDTH}} {text}" + ("  (primary)" * self.primary)


def show(
    arguments: argparse.Namespace,
    *,
    scored: str,
    figures: Sequence[Figure],
    notes: Sequence[str],
    payload: Mapping[str, Json],
) -> None:
    """Print JSON or lines; `scored` says what was scored, as in `12 rows`."""
    if arguments.json:
        whole = {**payload, "unidata_version": unicodedata.unidata_version}
        print(json.dumps(whole, indent=2, sort_keys=True))
        return
    lines = [f"{scored} scored into {arguments.output}"]
    lines += [each.line() for each in figures]
    print("\n".join([*lines, *notes]))
