"""`fairtrial score CONTRACT`: recorded predictions under a published contract.

One module a contract, imported only when its arguments are read or its help is asked
for. A contract module has `add_arguments(parser)` and `run(arguments)` like a command.
"""

from __future__ import annotations

import argparse
import importlib
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class _Contract:
    module: str
    help: str


CONTRACTS: Final = {
    "action-ir": _Contract("score_action_ir", "Action IR v1 with Mobile Actions rows"),
    "mlperf-agentic": _Contract(
        "score_mlperf_agentic", "a finished run of MLPerf Agentic, from its event log"
    ),
    "json-records": _Contract("score_json_records", "JSON records v2 under a schema"),
    "classification": _Contract(
        "score_classification", "classification v1 under a list of labels"
    ),
}
"""The contracts by the name on the command line."""


class _LoadedWhenRead(argparse.ArgumentParser):
    """A sub-parser that gets its arguments from the contract's module, when used."""

    module: str | None = None

    def parse_known_args(self, *args: Any, **kwargs: Any) -> Any:
        """Declare the contract's arguments, then read them."""
        if self.module is not None:
            _module(self.module).add_arguments(self)
            self.module = None
        return super().parse_known_args(*args, **kwargs)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the contracts."""
    kind: type[_LoadedWhenRead] = type(
        "_ContractParser", (_LoadedWhenRead, type(parser)), {}
    )
    contracts = parser.add_subparsers(
        dest="contract", metavar="CONTRACT", required=True, parser_class=kind
    )
    for name, contract in CONTRACTS.items():
        sub = contracts.add_parser(name, help=contract.help, description=contract.help)
        sub.module = contract.module


def run(arguments: argparse.Namespace) -> int:
    """Score; return the exit status of the contract's module."""
    status: int = _module(CONTRACTS[arguments.contract].module).run(arguments)
    return status


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"harness.cli.{name}")
