"""The command line: one module per command, imported only when it is called.

A command module has `add_arguments(parser)` and `run(arguments) -> exit status`.
This module is the top of the program: it turns every FairtrialError into its text
and exit status, an interrupt into 130, and nothing else into silence.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType, ModuleType
from typing import Final, NoReturn

from harness.causes import EXIT_INTERRUPTED, EXIT_SETUP, EXIT_USAGE, exit_status
from harness.cli.memory import give_memory_back
from harness.cli.streams import discard, steady_streams
from harness.errors import FairtrialError


@dataclass(frozen=True, slots=True)
class _Command:
    module: str
    help: str


COMMANDS: Final = {
    "demo": _Command("demo", "publish a small benchmark, run it, show the result"),
    "pack": _Command("pack", "start a new oracle pack, or check one"),
    "publish": _Command("publish", "certify a pack and publish its benchmark"),
    "config": _Command("config", "write an evaluation config"),
    "run": _Command("run", "evaluate candidates; resumes, or replays when finished"),
    "predict": _Command(
        "predict", "single-turn predictions by any engine, scored by a contract"
    ),
    "replay": _Command("replay", "recompute a finished run from its evidence alone"),
    "verify": _Command("verify", "recompute every hash and score of a run or bundle"),
    "seal": _Command("seal", "make one portable file of a run that verifies"),
    "rescore": _Command("rescore", "score a recorded run again, by another policy"),
    "sensitivity": _Command("sensitivity", "how a run's scores hang on scoring rules"),
    "explain": _Command("explain", "one episode as a person reads it"),
    "audit": _Command("audit", "who may have read the benchmark, and what rests on it"),
    "score": _Command("score", "score recorded predictions under a published contract"),
    "compare": _Command("compare", "whether runs can be ranked, and how they rank"),
    "accounting": _Command("accounting", "published numbers under the present scorer"),
    "candidates": _Command("candidates", "serve the control candidates"),
    "doctor": _Command("doctor", "what an endpoint or this machine will cost a model"),
    "drill": _Command("drill", "break everything around a run; check the blame"),
}


class _Parser(argparse.ArgumentParser):
    """Reports a usage error in the one form that all errors have."""

    def error(self, message: str) -> NoReturn:
        print(
            f"eval_cli_invalid: {message}\n"
            f"  do: {self.prog} --help shows what this command takes",
            file=sys.stderr,
        )
        raise SystemExit(EXIT_USAGE)


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit status."""
    words = sys.argv[1:] if argv is None else argv
    parser = _parser(words)
    arguments = parser.parse_args(words)
    if arguments.command is None:
        parser.print_help()
        return EXIT_USAGE
    command = _module(arguments.command)
    _end_like_interrupt()
    try:
        status: int = command.run(arguments)
        sys.stdout.flush()
    except FairtrialError as error:
        return _report(error, as_json=getattr(arguments, "json", False))
    except BrokenPipeError:
        discard(sys.stdout)
        return EXIT_SETUP
    except OSError as error:
        return _report(_refused_by_machine(error, arguments), as_json=False)
    except KeyboardInterrupt:
        way_on = "; a run goes on by the same command with --resume"
        print(f"interrupted{way_on * _resumes(arguments)}", file=sys.stderr)
        return EXIT_INTERRUPTED
    return status


def _end_like_interrupt() -> None:
    """Let the polite signals clean up as Ctrl-C does, instead of killing at once."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell ignores it for what it puts aside, and an event loop replaces no
        # handler but Python's own. Blocked, it is ignored as much, children included.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)


def _interrupt(_: int, frame: FrameType | None) -> None:
    """Do what Ctrl-C does at this moment: a running event loop cancels its work."""
    found = signal.getsignal(signal.SIGINT)
    handler = found if callable(found) else signal.default_int_handler
    handler(signal.SIGINT, frame)


def console() -> NoReturn:
    """Entry point of the `fairtrial` command."""
    steady_streams()
    give_memory_back()
    _leave(main())


def _leave(status: int) -> NoReturn:
    """End the process without taking its heap apart, which takes a tenth of a second.

    Everything that a command opened is closed by then; `main` has told of a reader of
    stdout that is gone.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    os._exit(status)


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"harness.cli.{COMMANDS[name].module}")


def _parser(words: list[str]) -> argparse.ArgumentParser:
    parser = _Parser(
        prog="fairtrial",
        description="Executable, evidence-first evaluation of tool-calling models.",
        epilog="`fairtrial COMMAND --help` shows what a command takes.",
        formatter_class=_OneLineEach,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    called = next((word for word in words if not word.startswith("-")), None)
    for name, command in COMMANDS.items():
        sub = commands.add_parser(name, help=command.help, description=command.help)
        if name == called:
            _module(name).add_arguments(sub)
    return parser


class _OneLineEach(argparse.HelpFormatter):
    """Leaves the longest command name room beside its help, and only that line."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=18)
        # Not worked out from commands, which stand deeper than options.
        self._action_max_length = 16

    def _format_action(self, action: argparse.Action) -> str:
        text = super()._format_action(action)
        if action.nargs != argparse.PARSER:
            return text
        # The line that repeats the metavar says nothing and costs one of a screen.
        return text.partition("\n")[2]


class _Version(argparse.Action):
    """Looks the version up only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"fairtrial {version('fairtrial')}")
        parser.exit()


def _report(error: FairtrialError, *, as_json: bool) -> int:
    print(error, file=sys.stderr)
    if as_json:
        print(json.dumps({"error": error.as_report()}, sort_keys=True))
    return exit_status(error.code)


def _resumes(arguments: argparse.Namespace) -> bool:
    """Tell whether the command goes on with what it left unfinished."""
    return hasattr(arguments, "resume")


def _refused_by_machine(
    error: OSError, arguments: argparse.Namespace
) -> FairtrialError:
    way_on = "; a run goes on with --resume" * _resumes(arguments)
    return FairtrialError(
        "eval_cli_runtime_failed",
        "the machine refused an operation",
        where=str(error.filename or ""),
        expected="free space, rights and descriptors for what the command writes",
        actual=error.strerror or str(error),
        recovery=f"make room or give rights, then repeat{way_on}",
    )
