"""A finished run as text for a terminal: rates with counts, stops by owner, state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from harness.canonical import Json
from harness.report.publication import reason_in_words
from harness.report.run_view import (
    EARLY_CAPTION,
    EARLY_HEADERS,
    HEADLINE,
    HEADLINE_WITHOUT_STOPS,
    CandidateView,
    RunView,
    view_run,
)
from harness.report.terminal import table, wrap
from harness.visible_text import visible


def render_run(
    report: Mapping[str, Json], out_dir_label: str, *, width: int = 100
) -> str:
    """Return the summary of an `eval_report.json` payload, ending with a newline.

    `out_dir_label` is how the caller names the run folder; `width` is in columns.
    """
    view = view_run(report)
    sections = [
        f"Run {visible(view.run_id)} of {visible(view.source_run_id)}, "
        f"scope {visible(view.scope)}",
        _headline(view, width),
        *_repeats(view, width),
        *_metrics(view, width),
        *_ledger(view, width),
        *_companions(view, width),
        *_servers(view, width),
        *_early(view, width),
        _publication(view, width),
        f"Evidence: {visible(out_dir_label)}",
    ]
    return "\n\n".join(sections) + "\n"


def _headline(view: RunView, width: int) -> str:
    rows = [
        (
            candidate.alias,
            candidate.success.counts,
            candidate.success.percent,
            candidate.interval(HEADLINE),
            candidate.success_without_stops.counts,
            candidate.success_without_stops.percent,
            candidate.interval(HEADLINE_WITHOUT_STOPS),
            candidate.stops,
            could_be(candidate),
        )
        for candidate in view.candidates
    ]
    headers = (
        "candidate",
        "success",
        "of all",
        "95 %",
        "judged",
        "of judged",
        "95 %",
        "stops",
        "could be %",
    )
    shown = f"{view.title}\n" + table(headers, rows, width=width, indent=2)
    note = wrap(view.interval_note, max(width - 2, 1)) if view.interval_note else []
    return "\n  ".join([shown, *note])


def _repeats(view: RunView, width: int) -> Iterator[str]:
    headers, rows = view.repeats()
    if rows:
        yield (
            "Over repeats: at least one of k trials succeeds, all k succeed\n"
            + table(headers, rows, width=width, indent=2)
        )


def _early(view: RunView, width: int) -> Iterator[str]:
    rows = [
        (candidate.alias, *candidate.early.cells)
        for candidate in view.candidates
        if candidate.early is not None
    ]
    if rows:
        shown = table(("candidate", *EARLY_HEADERS), rows, width=width, indent=2)
        note = wrap(EARLY_CAPTION, max(width - 2, 1))
        yield "\n  ".join([f"Known too early\n{shown}", *note])


def _metrics(view: RunView, width: int) -> Iterator[str]:
    names = list(dict.fromkeys(name for c in view.candidates for name, _ in c.metrics))
    if not names:
        return
    rows = [
        (name, *(_metric(candidate, name) for candidate in view.candidates))
        for name in names
    ]
    headers = ("metric", *(candidate.alias for candidate in view.candidates))
    yield "Metrics\n" + table(headers, rows, width=width, indent=2)
    reasons = view.not_applicable()
    if reasons:
        yield "Not applicable\n" + table(
            ("metric", "reason", "candidates"), reasons, width=width, indent=2
        )


def _metric(candidate: CandidateView, name: str) -> str:
    ratio = dict(candidate.metrics).get(name)
    return ratio.counts if ratio else "-"


def could_be(candidate: CandidateView) -> str:
    """Return the rate's bounds in percent, `-` where nothing was stopped."""
    if not candidate.stops:
        return "-"
    lowest, highest = (each.percent.removesuffix(" %") for each in candidate.could_be)
    return f"{lowest} to {highest}"


def _ledger(view: RunView, width: int) -> Iterator[str]:
    rows = [
        (candidate.alias, blame.owner, blame.cause, blame.count, blame.summary)
        for candidate in view.candidates
        for blame in candidate.ledger
    ]
    if rows:
        yield "Who owns what is no success\n" + table(
            ("candidate", "owner", "cause", "episodes", "meaning"),
            rows,
            width=width,
            indent=2,
        )


def _companions(view: RunView, width: int) -> Iterator[str]:
    names = list(
        dict.fromkeys(name for c in view.candidates for name, _ in c.companions)
    )
    rows = [
        (name, *(dict(c.companions).get(name, "-") for c in view.candidates))
        for name in names
    ]
    if rows:
        headers = ("count", *(candidate.alias for candidate in view.candidates))
        yield "Beside the score\n" + table(headers, rows, width=width, indent=2)


def _servers(view: RunView, width: int) -> Iterator[str]:
    rows = [
        (candidate.alias, *served)
        for candidate in view.candidates
        for served in candidate.served_by
    ]
    if rows:
        headers = ("candidate", "server", "served model", "responses")
        yield "Who answered, as far as the server tells\n" + table(
            headers, rows, width=width, indent=2
        )


def _publication(view: RunView, width: int) -> str:
    if view.publication_allowed:
        return "Publication: allowed"
    lines = [
        "\n    ".join(wrap(visible(reason_in_words(reason)), max(width - 4, 1)))
        for reason in view.non_publication_reasons
    ]
    return "\n  - ".join(["Publication: not allowed", *lines])
