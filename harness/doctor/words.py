"""An examination, and what a machine offers, as text and as JSON."""

from __future__ import annotations

from typing import Final

from harness.canonical import Json
from harness.doctor.examine import Examination
from harness.report.terminal import on_lines_of_their_own

_SHOWN: Final = {"good": "good", "costs": "COSTS", "cannot_tell": "cannot tell"}


def render_examination(found: Examination) -> str:
    """Return the verdict table; the last line is the summary."""
    lines = [
        f"endpoint  {found.base_url}",
        f"model     {found.model}"
        + (f" (answers as {found.served_model})" if found.served_model else ""),
        f"server    {found.server or 'does not say'}",
        "",
    ]
    for each in found.examined:
        finding = each.finding
        verdict = _SHOWN[finding.verdict]
        lines.append(f"{each.probe.name:<17} {verdict:<12} {finding.seen}")
        if finding.cost:
            lines.append(f"{'':<30} loses: {finding.cost}")
    counts = [
        f"{_SHOWN[verdict].lower()} {found.count(verdict)}"
        for verdict in ("good", "costs", "cannot_tell")
    ]
    lines += ["", f"doctor: {', '.join(counts)}"]
    return on_lines_of_their_own(lines).removesuffix("\n")


def examination_report(found: Examination) -> dict[str, Json]:
    """Return the examination as JSON."""
    return {
        "base_url": found.base_url,
        "model": found.model,
        "served_model": found.served_model,
        "server": found.server,
        "probes": [
            {
                "name": each.probe.name,
                "purpose": each.probe.purpose,
                "verdict": each.finding.verdict,
                "seen": each.finding.seen,
                "cost": each.finding.cost,
            }
            for each in found.examined
        ],
        "counts": {
            "good": found.count("good"),
            "costs": found.count("costs"),
            "cannot_tell": found.count("cannot_tell"),
        },
        "exit_status": found.exit_status,
    }


def render_sandbox(found: dict[str, Json]) -> str:
    """Return what this machine can do to hold pack code."""
    lines = [f"kernel {found['kernel']} on {found['machine']}, user {found['user']}"]
    abi = found["landlock_abi"]
    lines.append(f"Landlock {f'version {abi}' if abi else 'is not there'}")
    for level in ("process", "confined", "namespaces"):
        entry = found["levels"][level]
        if not entry["available"]:
            lines.append(f"{level:<11} no: {entry['missing']} ({entry['detail']})")
            continue
        limits = entry["applied"]["limits"]
        idle = [f"{n} ({v['reason']})" for n, v in limits.items() if not v["enforced"]]
        lines.append(f"{level:<11} yes" + (", without a limit on" if idle else ""))
        lines += [f"{'':<11} {each}" for each in idle]
    return "\n".join(lines)
