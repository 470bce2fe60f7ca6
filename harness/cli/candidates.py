"""`fairtrial candidates serve`: the control candidates behind a loopback endpoint."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from harness.causes import EXIT_DONE


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the sub-commands."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    serve = actions.add_parser(
        "serve",
        help="serve the control candidates of a benchmark",
        description=(
            "Serve scripted candidates over loopback: gold, and gold with one "
            "declared mistake. The `model` of a request names the control. Prints "
            "one JSON line with the URL when it listens."
        ),
    )
    serve.add_argument(
        "--benchmark",
        type=Path,
        required=True,
        metavar="DIR",
        help="folder that `fairtrial publish` has written",
    )
    serve.add_argument(
        "--port", type=_port, default=0, metavar="N", help="default: a free port"
    )
    serve.add_argument(
        "--seed",
        type=int,
        default=0,
        metavar="N",
        help="decides the ids and what `mixture` draws (default: 0)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Serve until a signal or the parent's end; return the exit status."""
    parent = os.getppid()
    import anyio

    from harness.candidates.control_server import load_controls, serve_controls

    controls = load_controls(arguments.benchmark, seed=arguments.seed)
    anyio.run(lambda: serve_controls(controls, port=arguments.port, parent=parent))
    return EXIT_DONE


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: 0 to 65535")
    return int(text)
