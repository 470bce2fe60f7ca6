"""A reference oracle server: any pack with a Python backend, over HTTP v1 and TLS.

For tests, and for authors who want to see their own endpoint against one that is
right. `python -m harness.oracle.reference_server PACK` prints one JSON line with its
URL when it listens, and stops on SIGTERM or SIGINT. `--write-pack` makes the endpoint
pack that belongs to it: the pack without its backend, and an endpoint_config.yaml.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final, TextIO

import anyio
from anyio.from_thread import BlockingPortal

from harness.benchmark.bundled import resolve_pack
from harness.benchmark.endpoint_config import ATTESTATION, PROTOCOL
from harness.benchmark.pack import Pack, load_pack
from harness.canonical import Json, hash_bytes
from harness.causes import exit_status
from harness.errors import FairtrialError, PackError, UsageError, first_own
from harness.oracle.contracts import (
    IsolationLevel,
    OracleFault,
    WorkerDeadlines,
    WorkerLimits,
)
from harness.oracle.host import OracleHost
from harness.oracle.reference_http import https_server
from harness.oracle.reference_sessions import (
    LIFETIME_S,
    Log,
    ReferenceOracle,
    identity_of,
)
from harness.regular_file import require_file

CERTIFICATE_NAME: Final = "certificate.pem"
KEY_NAME: Final = "key.pem"
_LEVELS: Final[tuple[IsolationLevel, ...]] = ("process", "confined", "namespaces")


@dataclass(frozen=True, slots=True)
class Serving:
    """How a pack is served."""

    certificate: Path
    key: Path
    address: str = "127.0.0.1"
    port: int = 0
    conformance: bytes | None = None
    bearer_token: str | None = None
    level: IsolationLevel = "process"
    lifetime_s: float = LIFETIME_S
    deadlines: WorkerDeadlines | None = None
    limits: WorkerLimits | None = None


@asynccontextmanager
async def serve_pack(
    pack: Pack, serving: Serving, *, log: Log = lambda _: None
) -> AsyncIterator[str]:
    """Serve a pack while the context lasts; yields the base URL.

    Raises UsageError for a port or certificate that cannot be used, PackError for a
    pack without a backend, and OracleFault for one that does not import.
    """
    if pack.endpoint is not None:
        raise PackError(
            "pack_invalid",
            "the pack has no backend to serve",
            where=pack.pack_id,
            expected="a pack with backend.py",
            actual="an endpoint pack",
        )
    host = OracleHost(
        pack.code(),
        level=serving.level,
        deadlines=serving.deadlines,
        limits=serving.limits,
    )
    try:
        async with host, BlockingPortal() as portal:
            oracle = ReferenceOracle(
                pack,
                host,
                conformance=serving.conformance,
                lifetime_s=serving.lifetime_s,
                log=log,
            )
            with _listening(serving, portal, oracle) as port:
                yield f"https://{serving.address}:{port}"
                with anyio.CancelScope(shield=True):
                    await oracle.end()
    except BaseExceptionGroup as failures:
        # The portal is a task group, and puts what passes through it into one.
        raise first_own(failures) from None


@contextmanager
def _listening(
    serving: Serving, portal: BlockingPortal, oracle: ReferenceOracle
) -> Iterator[int]:
    server = https_server(
        lambda *request: portal.call(oracle.answer, *request),
        address=serving.address,
        port=serving.port,
        certificate=serving.certificate,
        key=serving.key,
        bearer_token=serving.bearer_token,
    )
    with ExitStack() as stack:
        try:
            port = stack.enter_context(server)
        except OSError as error:
            raise _cannot_listen(serving, error) from None
        yield port


def _cannot_listen(serving: Serving, error: OSError) -> UsageError:
    return UsageError(
        "eval_cli_invalid",
        "the server cannot listen",
        where=f"{serving.address}:{serving.port}",
        expected="a free port, and a certificate in PEM that belongs to its key",
        actual=error.strerror or str(error),
        recovery="choose another --port, or another certificate",
    )


def make_certificate(folder: Path, address: str) -> tuple[Path, Path]:
    """Make a self-signed certificate for an address with the `openssl` command.

    Returns certificate and key; ones that are there already are kept.
    """
    folder.mkdir(parents=True, exist_ok=True)
    certificate, key = folder / CERTIFICATE_NAME, folder / KEY_NAME
    if certificate.exists() and key.exists():
        return certificate, key
    kind = "IP" if address.replace(".", "").isdigit() or ":" in address else "DNS"
    command = [
        *("openssl", "req", "-x509", "-newkey", "ec", "-nodes", "-days", "825"),
        *("-pkeyopt", "ec_paramgen_curve:prime256v1"),
        *("-subj", "/CN=fairtrial reference oracle"),
        *("-addext", f"subjectAltName={kind}:{address}"),
        *("-keyout", str(key), "-out", str(certificate)),
    ]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=60)  # noqa: S603
    except (OSError, subprocess.SubprocessError) as error:
        raise UsageError(
            "eval_cli_invalid",
            "no certificate could be made",
            where=str(folder),
            expected="the `openssl` command",
            actual=str(error),
            recovery="install it, or give --certificate and --key",
        ) from None
    return certificate, key


def write_endpoint_pack(
    pack: Pack,
    folder: Path,
    *,
    base_url: str,
    certificate: Path,
    conformance: bytes | None = None,
    bearer_token_env: str | None = None,
) -> None:
    """Write the pack as an endpoint pack whose oracle is served at `base_url`.

    Raises UsageError where something stands, PackError where the result would not
    load (a manifest that names its backend by path has to be edited by hand).
    """
    if folder.exists():
        raise UsageError(
            "eval_output_exists",
            "the folder of the endpoint pack exists",
            where=str(folder),
            expected="a path that does not exist yet",
        )
    backend = pack.manifest.paths["backend"]
    shutil.copytree(
        pack.root,
        folder,
        ignore=lambda place, names: [
            name
            for name in names
            if name == "__pycache__" or Path(place, name) == backend
        ],
    )
    shutil.copyfile(certificate, folder / CERTIFICATE_NAME)
    content: dict[str, Json] = {
        "protocol_version": PROTOCOL,
        "base_url": base_url,
        "expected": {
            name: value
            for name, value in identity_of(pack).items()
            if name != "protocol_version"
        },
        "tls": {"ca_bundle_path": CERTIFICATE_NAME},
    }
    if conformance is not None:
        digest = hash_bytes(conformance)
        content["attestation"] = {"kind": ATTESTATION, "expected_digest": digest}
    if bearer_token_env is not None:
        content["auth"] = {"bearer_token_env": bearer_token_env}
    # JSON is YAML, and needs no writer of its own.
    (folder / "endpoint_config.yaml").write_text(
        json.dumps(content, indent=2) + "\n", encoding="utf-8"
    )
    load_pack(folder)


def main(argv: Sequence[str] | None = None) -> int:
    """Serve a pack as a process of its own; return its exit status."""
    arguments = _parser().parse_args(argv)
    try:
        pack = load_pack(resolve_pack(arguments.pack))
        anyio.run(_run, pack, arguments)
    except FairtrialError as error:
        print(error, file=sys.stderr)  # noqa: T201 (the log of the process)
        return exit_status(error.code)
    except OracleFault as fault:
        print(f"the pack cannot be served: {fault}", file=sys.stderr)  # noqa: T201
        return exit_status("eval_oracle_session_failed")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m harness.oracle.reference_server",
        description="Serve a pack with a Python backend over BFCL Oracle HTTP v1.",
    )
    parser.add_argument("pack", metavar="PACK", help="a folder, or a bundled name")
    parser.add_argument("--address", default="127.0.0.1", help="(127.0.0.1)")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one (0)")
    parser.add_argument("--certificate", type=Path, metavar="PEM")
    parser.add_argument("--key", type=Path, metavar="PEM")
    parser.add_argument(
        *("--new-certificate",),
        type=Path,
        metavar="DIR",
        help="make a self-signed pair in DIR, or use the one that is there",
    )
    parser.add_argument(
        "--conformance", type=Path, metavar="FILE", help="served as it is"
    )
    parser.add_argument(
        *("--bearer-token-env",),
        metavar="NAME",
        help="ask for the token that this variable holds",
    )
    parser.add_argument(
        "--write-pack", type=Path, metavar="DIR", help="write the endpoint pack"
    )
    parser.add_argument("--log", type=Path, metavar="FILE", help="JSON lines (stderr)")
    parser.add_argument("--level", choices=_LEVELS, default="process")
    parser.add_argument(
        "--timeout", type=float, default=10.0, metavar="S", help="one operation (10)"
    )
    return parser


async def _run(pack: Pack, arguments: argparse.Namespace) -> None:
    serving = _serving(arguments)
    opened = _log_stream(arguments.log)
    with (
        opened as stream,
        anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals,
    ):

        def log(line: dict[str, Json]) -> None:
            print(json.dumps(line), file=stream, flush=True)

        async with serve_pack(pack, serving, log=log) as base_url:
            if arguments.write_pack is not None:
                write_endpoint_pack(
                    pack,
                    arguments.write_pack,
                    base_url=base_url,
                    certificate=serving.certificate,
                    conformance=serving.conformance,
                    bearer_token_env=arguments.bearer_token_env,
                )
            ready = {"url": base_url, **identity_of(pack), "pid": os.getpid()}
            print(json.dumps(ready), flush=True)  # noqa: T201 (the ready line)
            async for _ in signals:
                return


def _log_stream(path: Path | None) -> nullcontext[TextIO] | TextIO:
    return nullcontext(sys.stderr) if path is None else path.open("a", encoding="utf-8")


def _serving(arguments: argparse.Namespace) -> Serving:
    certificate, key = arguments.certificate, arguments.key
    if arguments.new_certificate is not None:
        certificate, key = make_certificate(
            arguments.new_certificate, arguments.address
        )
    if certificate is None or key is None:
        raise UsageError(
            "eval_cli_invalid",
            "the server has no certificate",
            expected="--certificate and --key, or --new-certificate DIR",
        )
    require_file(certificate, "--certificate")
    require_file(key, "--key")
    token = None
    if arguments.bearer_token_env is not None:
        token = os.environ.get(arguments.bearer_token_env)
        if not token:
            raise UsageError(
                "eval_cli_invalid",
                "the variable with the bearer token is not set",
                where=arguments.bearer_token_env,
            )
    document: Path | None = arguments.conformance
    if document is not None:
        require_file(document, "--conformance")
    return Serving(
        certificate=certificate,
        key=key,
        address=arguments.address,
        port=arguments.port,
        conformance=None if document is None else document.read_bytes(),
        bearer_token=token,
        level=arguments.level,
        deadlines=WorkerDeadlines(*[arguments.timeout] * len(fields(WorkerDeadlines))),
    )


if __name__ == "__main__":
    raise SystemExit(main())
