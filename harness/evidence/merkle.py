"""Merkle roots over records, grown one record at a time.

Leaf: SHA-256 of byte 0x00 and the record's 32 hash bytes. Node: SHA-256 of byte
0x01, left child, right child. Leaves are paired from the left, level by level; a
node without a partner rises unchanged. The root of no leaf is SHA-256 of nothing.
This is the tree of RFC 6962, so inclusion proofs have their usual form. Memory is
one hash a level.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256


class MerkleTree:
    """The root over all digests added so far."""

    def __init__(self) -> None:
        self.leaf_count = 0
        self._complete: list[bytes] = []

    def add(self, digest: bytes) -> None:
        """Add the hash (32 bytes) of the next record."""
        node = sha256(b"\x00" + digest).digest()
        count = self.leaf_count
        while count & 1:
            node = _join(self._complete.pop(), node)
            count >>= 1
        self._complete.append(node)
        self.leaf_count += 1

    def root(self) -> str:
        """Return the root as a content hash."""
        if not self._complete:
            return "sha256:" + sha256(b"").hexdigest()
        node = self._complete[-1]
        for left in reversed(self._complete[:-1]):
            node = _join(left, node)
        return "sha256:" + node.hex()


def merkle_root(digests: Iterable[bytes]) -> str:
    """Return the root over the digests in order."""
    tree = MerkleTree()
    for digest in digests:
        tree.add(digest)
    return tree.root()


def _join(left: bytes, right: bytes) -> bytes:
    return sha256(b"\x01" + left + right).digest()
