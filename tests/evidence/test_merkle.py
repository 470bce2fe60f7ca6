"""The root follows from its definition, worked out by hand for small trees."""

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from harness.evidence.merkle import MerkleTree, merkle_root


def sha(data):
    return hashlib.sha256(data).digest()


A, B, C = (sha(text) for text in (b"a", b"b", b"c"))
LEAF_A, LEAF_B, LEAF_C = (sha(b"\x00" + digest) for digest in (A, B, C))


def test_root_of_nothing_is_the_hash_of_nothing():
    assert merkle_root([]) == (
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    )


def test_root_of_one_record_is_its_leaf():
    assert merkle_root([A]) == "sha256:" + LEAF_A.hex()


def test_root_of_two_records_is_one_node():
    assert merkle_root([A, B]) == "sha256:" + sha(b"\x01" + LEAF_A + LEAF_B).hex()


def test_a_node_without_a_partner_rises_unchanged():
    pair = sha(b"\x01" + LEAF_A + LEAF_B)

    assert merkle_root([A, B, C]) == "sha256:" + sha(b"\x01" + pair + LEAF_C).hex()


def test_root_of_three_records_as_a_number():
    assert merkle_root([A, B, C]) == (
        "sha256:cac3d448d4e20a2ad5eae1f500e63c2a7f9217cd14572ba7fd22e26dc1ec2648"
    )


def by_levels(digests):
    level = [sha(b"\x00" + digest) for digest in digests]
    while len(level) > 1:
        pairs = [level[i : i + 2] for i in range(0, len(level), 2)]
        level = [sha(b"\x01" + p[0] + p[1]) if len(p) == 2 else p[0] for p in pairs]
    return "sha256:" + (level[0] if level else sha(b"")).hex()


@given(st.lists(st.binary(min_size=32, max_size=32), max_size=70))
def test_growing_one_by_one_gives_the_tree_by_levels(digests):
    tree = MerkleTree()
    for count, digest in enumerate(digests, start=1):
        tree.add(digest)
        assert tree.root() == by_levels(digests[:count])


@given(st.lists(st.binary(min_size=32, max_size=32), min_size=2, unique=True))
def test_order_and_number_of_records_matter(digests):
    assert merkle_root(digests) != merkle_root(digests[::-1])
    assert merkle_root(digests) != merkle_root(digests[:-1])
