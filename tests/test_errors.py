"""Errors carry all violations, say what to do, and decide a status by their code."""

import inspect
import re

from harness import errors
from harness.causes import exit_status
from harness.errors import ConfigError, FairtrialError, SourceError, Violation


def test_one_problem_makes_one_violation():
    error = SourceError(
        "eval_source_invalid",
        "the table is torn",
        where="benchmark.parquet",
        expected="12 rows",
        actual="11 rows",
        recovery="publish again",
    )

    assert error.violations == (
        Violation(
            "eval_source_invalid",
            "benchmark.parquet",
            "the table is torn",
            "12 rows",
            "11 rows",
            "publish again",
        ),
    )


def test_text_names_problem_place_expectation_sight_and_remedy():
    violation = Violation("code", "here", "broken", "a", "b", "mend it")

    assert violation.as_text() == (
        "code: broken\n  where: here\n  expected: a\n  seen: b\n  do: mend it"
    )


def test_empty_fields_are_left_out():
    violation = Violation("code", "", "broken")

    assert violation.as_text() == "code: broken"
    assert violation.as_report() == {"code": "code", "problem": "broken"}


def test_all_violations_are_kept_and_the_first_decides():
    both = (
        Violation("eval_config_path_invalid", "a", "first"),
        Violation("eval_config_invalid", "b", "second"),
    )

    error = ConfigError.from_violations(both)

    assert isinstance(error, ConfigError)
    assert error.code == "eval_config_path_invalid"
    assert error.violations == both
    assert str(error) == (
        "eval_config_path_invalid: first\n  where: a\n"
        "eval_config_invalid: second\n  where: b"
    )


def test_report_is_plain_json():
    error = FairtrialError("eval_cli_invalid", "no such command", where="runn")

    assert error.as_report() == {
        "code": "eval_cli_invalid",
        "violations": [
            {"code": "eval_cli_invalid", "where": "runn", "problem": "no such command"}
        ],
    }


def test_code_decides_the_exit_status():
    assert exit_status(ConfigError("eval_config_invalid", "x").code) == 2


def test_drawn_tree_is_the_inheritance():
    drawn = {
        name: len(indent) // 2 - 2
        for indent, name in re.findall(
            r"^( +)(\w+Error)\b", errors.__doc__, re.MULTILINE
        )
    }

    defined = {
        name: member.__mro__.index(FairtrialError)
        for name, member in inspect.getmembers(errors, inspect.isclass)
        if issubclass(member, FairtrialError)
    }

    assert drawn == defined
