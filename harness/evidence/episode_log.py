"""`tool_trace_cache.jsonl`: whole episodes, each attempt once.

An attempt of an episode begins with a `request` record and ends with a
`completion`, both numbered from 1. A beginning without its end is what a killed run
leaves: crash evidence, listed by `interrupted`; the next attempt takes the next
number. `lookup` gives the completion with the highest number.

The key carries everything that changes what the episode means (spec 3.15, and the
trial), and neither path nor time, so completed work is reused wherever it lies.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from harness.canonical import Json, content_hash
from harness.errors import EvidenceError
from harness.evidence.episode import Episode
from harness.evidence.log import AppendLog
from harness.evidence.log_line import Entry, LogFormat
from harness.evidence.log_reader import LogReader, TornTail
from harness.evidence.log_scan import stream_entries

EPISODE_LOG: Final = LogFormat(
    file_name="tool_trace_cache.jsonl",
    record_types=("request", "completion"),
    key_field="trace_key",
    number_field="attempt",
    invalid_code="eval_tool_trace_cache_invalid",
    conflict_code="eval_tool_trace_cache_conflict",
)
TRACE_KEY_VERSION: Final = "1.0"
EXECUTABLE_CONTRACT_VERSION: Final = "1.0"
"""Version of the driver's rules; part of the key, so that new rules ask anew."""
_REQUEST, _COMPLETION = range(2)


def trace_key(
    *,
    candidate_alias: str,
    canonical_model_identity: str,
    task_id: str,
    trial: int,
    plan_identity: str,
    eval_config_hash: str,
    scoring_policy_hash: str,
    source_verification_identity: str,
    oracle_verification_identity: str | None,
    script_hash: str,
    task_spec_hash: str,
) -> str:
    """Return the key of an episode: the content hash of all it depends on."""
    return content_hash(
        {
            "schema_version": TRACE_KEY_VERSION,
            "executable_contract_version": EXECUTABLE_CONTRACT_VERSION,
            "candidate_alias": candidate_alias,
            "canonical_model_identity": canonical_model_identity,
            "task_id": task_id,
            "trial": trial,
            "plan_identity": plan_identity,
            "eval_config_hash": eval_config_hash,
            "scoring_policy_hash": scoring_policy_hash,
            "source_verification_identity": source_verification_identity,
            "oracle_verification_identity": oracle_verification_identity,
            "script_hash": script_hash,
            "task_spec_hash": task_spec_hash,
        }
    )


@dataclass(frozen=True, slots=True)
class InterruptedEpisode:
    """An attempt that began and has no end."""

    trace_key: str
    attempt: int
    request: dict[str, Json]
    """What `begin` was given."""


class EpisodeRecords:
    """The recorded episodes, for reading."""

    def __init__(self, log: LogReader) -> None:
        self.log = log

    def lookup(self, key: str) -> Episode | None:
        """Return the episode of the highest completed attempt, marked as replayed."""
        newest = next(self.log.entries_of(key, "completion"), None)
        return None if newest is None else episode_of(newest).but(replayed=True)

    def completed(self, key: str) -> tuple[Episode, ...]:
        """Return the episode of every completed attempt, marked as replayed, in order.

        The last one counts.
        """
        entries = [*self.log.entries_of(key, "completion")]
        return tuple([episode_of(entry).but(replayed=True) for entry in entries[::-1]])

    def newest(self) -> Iterator[Episode]:
        """Yield the episode of the highest completed attempt of every key."""
        index = self.log.index
        for chain in index.chains():
            # Two keys can share a chain; the newest attempt of each comes first.
            seen: set[str] = set()
            for record in chain:
                if index.record_type(record) == _COMPLETION:
                    entry = self.log.entry(record)
                    if entry.key not in seen:
                        seen.add(entry.key)
                        yield episode_of(entry)

    def attempts(self, key: str) -> int:
        """Return the number of the newest attempt that began; 0 for none."""
        return max(
            (entry.number or 0 for entry in self.log.entries_of(key, "request")),
            default=0,
        )

    def interrupted(self) -> tuple[InterruptedEpisode, ...]:
        """Return the attempts that began and have no end, in order of beginning."""
        index = self.log.index
        suspects: list[int] = []
        for chain in index.chains():
            records = list(chain)
            begun = [r for r in records if index.record_type(r) == _REQUEST]
            if len(begun) * 2 > len(records):
                suspects.extend(begun)
        found = []
        for record in sorted(suspects):
            entry = self.log.entry(record)
            ends = self.log.entries_of(entry.key, "completion", number=entry.number)
            if not any(ends):
                request = entry.member("request")
                found.append(InterruptedEpisode(entry.key, entry.number or 0, request))
        return tuple(found)


class EpisodeLog(EpisodeRecords):
    """The log of whole episodes."""

    log: AppendLog

    def __init__(self, log: AppendLog) -> None:
        super().__init__(log)

    @classmethod
    def open(cls, path: Path, *, writable: bool) -> Self:
        """Open and verify the log; raise EvidenceError (see `AppendLog.open`)."""
        return cls(
            AppendLog.open(path, EPISODE_LOG, writable=writable, visit=check_order)
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def torn(self) -> TornTail | None:
        """The unterminated last line that opening found."""
        return self.log.torn

    def begin(self, key: str, attempt: int, payload: dict[str, Json]) -> None:
        """Record that an attempt starts; it must be the next of its episode.

        The same beginning again is no change. Raises EvidenceError otherwise.
        """
        encoded = self.log.encode({"request": payload})
        for known in self.log.entries_of(key, "request", number=attempt):
            if known.payload_bytes != encoded:
                raise known.refusal(
                    "another beginning has the same number", conflict=True
                )
            return
        expected = self.attempts(key) + 1
        if attempt != expected:
            raise _out_of_turn(key, f"attempt {expected}", f"attempt {attempt}")
        self.log.append("request", key, encoded, attempt)

    def complete(self, key: str, episode: Episode) -> None:
        """Record a whole episode; its attempt must have begun.

        The same episode again is no change. Raises EvidenceError otherwise.
        """
        number = episode.attempt
        encoded = self.log.encode({"episode": episode.semantic_payload()})
        for known in self.log.entries_of(key, "completion", number=number):
            if known.payload_bytes != encoded:
                raise known.refusal(
                    "another episode has the same number", conflict=True
                )
            return
        if not any(self.log.entries_of(key, "request", number=number)):
            raise _out_of_turn(
                key, "an attempt that began", f"the end of attempt {number}"
            )
        self.log.append("completion", key, encoded, number)

    def sync(self) -> None:
        """Make everything recorded survive a power loss."""
        self.log.sync()

    def close(self) -> None:
        """Sync and close."""
        self.log.close()


def stream_episodes(path: Path) -> Iterator[tuple[str, Episode]]:
    """Yield `(trace key, episode)` of every completion in one pass over the file.

    Attempts that were superseded are among them; the highest attempt counts.
    """
    for entry in stream_entries(path, EPISODE_LOG):
        if entry.record_type == "completion":
            yield entry.key, episode_of(entry)


def episode_of(entry: Entry) -> Episode:
    """Decode a whole episode; raise EvidenceError that names the record."""
    place = f"{EPISODE_LOG.file_name}, record {entry.sequence}, episode"
    episode = Episode.from_payload(entry.member("episode"), place)
    if episode.attempt != entry.number:
        raise entry.refusal(
            f"it is numbered {entry.number} and says attempt {episode.attempt}"
        )
    return episode


def check_order(log: LogReader, entry: Entry) -> None:
    """Refuse a record that could not have been written where it stands.

    An attempt begins with the next number of its key, and only the newest one ends.
    """
    begins = entry.record_type == "request"
    index = log.index
    record = next(index.chain(entry.key), None)
    if begins:
        if record is None and entry.number == 1:
            return
    elif (
        record is not None
        and index.record_type(record) == _REQUEST
        and index.number(record) == entry.number
    ):
        return
    newest = next(log.entries_of(entry.key), None)
    begun = 0 if newest is None else newest.number or 0
    if begins:
        if entry.number == begun + 1:
            return
    elif (
        newest is not None and newest.record_type == "request" and entry.number == begun
    ):
        return
    same = log.entries_of(entry.key, entry.record_type, number=entry.number)
    if entry.number is not None and any(same):
        raise entry.refusal("the attempt has such a record already", conflict=True)
    if begins:
        raise entry.refusal(f"attempt {begun + 1} of its episode begins here")
    raise entry.refusal("its attempt did not begin right before it")


def _out_of_turn(key: str, expected: str, actual: str) -> EvidenceError:
    return EvidenceError(
        EPISODE_LOG.invalid_code,
        "an episode record comes out of turn",
        where=f"{EPISODE_LOG.file_name}, episode {key}",
        expected=expected,
        actual=actual,
        recovery="report this as a defect; nothing was written",
    )
