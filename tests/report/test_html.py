"""The HTML report is one self-contained page that anything can read."""

from html.parser import HTMLParser

import pytest

from harness.report.html import render_html
from tests.report.reports import ORACLE_TIMEOUT, candidate, report, statistics

VOID = {"meta"}


class Reader(HTMLParser):
    """Checks nesting and collects text, tags and attributes."""

    def __init__(self):
        super().__init__()
        self.open = []
        self.tags = []
        self.text = []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.text.append(data)


def read(*candidates, **fields):
    reader = Reader()
    reader.feed(render_html(report(*candidates, **fields), "out/run"))
    reader.close()
    return reader


def test_tags_are_closed_in_order():
    assert read().open == []


def test_page_loads_and_runs_nothing():
    tags = read(candidate(), candidate("words")).tags

    assert {name for name, _ in tags} & {"script", "link", "img", "iframe"} == set()
    assert [
        a for _, attributes in tags for a in attributes if a in ("src", "href")
    ] == []
    assert any("default-src 'none'" in (a.get("content") or "") for _, a in tags)


def test_every_table_has_a_caption_and_headers_with_a_scope():
    tags = read(candidate(ledger=[ORACLE_TIMEOUT])).tags
    names = [name for name, _ in tags]

    assert names.count("caption") == names.count("table") == 7
    assert all(a.get("scope") in ("col", "row") for name, a in tags if name == "th")


@pytest.mark.parametrize(
    "shown",
    [
        "5/5",
        "100.0 %",
        "7/9",
        "metric.no_state_assertion",
        "Publication is allowed.",
        "56.6 to 100.0",
        "wilson-95",
        "Known too early",
        "1/4",
        "0/12",
        "library-1.0.0-abc",
    ],
)
def test_content_of_the_summary_is_there(shown):
    assert shown in " ".join(read().text)


def test_refusal_and_stops_are_shown():
    text = " ".join(
        read(
            candidate(ledger=[ORACLE_TIMEOUT], stops=1),
            publication_allowed=False,
            non_publication_reasons=["stops.share_over_cap"],
        ).text
    )

    assert "stops.share_over_cap" in text
    assert "episode.oracle_timeout" in text


def test_repeats_are_shown_where_tasks_were_asked_more_than_once():
    single = " ".join(read().text)
    repeated = " ".join(
        read(candidate(trials=2, statistics=statistics(4, 2, 0, trials=2))).text
    )

    assert "pass@2" not in single
    assert "pass@2" in repeated
    assert "pass^2" in repeated


def test_report_without_statistics_is_shown_without_intervals():
    bare = candidate()
    del bare["statistics"], bare["premature_knowledge"]

    text = " ".join(read(bare).text)

    assert "wilson" not in text
    assert "Known too early" not in text


def test_names_are_text_and_never_markup():
    reader = read(candidate("<script>alert(1)</script>"))

    assert "<script>alert(1)</script>" in reader.text
    assert "script" not in {name for name, _ in reader.tags}


def test_same_report_gives_the_same_bytes():
    assert render_html(report(), "out") == render_html(report(), "out")
