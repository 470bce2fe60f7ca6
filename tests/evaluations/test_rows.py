"""Which rows an evaluation was over, for whatever a plain JSON loader lets pass."""

import pytest

from harness.evaluations.rows import RowsDigest


def digest(row_id, gold):
    taken = RowsDigest(inputs=True)
    taken.add(row_id, gold, row_id)
    return taken.as_fields()


@pytest.mark.parametrize(
    ("gold", "other"),
    [
        ("\ud800", "\\ud800"),
        ("\ud800", "\ud801"),
        (float("nan"), float("inf")),
        ({"a": float("nan")}, {"a": "NaN"}),
        (1, 1.0),
    ],
)
def test_gold_of_every_kind_has_a_hash_of_its_own(gold, other):
    assert digest("r", gold)["sha256"] != digest("r", other)["sha256"]
    assert digest("r", gold) == digest("r", gold)


def test_id_that_is_no_unicode_has_hashes():
    assert digest("\ud800", 1)["ids_sha256"] != digest("\udfff", 1)["ids_sha256"]
