"""The catalogs of faults: complete, and at one with the cause table."""

import pytest

from harness.causes import CAUSES
from harness.drill import cells, saboteur
from harness.drill.cells import Cell
from harness.drill.oracle_faults import oracle_faults
from harness.drill.serving_faults import serving_faults

FAULTS = (*serving_faults(), *oracle_faults())
CELLS = [value for value in vars(cells).values() if isinstance(value, Cell)]
NOT_A_FAULT_OF_THE_WORLD = {
    "episode.max_turns_exceeded",
    "episode.confirmation_not_earned",
}
"""Follows from the config, and from what a candidate says."""


def test_names_are_different():
    names = [fault.name for fault in FAULTS]

    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.cause)
def test_cell_names_the_owner_of_the_cause_table(cell):
    if cell.owner != cells.NOBODY:
        assert CAUSES[cell.cause].owner == cell.owner


def test_every_cause_of_an_episode_is_injected():
    injected = {fault.cell.cause for fault in FAULTS}
    causes = {code for code, cause in CAUSES.items() if cause.level == "episode"}

    assert causes - injected == NOT_A_FAULT_OF_THE_WORLD


def test_every_action_is_one_of_the_saboteur():
    known = {*saboteur._ACTIONS, *saboteur._LIES, "drop", "retype"}

    assert {fault.do for fault in oracle_faults()} <= known


def test_every_operation_can_crash():
    places = {fault.place for fault in oracle_faults() if fault.do == "exit"}

    assert places >= {
        "reset",
        "reading call",
        "changing call",
        "final state",
        "assertion",
        "close",
    }
