"""The text of a run shows both rates with counts, every reason and its state."""

from harness.report.run_summary import render_run
from harness.report.terminal import display_width
from tests.report.reports import (
    ORACLE_TIMEOUT,
    blame,
    candidate,
    ratio,
    report,
    statistics,
)


def test_whole_summary_of_a_small_run():
    payload = report(
        candidate(),
        candidate(
            "words",
            successful=2,
            stops=1,
            ledger=[ORACLE_TIMEOUT],
        ),
    )

    assert render_run(payload, "out/run") == (
        "Run run-1 of library-1.0.0-abc, scope trace_and_executable\n"
        "\n"
        "Task success\n"
        "  candidate  success   of all           95 %  judged  of judged           95 %"
        "  stops    could be %\n"
        "  ---------  -------  -------  -------------  ------  ---------  -------------"
        "  -----  ------------\n"
        "  gold           5/5  100.0 %  56.6 to 100.0     5/5    100.0 %  56.6 to 100.0"
        "      0             -\n"
        "  words          2/5   40.0 %   11.8 to 76.9     2/4     50.0 %   15.0 to 85.0"
        "      1  40.0 to 60.0\n"
        "  95 %: wilson-95 over tasks; eval_report.json has the intervals over "
        "templates too.\n"
        "\n"
        "Metrics\n"
        "  metric             gold  words\n"
        "  -----------------  ----  -----\n"
        "  argument_accuracy   7/9    7/9\n"
        "  state_match_rate    n/a    n/a\n"
        "\n"
        "Not applicable\n"
        "  metric            reason                     candidates\n"
        "  ----------------  -------------------------  ----------\n"
        "  state_match_rate  metric.no_state_assertion  all\n"
        "\n"
        "Who owns what is no success\n"
        "  candidate  owner   cause                   episodes  meaning\n"
        "  ---------  ------  ----------------------  --------  "
        "-------------------------------------\n"
        "  words      oracle  episode.oracle_timeout         1  "
        "A read-only call passed its deadline.\n"
        "\n"
        "Beside the score\n"
        "  count                  gold  words\n"
        "  ---------------------  ----  -----\n"
        "  planned                   5      5\n"
        "  stops                     0      1\n"
        "  timeouts                  0      0\n"
        "  turn_limit_stops          0      0\n"
        "  suspected_call_markup     0      0\n"
        "  suspected_truncation      0      0\n"
        "  serving_parse_loss        0      0\n"
        "  arguments_empty           0      0\n"
        "  stops_after_mismatch      0      0\n"
        "\n"
        "Known too early\n"
        "  candidate  written early    rate  decoys written  rate by chance  "
        "confirmed early\n"
        "  ---------  -------------  ------  --------------  --------------  "
        "---------------\n"
        "  gold                 1/4  25.0 %            0/12           0.0 %  "
        "            1/2\n"
        "  words                1/4  25.0 %            0/12           0.0 %  "
        "            1/2\n"
        "  Values that the script tells late, written before they were told, beside "
        "decoys that it never\n"
        "  tells: the chance baseline. Evidence of contamination where the two rates "
        "differ; no gate reads\n"
        "  it.\n"
        "\n"
        "Publication: allowed\n"
        "\n"
        "Evidence: out/run\n"
    )


def test_refused_publication_lists_every_reason():
    payload = report(
        publication_allowed=False,
        non_publication_reasons=["stops.share_over_cap", "policy.debug"],
    )

    assert (
        "Publication: not allowed\n  - stops.share_over_cap: too many episodes stopped "
        "for a score to stand\n  - policy.debug\n" in render_run(payload, "out")
    )


def test_run_over_its_cap_claims_no_score():
    payload = report(
        publication_allowed=False, non_publication_reasons=["stops.share_over_cap"]
    )

    text = render_run(payload, "out")

    assert "Task success" not in text
    assert "Counts only: too many episodes stopped for a score\n" in text


def test_reason_of_one_candidate_names_it():
    metrics = {"argument_accuracy": ratio(0, 0, "metric.no_expected_call")}
    payload = report(candidate(metrics=metrics), candidate("words"))

    assert "metric.no_expected_call    gold" in render_run(payload, "out")


def test_run_of_successes_has_no_ledger():
    assert "Who owns" not in render_run(report(), "out")


def test_text_stays_within_the_width():
    payload = report(
        candidate("a" * 40, ledger=[blame("oracle", "episode.unknown_commit_state", 1)])
    )

    lines = render_run(payload, "out", width=80).splitlines()

    assert [line for line in lines if display_width(line) > 80] == []


def test_names_cannot_move_the_cursor():
    assert "\x1b" not in render_run(report(candidate("a\x1b[2Jb")), "\x1b[H")


def test_servers_are_shown_beside_the_score():
    told = {"server": "vLLM/0.9; fp_1", "served_model": "m", "responses": 5}
    silent = {"server": None, "served_model": None, "responses": 2}
    rest = {"server": None, "served_model": None, "responses": 1, "is_rest": True}
    served = [{**told, "is_rest": False}, {**silent, "is_rest": False}, rest]

    text = render_run(report(candidate("gold", served_by=served)), "out")

    section = text.split("Who answered", 1)[1]
    assert "vLLM/0.9; fp_1" in section
    assert "does not say" in section
    assert "further servers" in section


def test_repeats_are_one_line_a_candidate():
    payload = report(candidate(trials=4, statistics=statistics(8, 6, 0, trials=4)))

    assert (
        "  candidate  pass@2  pass^2   pass@4  pass^4\n"
        "  ---------  ------  ------  -------  ------\n"
        "  gold       91.7 %  58.3 %  100.0 %  50.0 %\n" in render_run(payload, "out")
    )
