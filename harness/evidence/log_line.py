"""One line of an append-only log: a record that carries its own hash.

A line is one canonical JSON object with the keys `payload`, `record_hash`,
`record_type`, `schema_version`, `sequence` (the line number, from 1), one key field
holding a content hash and, for some types, a number. `record_hash` is the content
hash of the record without itself. Every field but the payload is a number or a word
from a closed set, so a line is checked and indexed without decoding its payload;
the sequence makes a dropped, moved or repeated line visible where it happens.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final, NamedTuple

from harness.canonical import Json
from harness.errors import EvidenceError
from harness.strict_json import StrictJsonError, decode_document

LOG_VERSION: Final = "1.0"
MAX_LINE_BYTES: Final = 256 * 1024 * 1024
"""Longest line that is written or read: a body of 16 MiB, escaped, fits."""

MAX_PAYLOAD_DEPTH: Final = 512
"""Deepest value of a payload: an envelope of 256 levels, wrapped, fits."""

_HASH_START: Final = b',"record_hash":"sha256:'
_HASH_DIGITS: Final = 64
_CONTENT_HASH: Final = rb"sha256:[0-9a-f]{64}"


class LineError(ValueError):
    """The bytes are not the record that belongs at this place; the text says why."""


@dataclass(frozen=True)
class LogFormat:
    """What makes one log differ from another."""

    file_name: str
    record_types: tuple[str, ...]
    key_field: str
    """Name of the field that holds the key; sorts after `record_type`."""
    number_field: str | None
    """Name of the optional number before the payload."""
    invalid_code: str
    conflict_code: str
    head: re.Pattern[bytes] = field(init=False, repr=False)
    tail: re.Pattern[bytes] = field(init=False, repr=False)
    tail_form: bytes = field(init=False, repr=False)
    """What follows the hash; takes the values of `type`, `key` and `sequence`."""

    def __post_init__(self) -> None:
        if self.key_field <= "record_type" or (self.number_field or "") >= "payload":
            raise ValueError("the fields do not sort around the payload and its hash")
        number = ""
        if self.number_field is not None:
            number = rf'(?:"{self.number_field}":(?P<number>0|[1-9][0-9]{{0,17}}),)?'
        object.__setattr__(
            self, "head", re.compile((r"\{" + number + r'"payload":').encode())
        )
        fields = {
            "record_type": f"(?P<type>{'|'.join(self.record_types)})".encode(),
            "schema_version": re.escape(LOG_VERSION).encode(),
            self.key_field: b"(?P<key>" + _CONTENT_HASH + b")",
        }
        texts = {name: b'"' + pattern + b'"' for name, pattern in fields.items()}
        texts["sequence"] = b"(?P<sequence>[1-9][0-9]{0,17})"
        pattern = b"".join(
            b',"%s":%s' % (name.encode(), texts[name]) for name in sorted(texts)
        )
        object.__setattr__(self, "tail", re.compile(b'"' + pattern + rb"\}"))
        forms = {
            "record_type": b'"%(type)b"',
            "schema_version": b'"%b"' % LOG_VERSION.encode(),
            self.key_field: b'"%(key)b"',
            "sequence": b"%(sequence)d",
        }
        form = b"".join(
            b',"%b":%b' % (name.encode(), forms[name]) for name in sorted(forms)
        )
        object.__setattr__(self, "tail_form", form + b"}")


class Entry(NamedTuple):
    """One verified line; its payload is decoded on demand."""

    log: LogFormat
    sequence: int
    offset: int
    """Where the line begins in its file, in bytes."""
    record_type: str
    key: str
    number: int | None
    digest: bytes
    """The 32 bytes of `record_hash`."""
    payload_bytes: bytes

    @property
    def is_withheld(self) -> bool:
        """Tell whether only the place, kind, key and hash of the row are left."""
        return False

    def payload(self) -> Json:
        """Decode the payload strictly; raise EvidenceError."""
        try:
            return decode_document(self.payload_bytes, max_depth=MAX_PAYLOAD_DEPTH)
        except StrictJsonError as error:
            raise self.refusal(f"the payload is no strict JSON ({error})") from None

    def member(self, name: str) -> Json:
        """Return one member of the payload; raise EvidenceError if it has none."""
        payload = self.payload()
        if isinstance(payload, dict) and name in payload:
            return payload[name]
        raise self.refusal(f"the payload has not all of {name}")

    def members(self, *names: str) -> tuple[Json, ...]:
        """Return these members of the payload; raise EvidenceError if one lacks."""
        payload = self.payload()
        if not isinstance(payload, dict) or not payload.keys() >= set(names):
            raise self.refusal(f"the payload has not all of {', '.join(names)}")
        return tuple([payload[name] for name in names])

    def refusal(self, reason: str, *, conflict: bool = False) -> EvidenceError:
        """Return the refusal of this record, with its place."""
        return damage(self.log, self.sequence, self.offset, reason, conflict=conflict)


def damage(
    log: LogFormat, sequence: int, offset: int, reason: str, *, conflict: bool = False
) -> EvidenceError:
    """Return the refusal of one record of a log."""
    return EvidenceError(
        log.conflict_code if conflict else log.invalid_code,
        "two records contradict each other" if conflict else "a log is damaged",
        where=f"{log.file_name}, record {sequence}, byte offset {offset}",
        expected="the record as the run wrote it",
        actual=reason,
        recovery="bring back an intact copy, or start again in a new output folder",
    )


def encode_line(
    log: LogFormat,
    *,
    sequence: int,
    record_type: str,
    key: str,
    number: int | None,
    payload: bytes,
) -> tuple[bytes, bytes]:
    """Return the line with its newline, and the 32 bytes of its hash.

    `payload` is canonical JSON already, so that a body that was encoded for the
    wire is not encoded again.
    """
    head = b"{"
    if number is not None:
        head = b'{"%s":%d,' % ((log.number_field or "").encode(), number)
    tail = log.tail_form % {
        b"type": record_type.encode(),
        b"key": key.encode(),
        b"sequence": sequence,
    }
    before = b'%b"payload":%b' % (head, payload)
    digest = sha256(before)
    digest.update(tail)
    stated = digest.hexdigest().encode()
    return b'%b%b%b"%b\n' % (before, _HASH_START, stated, tail), digest.digest()


def decode_line(
    log: LogFormat, line: bytes, sequence: int | None, offset: int
) -> Entry:
    """Verify one line without its newline; raise LineError.

    `sequence` is the number that the line must have, None for any.
    """
    before, _, after = line.rpartition(_HASH_START)
    head = log.head.match(before)
    tail = log.tail.fullmatch(after, _HASH_DIGITS)
    if head is None or tail is None:
        raise LineError(_no_text(line) or "the line is no record of this log")
    if not line.isascii() and (problem := _no_text(line)):
        raise LineError(problem)
    stated = after[:_HASH_DIGITS]
    digest = sha256(before + after[_HASH_DIGITS + 1 :]).digest()
    if digest.hex().encode() != stated:
        raise LineError(
            f"record_hash is sha256:{stated.decode('ascii', 'replace')}, and the record"
            f" hashes to sha256:{digest.hex()}"
        )
    record_type, key, digits = tail.group("type", "key", "sequence")
    own = int(digits)
    if own != sequence and sequence is not None:
        raise LineError(
            f"the record has sequence {own}, so a record was removed, moved or repeated"
        )
    number = None if log.number_field is None else head["number"]
    return Entry(
        log,
        own,
        offset,
        record_type.decode(),
        key.decode(),
        None if number is None else int(number),
        digest,
        before[head.end() :],
    )


def _no_text(line: bytes) -> str:
    """Tell why a line is no text; "" where it is."""
    if not line:
        return "the line is empty"
    try:
        line.decode("utf-8")
    except UnicodeDecodeError as error:
        return f"the line is no UTF-8 ({error.reason})"
    return ""
