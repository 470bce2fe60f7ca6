"""The table of blame has every end of an episode, with the owner that the code has."""

import re

from harness.causes import CAUSES
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs/why/blame.md").read_text(encoding="utf-8")
ROW = re.compile(
    r"^\| [^|]+ \| `(?P<code>episode\.[a-z_.]+)`"
    r" \| (?P<owner>\w+) \| (?P<judged>\w+) \|$",
    re.MULTILINE,
)


def test_table_of_blame_says_what_the_cause_table_says():
    written = [match.group("code", "owner", "judged") for match in ROW.finditer(PAGE)]
    known = [
        (cause.code, cause.owner.value, "yes" if cause.scored else "no")
        for cause in CAUSES.values()
        if cause.level == "episode"
    ]

    assert sorted(written) == sorted(known)


def test_every_status_that_the_page_names_is_one():
    named = re.findall(r"`(oracle_[a-z_]+|unknown_commit_state)`", PAGE)

    assert {f"episode.{name}" for name in named} <= CAUSES.keys()
