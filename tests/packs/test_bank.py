"""The bank: of the promised size and variety, gold, and watchful."""

import re
from collections import Counter
from typing import get_args

import anyio
import pytest

from harness.benchmark.commit_marker import (
    MANIFEST_FILE,
    PUBLISHED_FILE,
    RAW_FILE,
    REPORT_FILE,
)
from harness.benchmark.projection import ORACLE_CLOCK, project_task
from harness.benchmark.template_model import references_in
from harness.benchmark.templates import expand
from harness.canonical import hash_file
from harness.conversation.task import TurnPolicy
from harness.oracle.contracts import SessionContext
from tests.candidates.control_episodes import NO_HASH, script_of
from tests.packs.conftest import open_host, published

POLICIES = set(get_args(TurnPolicy))
DIFFICULTIES = {"easy", "medium", "hard"}
ADDED_KEYWORDS = {
    "anyOf",
    "oneOf",
    "exclusiveMinimum",
    "multipleOf",
    "uniqueItems",
    "minProperties",
}
WITHOUT_CALLS = {"irrelevant", "clarify_only"}
STRAY = ("set_balance_alert", "AC-1005")
"""A call that no gold makes: the tool and its account."""


def keys_in(value):
    """Yield every object key inside a JSON value."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from keys_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from keys_in(item)


def operators_in(bank):
    return {
        term.operator
        for template in bank.templates
        for slot in template.slots.values()
        for term in slot.conditions
    }


def test_pack_has_the_promised_number_of_tools_and_templates(bank):
    assert len(bank.tools.by_name) >= 9
    assert len(bank.templates) >= 36


def test_each_policy_has_templates_of_two_difficulties(bank):
    found = {policy: set() for policy in POLICIES}
    for template in bank.templates:
        found[template.turn_policy].add(template.difficulty)

    assert {policy for policy, levels in found.items() if len(levels) < 2} == set()


def test_each_difficulty_has_a_quarter_of_the_templates(bank):
    counts = Counter(template.difficulty for template in bank.templates)

    assert counts.keys() == DIFFICULTIES
    assert min(counts.values()) * 4 >= len(bank.templates)


def test_each_tool_is_called_by_gold_and_each_assertion_is_used(bank):
    called = {tool for t in bank.templates for tool in t.required_tools}
    judging = {name for t in bank.templates for name in t.success_assertions}

    assert called == set(bank.tools.by_name)
    assert judging == bank.assertion_specs.names


def test_each_assertion_declares_what_it_judges(bank):
    specs = bank.assertion_specs

    assert specs.capabilities.keys() == specs.names
    assert {c.category for c in specs.capabilities.values()} == {
        "state",
        "path",
        "result",
        "final_answer",
    }


def test_pack_shows_every_slot_source_operator_and_call_order(bank):
    kinds = {s.source.kind for t in bank.templates for s in t.slots.values()}
    updated = {u.source.kind for t in bank.templates for u in t.updates}

    assert kinds == {"fixture", "enum", "literal", "range", "absent"}
    assert updated == {"fixture", "enum", "literal", "range"}
    assert operators_in(bank) == {"==", "!=", "<", "<=", ">", ">=", "in", "not in"}
    assert {t.call_order for t in bank.templates} == {"strict", "any", "prefix"}


def test_tools_use_the_keywords_that_were_added_to_the_subset(bank):
    used = set(keys_in([tool.parameters for tool in bank.tools.by_name.values()]))

    assert used >= ADDED_KEYWORDS


def test_results_are_used_at_depth_and_across_user_turns(bank):
    places = [
        (path, template.answers_between)
        for template in map(Dependent, bank.templates)
        for path in template.paths
    ]

    assert any(len(path) > 1 and isinstance(path[-1], str) for path, _ in places)
    assert any(len(path) > 1 and isinstance(path[-1], int) for path, _ in places)
    assert any(answers for _, answers in places)


class Dependent:
    """The places in a template where an earlier result is put in."""

    def __init__(self, template):
        self.paths = [
            path for call in template.calls for path, _ in references_in(call.arguments)
        ]
        self.answers_between = any(turn.answer for turn in template.turns)


def test_several_tools_want_a_confirmation_and_one_that_changes_does_not(bank):
    tools = bank.tools.by_name.values()

    assert sum(tool.requires_confirmation for tool in tools) >= 5
    assert any(tool.mutates and not tool.requires_confirmation for tool in tools)


def test_some_templates_have_several_hidden_slots(bank):
    hidden = [
        sum(not slot.visible for slot in template.slots.values())
        for template in bank.templates
        if template.turn_policy == "missing_slot"
    ]

    assert {1, 2, 3} <= set(hidden)


def test_words_of_every_task_keep_its_secrets(bank):
    rejected = {t.task_id: t.surface_problem for t in expand(bank, seed=0)}

    assert {k: v for k, v in rejected.items() if v} == {}


def test_readme_names_only_templates_that_exist(bank):
    text = (bank.root / "docs/README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.+) \| (.+) \|$", text, re.MULTILINE)
    cells = [cell for _, cell in rows if cell.startswith("`")]
    named = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}

    assert len(named) > 20
    assert named - {template.template_id for template in bank.templates} == set()


def test_publication_is_gold_and_of_the_promised_size(publication, rows):
    assert (publication.gold_eligible, publication.exit_status) == (True, 0)
    assert 300 <= len(rows) == publication.raw_rows <= 450


def test_published_rows_hold_every_policy_and_difficulty(rows):
    assert {row["turn_policy"] for row in rows} == POLICIES
    assert {row["difficulty"] for row in rows} == DIFFICULTIES


def test_no_template_outweighs_the_others(rows):
    counts = Counter(row["template_id"] for row in rows)

    assert max(counts.values()) <= len(rows) * 0.05


@pytest.mark.slow
def test_two_publications_have_the_same_bytes(bank, publication, tmp_path):
    again = published(bank, tmp_path / "again")

    for name in (RAW_FILE, PUBLISHED_FILE, REPORT_FILE, MANIFEST_FILE):
        assert hash_file(again.output / name) == hash_file(publication.output / name)


async def verdicts(host, bank, row, calls):
    """Run calls in a fresh session; return what each assertion says then."""
    part = project_task(bank, row, script_of(row), NO_HASH)
    deadline = anyio.current_time() + 30
    context = SessionContext(row["task_id"], row["seed"], ORACLE_CLOCK)
    session = await host.open_session(context, deadline=deadline)
    try:
        await session.reset()
        for turn_index, name, arguments in calls:
            await session.call_tool(name, arguments, turn_index=turn_index)
        return {
            (await session.run_assertion(spec.name, part.assertion_task)).status
            for spec in part.assertions
        }
    finally:
        await session.close()


def gold_calls(row):
    return [
        (turn.turn_index, call.function_name, call.arguments)
        for turn in script_of(row).turns
        for call in turn.calls
    ]


def statuses(bank, rows, calls_of):
    """Return the verdicts on each row after the calls that `calls_of` names."""

    async def run():
        async with open_host(bank) as host:
            return {
                row["template_id"]: await verdicts(host, bank, row, calls_of(row))
                for row in rows
            }

    return anyio.run(run)


def test_stray_change_beside_gold_fails_every_template(bank, first_rows):
    tool, account_id = STRAY
    stray = {"account_id": account_id, "below": 10, "channels": ["app"]}
    found = statuses(bank, first_rows, lambda row: [*gold_calls(row), (9, tool, stray)])

    assert {name for name, seen in found.items() if "failed" not in seen} == set()
    assert {name for name, seen in found.items() if "infrastructure_error" in seen} == (
        set()
    )


def test_doing_nothing_fails_every_template_that_asks_for_calls(bank, first_rows):
    found = statuses(bank, first_rows, lambda row: [])
    idle = {
        row["template_id"] for row in first_rows if row["turn_policy"] in WITHOUT_CALLS
    }

    assert {name for name, seen in found.items() if "failed" not in seen} == idle
    assert {s for seen in found.values() for s in seen} == {"passed", "failed"}
