"""A verification as its reader gets it: text, JSON, exit status.

The status is 0 when nothing that was checked is wrong, 1 when something is, and 3
when a missing pattern engine kept episodes from being scored.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from harness.causes import EXIT_ANSWER_IS_NO, EXIT_DONE, EXIT_SETUP
from harness.run.report import aggregate_hashes
from harness.verification.verify import Verification
from harness.visible_text import visible

SHOWN: Final = 100
"""Violations that are printed as text; JSON has all."""


def exit_status(verification: Verification) -> int:
    """Return the status of the command."""
    if not verification.is_intact:
        return EXIT_ANSWER_IS_NO
    return EXIT_SETUP if verification.incomplete else EXIT_DONE


def as_json(verification: Verification) -> str:
    """Return the answer as one JSON document."""
    findings = verification.findings
    payload = {
        "intact": verification.is_intact,
        "complete": not verification.incomplete,
        **_identities(verification),
        "aggregate_hashes": aggregate_hashes(verification.scored),
        "checked": dict(findings.checked),
        "not_recomputed": [
            {"what": what, "why": why, "count": count}
            for (what, why), count in findings.unchecked.items()
        ],
        "violations": [each.as_report() for each in findings.violations],
    }
    return json.dumps(payload, indent=2, sort_keys=True)


def as_text(verification: Verification) -> str:
    """Return what was checked, what was not, and the result."""
    return "\n".join(visible(line) for line in _lines(verification))


def violations_text(verification: Verification) -> str:
    """Return the violations, each with its place; "" for none."""
    found = verification.findings.violations
    texts = [violation.as_text() for violation in found[:SHOWN]]
    if len(found) > SHOWN:
        texts.append(f"and {len(found) - SHOWN} more; --json lists all")
    return "\n".join(visible(line) for text in texts for line in text.split("\n"))


def _identities(verification: Verification) -> dict[str, str | None]:
    manifest = verification.manifest
    return {
        "merkle_root": _text(manifest.get("merkle_root")),
        "manifest_hash": _text(manifest.get("manifest_hash")),
        "bundle_hash": verification.bundle_hash,
    }


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _lines(verification: Verification) -> Iterator[str]:
    findings = verification.findings
    yield f"verified {verification.name}"
    width = max((len(str(n)) for n in findings.checked.values()), default=1)
    for what, count in findings.checked.items():
        yield f"  {count:>{width}}  {what}"
    if findings.unchecked:
        yield "not recomputed"
    for (what, why), count in findings.unchecked.items():
        times = f" ({count})" if count > 1 else ""
        yield f"  {what}: {why}{times}"
    for name, value in _identities(verification).items():
        if value is not None:
            yield f"{name.replace('_', ' ')}  {value}"
    for alias, aggregate in sorted(aggregate_hashes(verification.scored).items()):
        yield f"aggregate of {alias}  {aggregate}"
    yield f"result: {_result(verification)}"


def _result(verification: Verification) -> str:
    number = len(verification.findings.violations)
    if number:
        return f"NOT INTACT, {number} violation{'s' if number > 1 else ''}"
    if verification.incomplete:
        return "NOT COMPLETE: install google-re2 to score every episode"
    withheld = any("withheld" in why for _, why in verification.findings.unchecked)
    return "intact, as far as nothing was withheld" if withheld else "intact"
