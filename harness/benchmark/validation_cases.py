"""`validation_cases.yaml`: direct probes that show that every tool works."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from harness.benchmark.pack_tools import PackTools
from harness.benchmark.problems import PackFile, shown
from harness.canonical import Json
from harness.strict_yaml import YamlPath

ResultClass = Literal["success", "structured_error", "awaiting_confirmation"]
_CLASSES: Final[tuple[ResultClass, ...]] = (
    "success",
    "structured_error",
    "awaiting_confirmation",
)
_EXPECT_OWN: Final = ("result_class", "error_code", "state_unchanged")


@dataclass(frozen=True, slots=True)
class ValidationCase:
    """One probe and what it must show."""

    case_id: str
    tool: str
    arguments: dict[str, Json]
    """Sent as written, schema-valid or not."""
    reset_before: bool
    result_class: ResultClass | None
    error_code: str | None
    state_unchanged: bool | None
    fields: dict[str, Json]
    """Top-level fields of the result and their values."""
    negative: bool


def read_cases(file: PackFile, tools: PackTools) -> tuple[ValidationCase, ...]:
    """Read the probes; report every problem and every tool that lacks one."""
    if not isinstance(file.value, list):
        file.problem((), "not a list of cases", actual=shown(file.value))
        return ()
    cases: list[ValidationCase] = []
    for index, raw in enumerate(file.value):
        case = _case(file, raw, index)
        if case is None:
            continue
        if case.tool not in tools.by_name:
            file.problem((index, "tool"), f"the pack has no tool {case.tool!r}")
        if case.case_id in {known.case_id for known in cases}:
            file.problem((index, "id"), f"case {case.case_id!r} repeats")
        cases.append(case)
    if cases and not cases[0].reset_before:
        file.problem((0, "reset_before"), "the first case has nothing to chain onto")
    _check_coverage(file, tools, cases)
    return tuple(cases)


def _case(file: PackFile, raw: Json, index: int) -> ValidationCase | None:
    path: YamlPath = (index,)
    required = {"id", "tool", "arguments", "expect"}
    if not file.closed(raw, path, required, {"reset_before", "coverage", "notes"}):
        return None
    arguments, expect = raw["arguments"], raw["expect"]
    if not isinstance(arguments, dict):
        file.problem((*path, "arguments"), "not an object", actual=shown(arguments))
        return None
    if not isinstance(expect, dict) or not expect:
        file.problem((*path, "expect"), "a case expects something")
        return None
    if raw.get("coverage", "negative") != "negative":
        file.problem((*path, "coverage"), "the only coverage word is `negative`")
    result_class = expect.get("result_class")
    if result_class is not None and result_class not in _CLASSES:
        file.problem(
            (*path, "expect", "result_class"),
            "unknown result class",
            expected=f"one of {list(_CLASSES)}",
            actual=shown(result_class),
        )
        return None
    error_code = file.text(expect, "error_code", (*path, "expect")) or None
    return ValidationCase(
        case_id=file.text(raw, "id", path, f"case {index}"),
        tool=file.text(raw, "tool", path),
        arguments=arguments,
        reset_before=file.flag(raw, "reset_before", path, default=True),
        result_class=result_class,
        error_code=error_code,
        state_unchanged=(
            file.flag(expect, "state_unchanged", (*path, "expect"))
            if "state_unchanged" in expect
            else None
        ),
        fields={k: v for k, v in expect.items() if k not in _EXPECT_OWN},
        negative="coverage" in raw or result_class == "structured_error",
    )


def _check_coverage(
    file: PackFile, tools: PackTools, cases: list[ValidationCase]
) -> None:
    for tool in tools.by_name:
        own = [case for case in cases if case.tool == tool]
        succeeding = [case for case in own if case.result_class == "success"]
        if not any(
            not tools.catalog.failures(tool, case.arguments) for case in succeeding
        ):
            file.problem(
                (), f"tool {tool!r} has no schema-valid case that expects success"
            )
        if not any(case.negative for case in own):
            file.problem((), f"tool {tool!r} has no negative case")
