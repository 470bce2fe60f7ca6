"""The summary of a teacher-forced run for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from harness.canonical import Json


def render_turns(report: Mapping[str, Json], folder: str) -> str:
    """Return the summary, every rate with its count."""
    return "\n".join(_lines(report, folder)) + "\n"


def _lines(report: Mapping[str, Json], folder: str) -> Iterator[str]:
    scores, asked = report["scores"], report["asked"]
    turns = asked["turns"]
    yield (
        f"{turns['planned']} turns of {report['dataset']['conversations']} "
        f"conversations, {report['repeats']} times, into {folder}"
    )
    yield f"  {report['candidate']['alias']}: {report['candidate']['canonical_id']}"
    yield _score_line("score", scores["score"], scores["turns"]["scored"])
    answered = report["answered_only"]
    yield _score_line("answered only", answered["score"], answered["scored"])
    for domain, part in scores["domains"].items():
        yield _score_line(domain, part["score"], part["scored"])
    yield (
        f"  {'answered':16} {turns['answered']} of {turns['planned']}, in "
        f"{turns['attempts']} attempts"
    )
    causes = asked["unanswered_by_cause"]
    if causes:
        listed = ", ".join(f"{count} {_short(code)}" for code, count in causes.items())
        yield f"  {'unanswered':16} {turns['failed'] + turns['given_up']}: {listed}"
    defects = asked["answers"]["defects"]
    if defects:
        listed = ", ".join(f"{count} {name}" for name, count in defects.items())
        yield f"  {'broken answers':16} {listed}"
    latency, tokens = asked["latency_s"], asked["tokens"]["completion_tokens"]
    if latency is not None:
        yield (
            f"  {'seconds a turn':16} mean {latency['mean']:.3f}, "
            f"p50 {latency['p50']:.3f}, p99 {latency['p99']:.3f}"
        )
    if tokens is not None:
        yield f"  {'tokens a turn':16} mean {tokens['mean']:.1f}"
    for reason in report["headline"]["refused"]:
        yield f"  no headline: {reason}"
    for reason in report["non_publication_reasons"]:
        yield f"  not publishable: {reason}"


def _score_line(name: str, value: float | None, count: int) -> str:
    figure = "not measured" if value is None else f"{value:.4f}"
    return f"  {name:16} {figure}  over {count} turns"


def _short(code: str) -> str:
    return code.removeprefix("episode.candidate_call_failed.")
