"""How a request is recorded: the bytes that were sent, and what identifies them.

The key of a request is the hash of its head, and the head names the body by its hash.
Both stand in the record as they were hashed, so they are checked without decoding.
"""

from __future__ import annotations

from typing import Final, Protocol

from harness.canonical import canonical_bytes, hash_bytes
from harness.evidence.log_line import Entry

_BODY: Final = b'{"request":{"body":'
AFTER_BODY: Final = b',"body_hash":"sha256:'
"""What follows the body of a request."""
_BEFORE_HEAD: Final = b'","head":'
_AFTER_HEAD: Final = b',"request_hash":"sha256:'


class SentRequest(Protocol):
    """What is recorded of a request; `candidates.PreparedRequest` is one."""

    @property
    def request_id(self) -> str: ...  # noqa: D102
    @property
    def request_hash(self) -> str: ...  # noqa: D102
    @property
    def body_hash(self) -> str: ...  # noqa: D102
    @property
    def body(self) -> bytes:
        """The canonical JSON that goes over the wire."""

    @property
    def task_id(self) -> str: ...  # noqa: D102
    @property
    def trial(self) -> int: ...  # noqa: D102
    @property
    def turn_index(self) -> int: ...  # noqa: D102
    @property
    def head_bytes(self) -> bytes:
        """All that the request hash covers beside the body, as canonical JSON."""


def request_payload(request: SentRequest) -> bytes:
    """Return the canonical payload of a request's record."""
    fields = {
        "request_hash": request.request_hash,
        "request_id": request.request_id,
        "task_id": request.task_id,
        "trial": request.trial,
        "turn_index": request.turn_index,
    }
    # `body`, `body_hash` and `head` sort before all other names, so what was encoded
    # for the wire and the hash goes in front.
    return b'{"request":{"body":%b,"body_hash":"%b","head":%b,%b}' % (
        request.body,
        request.body_hash.encode("ascii"),
        request.head_bytes,
        canonical_bytes(fields)[1:],
    )


def check_body(entry: Entry) -> None:
    """Refuse a request whose key does not follow from its head and its body.

    The body is hashed as it stands in the record: the bytes that were sent.
    """
    payload = entry.payload_bytes
    at = payload.rfind(AFTER_BODY)
    head_at = at + len(AFTER_BODY) + 64 + len(_BEFORE_HEAD)
    end = payload.find(_AFTER_HEAD, head_at)
    if (
        at < 0
        or end < 0
        or not payload.startswith(_BODY)
        or payload[head_at - len(_BEFORE_HEAD) : head_at] != _BEFORE_HEAD
    ):
        raise entry.refusal("the request does not have the form of one")
    head = payload[head_at:end]
    body_hash = hash_bytes(payload[len(_BODY) : at]).encode("ascii")
    stated = payload[at + len(AFTER_BODY) - 7 : head_at - len(_BEFORE_HEAD)]
    if stated != body_hash or b'"request_body_hash":"%b"' % body_hash not in head:
        raise entry.refusal(
            f"body_hash is {stated.decode('ascii', 'replace')}; the body hashes to "
            f"{body_hash.decode('ascii')}"
        )
    key = hash_bytes(head)
    if key != entry.key:
        raise entry.refusal(f"request_hash does not follow from the head: {key}")
