"""The taxonomy that failure codes come from."""

from typing import get_args

import pytest

from harness.causes import CAUSES
from harness.evidence.episode import EpisodeStatus
from harness.scoring.failures import (
    ERROR_TAXONOMY_HASH,
    REASON_NAMESPACES,
    TRACE_STATUSES,
    status_attribution,
)
from harness.scoring.gates import GATE_NAMES
from harness.scoring.metric import NOT_APPLICABLE_CODES

STATUSES = get_args(EpisodeStatus)


def test_hash_changes_only_with_the_taxonomy():
    assert ERROR_TAXONOMY_HASH.startswith("sha256:")


@pytest.mark.parametrize(
    "code",
    [*(f"{gate}.mismatch" for gate in GATE_NAMES), *NOT_APPLICABLE_CODES],
)
def test_code_lies_in_a_known_namespace(code):
    assert code.split(".")[0] in REASON_NAMESPACES


@pytest.mark.parametrize("status", STATUSES)
def test_status_has_the_blame_of_its_causes(status):
    rows = [
        cause
        for code, cause in CAUSES.items()
        if code == f"episode.{status}" or code.startswith(f"episode.{status}.")
    ]

    assert {row.attribution.value for row in rows} == {status_attribution(status)}


def test_trace_statuses_are_episode_statuses():
    assert set(TRACE_STATUSES) < set(STATUSES)
