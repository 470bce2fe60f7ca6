"""From a word to the name that is compared."""

import pytest

from harness.scoring.mlperf_agentic.aliases import ALIASES, WRAPPERS, canonical_action


def test_table_has_the_contracts_size():
    assert (len(ALIASES), len(set(ALIASES.values())), len(WRAPPERS)) == (58, 42, 6)


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("/usr/bin/Python3.11.4", "python"),
        ("git.1", "git"),
        ("..5", "source"),
        ("ma\u212ae", "make"),
        ("python3.\u0661", "python"),
        ("python3.1.2.3", None),
        ("python3.11m", None),
        ("\u017fed", None),
        ("sphinx", None),
        ("bin/", None),
        ("", None),
        ("\u00b2", None),
    ],
)
def test_word_leads_to_its_name(word, name):
    assert canonical_action(word) == name
