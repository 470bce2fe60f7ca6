"""Reads the shell blocks and links of the project's Markdown pages."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
SHELLS = {"sh", "bash", "shell", "console", "zsh"}
_BLOCK = re.compile(
    r"(?:^<!-- (?P<kind>run|command|shows): (?P<name>[a-z-]+) -->\n+)?"
    r"^```(?P<language>[a-z]*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    page: str
    kind: str | None
    name: str | None
    language: str
    text: str


def markdown_pages():
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def name_of(page):
    return page.relative_to(ROOT).as_posix()


def blocks(page):
    return [
        Block(name_of(page), m["kind"], m["name"], m["language"], m["text"].strip())
        for m in _BLOCK.finditer(page.read_text(encoding="utf-8"))
    ]


def scenario_blocks(page, scenario):
    """Return what a page runs and shows in one scenario, in reading order."""
    return [
        block
        for block in blocks(ROOT / page)
        if block.name == scenario and block.kind in ("run", "shows")
    ]


def shell_blocks():
    return [
        b for page in markdown_pages() for b in blocks(page) if b.language in SHELLS
    ]


def links(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return [match["target"] for match in _LINK.finditer(text)]
