"""`fairtrial doctor`: what an endpoint, or this machine, will cost a model."""

from __future__ import annotations

import argparse
import json
import os
import sys

from harness.causes import EXIT_DONE
from harness.errors import CandidateError, UsageError

TIMEOUT_S = 60.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.description = (
        "Send ten probes to an endpoint and say what it will make a model lose: exits "
        "0 when all is good, 1 when it costs something, 2 when nobody can tell. With "
        "--sandbox, print how far pack code can be contained on this machine."
    )
    parser.add_argument("--base-url", metavar="URL", help="before /chat/completions")
    parser.add_argument("--model", metavar="M", help="as the endpoint calls it")
    parser.add_argument(
        "--api-key-env", metavar="NAME", help="the environment variable with the key"
    )
    parser.add_argument(
        "--timeout-s",
        type=_seconds,
        default=TIMEOUT_S,
        metavar="S",
        help=f"for one probe with its retries (default: {TIMEOUT_S:g})",
    )
    parser.add_argument(
        "--sandbox", action="store_true", help="examine this machine instead"
    )
    parser.add_argument("--json", action="store_true", help="JSON on stdout")


def run(arguments: argparse.Namespace) -> int:
    """Examine the endpoint or the machine; return the exit status."""
    if arguments.sandbox:
        if arguments.base_url or arguments.model:
            raise _usage("--sandbox looks at this machine and takes no endpoint")
        return _sandbox(as_json=arguments.json)
    if not arguments.base_url or not arguments.model:
        raise _usage("an endpoint is named by --base-url and --model")
    return _endpoint(arguments)


def _sandbox(*, as_json: bool) -> int:
    from harness.doctor.words import render_sandbox
    from harness.oracle.sandbox import detect_sandbox

    found = detect_sandbox()
    if as_json:
        print(json.dumps(found, indent=2, sort_keys=True))
    else:
        print(render_sandbox(found))
    return EXIT_DONE


def _endpoint(arguments: argparse.Namespace) -> int:
    import anyio

    from harness.doctor.examine import Examination, examine
    from harness.doctor.words import examination_report, render_examination

    base_url = _checked(arguments.base_url)
    key = _key(arguments.api_key_env)

    async def examined() -> Examination:
        return await examine(
            base_url,
            arguments.model,
            key,
            timeout_s=arguments.timeout_s,
            watch=lambda probe: print(
                f"{probe.name}: {probe.purpose}", file=sys.stderr
            ),
        )

    try:
        found = anyio.run(examined)
    except CandidateError as error:
        raise _usage(error.violations[0].problem, base_url) from None
    if arguments.json:
        print(json.dumps(examination_report(found), indent=2, sort_keys=True))
    else:
        print(render_examination(found))
    return found.exit_status


def _checked(base_url: str) -> str:
    """Hold an address to the rules of a config, and show nothing of a wrong one."""
    from pydantic_core import PydanticCustomError

    from harness.config.values import checked_base_url

    try:
        return checked_base_url(base_url)
    except PydanticCustomError as error:
        told = error.context or {}
        raise UsageError(
            error.type,
            str(told["problem"]),
            where="--base-url",
            expected=str(told["want"]),
            recovery="--api-key-env names a key; `fairtrial doctor --help` shows more",
        ) from None


def _key(name: str | None) -> str | None:
    if name is None:
        return None
    key = os.environ.get(name)
    if not key:
        raise _usage("the environment variable with the key is not set", name)
    return key


def _usage(problem: str, where: str = "") -> UsageError:
    return UsageError(
        "eval_cli_invalid",
        problem,
        where=where,
        recovery="`fairtrial doctor --help` shows what this command takes",
    )


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is no time in seconds")
    return seconds
