"""A finished run as one static HTML file: no network, no script, readable by all.

The same view as the terminal summary. Tables have captions and row headers, colours
follow the reader's light or dark setting, and nothing rests on colour alone. Every
text is escaped, and the page forbids itself to load anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Final

from harness.canonical import Json
from harness.report.publication import reason_in_words
from harness.report.run_summary import could_be
from harness.report.run_view import (
    EARLY_CAPTION,
    EARLY_HEADERS,
    HEADLINE,
    HEADLINE_WITHOUT_STOPS,
    CandidateView,
    Ratio,
    RunView,
    view_run,
)
from harness.visible_text import visible

_STYLE: Final = """
:root { color-scheme: light dark; --ink: #1b1d21; --paper: #ffffff; --soft: #5a6068;
  --line: #d5d9de; --bar: #3b6fb5; --track: #e8ebef; --warn: #8a4b00; --good: #1c6b3a; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8eb; --paper: #16181b;
  --soft: #a4abb3; --line: #373c42; --bar: #7aa7e0; --track: #2a2e33; --warn: #f0b45e;
  --good: #7fd09b; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 70rem; padding: 1.5rem; background: var(--paper);
  color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; min-width: 30rem; }
caption { text-align: left; color: var(--soft); padding-bottom: .4rem; }
th, td { border-bottom: 1px solid var(--line); padding: .35rem .9rem .35rem 0;
  text-align: left; vertical-align: top; }
th { font-weight: 600; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums;
  white-space: nowrap; }
code { font-family: ui-monospace, monospace; font-size: .875em;
  overflow-wrap: anywhere; }
.bar { display: inline-block; width: 7rem; height: .6rem; background: var(--track); }
.bar span { display: block; height: 100%; background: var(--bar); }
.state { border-left: .3rem solid var(--warn); padding: .1rem 1rem; }
.state.allowed { border-color: var(--good); }
"""

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"


def render_html(report: Mapping[str, Json], out_dir_label: str) -> str:
    """Return the whole page for an `eval_report.json` payload."""
    view = view_run(report)
    title = f"Run {_text(view.run_id)}"
    body = [
        f"<h1>{title}</h1>",
        f"<p>Benchmark <code>{_text(view.source_run_id)}</code>, "
        f"scope <code>{_text(view.scope)}</code>, "
        f"evidence in <code>{_text(out_dir_label)}</code>.</p>",
        _publication(view),
        _headline(view),
        *_certainty(view),
        *_repeats(view),
        *_early(view),
        *_metrics(view),
        *_ledger(view),
        *_companions(view),
        *_servers(view),
        *_torn(report),
        _identities(view),
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(body)
        + "\n</main>\n</body>\n</html>\n"
    )


def _text(value: object) -> str:
    return escape(visible(str(value)))


def _cell(value: object, *, number: bool = False) -> str:
    return f"<td{_numeric(number)}>{_text(value)}</td>"


def _numeric(number: bool) -> str:
    return ' class="n"' if number else ""


def _table(
    title: str, caption: str, headers: Sequence[tuple[str, bool]], rows: Iterable[str]
) -> str:
    """Build one section; a header is its text and whether its column is numeric."""
    head = "".join(
        f'<th scope="col"{_numeric(number)}>{_text(name)}</th>'
        for name, number in headers
    )
    body = "\n".join(f"<tr>{row}</tr>" for row in rows)
    return (
        f'<h2>{_text(title)}</h2>\n<div class="scroll" tabindex="0" role="region" '
        f'aria-label="{_text(title)}"><table>\n<caption>{_text(caption)}</caption>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table></div>"
    )


def _row_header(value: object) -> str:
    return f'<th scope="row">{_text(value)}</th>'


def _torn(report: Mapping[str, Json]) -> Iterable[str]:
    """Say which ends of logs a killed process left unfinished, if there are any."""
    tails = report.get("torn_tails")
    if tails:
        yield _table(
            "Set aside",
            "A process was killed while it wrote. These unfinished ends of logs were "
            "kept and not read as evidence.",
            (("file", False), ("bytes", True)),
            (
                f"{_row_header(name)}{_cell(size, number=True)}"
                for name, size in sorted(tails.items())
            ),
        )


def _publication(view: RunView) -> str:
    if view.publication_allowed:
        return '<div class="state allowed"><p>Publication is allowed.</p></div>'
    reasons = "".join(
        f"<li>{_text(reason_in_words(r))}</li>" for r in view.non_publication_reasons
    )
    return (
        f'<div class="state"><p>Publication is not allowed:</p><ul>{reasons}</ul></div>'
    )


def _headline(view: RunView) -> str:
    headers = (
        ("candidate", False),
        ("success", True),
        ("of all", True),
        ("95 %", True),
        ("share", False),
        ("judged", True),
        ("of judged", True),
        ("95 %", True),
        ("stops", True),
        ("could be %", True),
    )
    return _table(
        view.title,
        "Over all planned episodes, and over those that no other party stopped; what "
        "the rate over all could be had every stop failed or passed.",
        headers,
        map(_headline_row, view.candidates),
    )


def _headline_row(candidate: CandidateView) -> str:
    all_planned, judged = candidate.success, candidate.success_without_stops
    return (
        _row_header(candidate.alias)
        + _cell(all_planned.counts, number=True)
        + _cell(all_planned.percent, number=True)
        + _cell(candidate.interval(HEADLINE), number=True)
        + f"<td>{_bar(all_planned)}</td>"
        + _cell(judged.counts, number=True)
        + _cell(judged.percent, number=True)
        + _cell(candidate.interval(HEADLINE_WITHOUT_STOPS), number=True)
        + _cell(candidate.stops, number=True)
        + _cell(could_be(candidate), number=True)
    )


def _certainty(view: RunView) -> Iterable[str]:
    rows = [
        _row_header(candidate.alias)
        + "".join(
            _cell(span.percents, number=True)
            + _cell(f"{span.effective_n:.0f}", number=True)
            + f"<td><code>{_text(span.method)}</code></td>"
            for span in (
                candidate.span(HEADLINE, "task"),
                candidate.span(HEADLINE, "template"),
            )
            if span is not None
        )
        for candidate in view.candidates
        if candidate.spans
    ]
    if rows:
        yield _table(
            "How certain the rate over all is",
            "95 % intervals: over tasks, whose trials are alike, for other tasks of "
            "these templates; over templates, for other templates. Beside each, the "
            "independent episodes that would be as certain, and the method.",
            (
                ("candidate", False),
                ("over tasks", True),
                ("as if", True),
                ("method", False),
                ("over templates", True),
                ("as if", True),
                ("method", False),
            ),
            rows,
        )


def _repeats(view: RunView) -> Iterable[str]:
    headers, rows = view.repeats()
    if rows:
        yield _table(
            "Over repeats",
            "The chance that at least one of k trials of a task succeeds (pass@k), and "
            "that all do (pass^k); means over tasks, each task once.",
            tuple((name, index > 0) for index, name in enumerate(headers)),
            (
                _row_header(alias) + "".join(_cell(c, number=True) for c in cells)
                for alias, *cells in rows
            ),
        )


def _early(view: RunView) -> Iterable[str]:
    rows = [
        _row_header(candidate.alias)
        + "".join(_cell(each, number=True) for each in candidate.early.cells)
        for candidate in view.candidates
        if candidate.early is not None
    ]
    if rows:
        yield _table(
            "Known too early",
            EARLY_CAPTION,
            (("candidate", False), *((name, True) for name in EARLY_HEADERS)),
            rows,
        )


def _bar(ratio: Ratio) -> str:
    share = 100 * ratio.numerator / ratio.denominator if ratio.denominator else 0
    return (
        '<span class="bar" aria-hidden="true">'
        f'<span style="width: {share:.1f}%"></span></span>'
    )


def _metrics(view: RunView) -> Iterable[str]:
    for candidate in view.candidates:
        if candidate.metrics:
            yield _table(
                f"Metrics of {candidate.alias}",
                f"Model {candidate.canonical_id}.",
                (("metric", False), ("counts", True), ("rate", True), ("share", False)),
                (_metric_row(name, ratio) for name, ratio in candidate.metrics),
            )


def _metric_row(name: str, ratio: Ratio) -> str:
    why = ratio.not_applicable_reason
    return (
        _row_header(name)
        + _cell(ratio.counts, number=True)
        + _cell(ratio.percent, number=True)
        + (_cell(why) if why else f"<td>{_bar(ratio)}</td>")
    )


def _ledger(view: RunView) -> Iterable[str]:
    rows = [
        _row_header(candidate.alias)
        + _cell(blame.owner)
        + f"<td><code>{_text(blame.cause)}</code></td>"
        + _cell(blame.count, number=True)
        + _cell("stop" if blame.is_stop else "judged")
        + _cell(blame.summary)
        for candidate in view.candidates
        for blame in candidate.ledger
    ]
    if rows:
        yield _table(
            "Who owns what is no success",
            "Each episode without success has one cause and one owner. A stop is an "
            "episode that another party than the candidate ended.",
            (
                ("candidate", False),
                ("owner", False),
                ("cause", False),
                ("episodes", True),
                ("kind", False),
                ("meaning", False),
            ),
            rows,
        )


def _companions(view: RunView) -> Iterable[str]:
    names = dict.fromkeys(name for c in view.candidates for name, _ in c.companions)
    rows = [
        _row_header(name)
        + "".join(
            _cell(dict(candidate.companions).get(name, "-"), number=True)
            for candidate in view.candidates
        )
        for name in names
    ]
    if rows:
        yield _table(
            "Beside the score",
            "Counts of episodes that say how far the score can be trusted.",
            (("count", False), *((c.alias, True) for c in view.candidates)),
            rows,
        )


def _servers(view: RunView) -> Iterable[str]:
    rows = [
        _row_header(candidate.alias)
        + _cell(server)
        + _cell(model)
        + _cell(responses, number=True)
        for candidate in view.candidates
        for server, model, responses in candidate.served_by
    ]
    if rows:
        yield _table(
            "Who answered",
            "What the servers told of themselves; a claim, and part of no identity.",
            (
                ("candidate", False),
                ("server", False),
                ("served model", False),
                ("responses", True),
            ),
            rows,
        )


def _identities(view: RunView) -> str:
    return _table(
        "Identities",
        "Hashes of what was asked and under which rules.",
        (("of", False), ("hash", False)),
        (
            _row_header(name) + f"<td><code>{_text(value)}</code></td>"
            for name, value in view.identities
        ),
    )
