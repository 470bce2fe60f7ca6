"""`vllm_server`: a vLLM server that we start, watch and stop, asked over HTTP.

The life cycle is here, the requests are the chat engine's, which is given the server's
address. With `command` another server is started instead, and nothing is assumed of it.
Rows that failed while the server was ending are not handed on: the run stops, and a
resumed run asks them again.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import anyio

from harness.candidates.http1 import WireResponse
from harness.candidates.transport import HttpTransport, Origin
from harness.canonical import Json
from harness.engines.chat_http import ChatHttpEngine
from harness.engines.decoding_rules import VLLM_SERVER, refusals_of
from harness.engines.measuring import (
    LOAD,
    PEAK_MEMORY,
    first_token_figures,
    rate_figure,
)
from harness.engines.protocol import (
    CONTEXT_OVERFLOW,
    UNKNOWN,
    Decoding,
    Generation,
    Measurement,
    PromptRow,
    Refusal,
)
from harness.engines.runtime_versions import (
    gpu_names,
    operating_system,
    runtime_versions,
)
from harness.engines.server_process import (
    LOOPBACK,
    ServerCommand,
    ServerProcess,
    fill_placeholders,
    free_port,
)
from harness.engines.stream_timing import (
    RATE_BOUNDARY,
    START_BOUNDARY,
    StreamTimes,
    time_answers,
)
from harness.engines.vllm_questions import prompt_room, server_version
from harness.errors import EngineError
from harness.predictions.digests import verify_checkpoint

MEMORY_PERIOD_S: Final = 0.1
_REFUSED: Final = "provider_rejected"
_MODULE: Final = "vllm.entrypoints.openai.api_server"
_ENVIRONMENT: Final = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}


@dataclass(frozen=True, slots=True)
class VllmServerSettings:
    """What is served and how, as the config says."""

    model: str
    """What is served, as its command line takes it: the folder of a checkpoint. It is
    also the name in requests, so it is best given relative to `folder`."""
    model_identity: str
    """Which weights these are: `source:model@revision-or-digest`."""
    command: tuple[str, ...] | None
    """Another server instead, `{port}` and `{model}` are replaced; None: vLLM."""
    port: int | None
    """None: any free one."""
    start_timeout_s: float
    """From the start to the first healthy answer."""
    stop_timeout_s: float
    """From the request to end to the kill."""
    log: Path
    """What the server prints, appended."""
    checkpoint_sha256: Mapping[str, str] | None = None
    """File name to 64 hex digits; None: nothing was declared."""
    arguments: tuple[str, ...] = ()
    """Added to the command of vLLM; not used with `command`."""
    dtype: str = "auto"
    """`float32`, `bfloat16`, `float16`, or `auto` for what vLLM chooses."""
    health_path: str = "/health"
    folder: Path = Path()
    """Where the server runs: relative names in its command start here."""


LOCAL_BASE_URL: Final = f"http://{LOOPBACK}/v1"
"""Where the chat engine is told to send: the port may differ at every start, so it is
no part of a request's identity, and a resumed run finds the answers it has."""
Client = Callable[[HttpTransport], ChatHttpEngine]
"""Builds the engine that sends requests to LOCAL_BASE_URL over a transport."""


class _PortTransport(HttpTransport):
    """Sends to one port, whatever port a request names."""

    def __init__(self, port: int) -> None:
        super().__init__()
        self._port = port

    async def send(self, origin: Origin, data: bytes) -> WireResponse:
        return await super().send(origin._replace(port=self._port), data)


def vllm_fields(decoding: Decoding) -> dict[str, Json]:
    """Return the body fields of vLLM beyond the chat interface, all given explicitly.

    Left out, they would come from the checkpoint's generation_config.json.
    """
    return {
        "top_k": -1 if decoding.top_k is None else decoding.top_k,
        "repetition_penalty": decoding.repetition_penalty,
    }


def changed_fields(decoding: Decoding) -> dict[str, Json]:
    """Return those of `vllm_fields` that ask for something, for another server."""
    found: dict[str, Json] = {}
    if decoding.top_k is not None:
        found["top_k"] = decoding.top_k
    if decoding.repetition_penalty != 1:
        found["repetition_penalty"] = decoding.repetition_penalty
    return found


def server_command(settings: VllmServerSettings, port: int) -> tuple[str, ...]:
    """Return the command line; raise EngineError where vLLM is not installed."""
    if settings.command is not None:
        return fill_placeholders(settings.command, port=port, model=settings.model)
    if importlib.util.find_spec("vllm") is None:
        raise EngineError(
            "eval_engine_start_failed",
            "vllm_server needs vLLM, and it is not installed",
            expected="vLLM beside fairtrial, or a command",
            actual=f"no module vllm for {sys.executable}",
            recovery="install vLLM, or set command: to what starts the server",
        )
    return (
        *(sys.executable, "-m", _MODULE, "--model", settings.model),
        *("--host", LOOPBACK, "--port", str(port), "--dtype", settings.dtype),
        # Else the checkpoint's generation_config.json would set sampling defaults.
        *("--generation-config", "vllm"),
        *settings.arguments,
    )


class VllmServer:
    """Starts the server on entry, answers by its client, stops it on exit."""

    def __init__(self, settings: VllmServerSettings, client: Client) -> None:
        self.settings = settings
        self._build_client = client
        self._server: ServerProcess | None = None
        self._client: ChatHttpEngine | None = None
        self._applied: Mapping[str, Json] | None = None
        self._observed: dict[str, Json] = {"server_version": UNKNOWN}

    @property
    def name(self) -> str:
        """The kind of engine."""
        return VLLM_SERVER

    @property
    def measures_fresh(self) -> bool:
        """The first token is cold only before any other answer."""
        return True

    def refusals(self, decoding: Decoding) -> tuple[Refusal, ...]:
        """Return every setting that a vLLM server cannot apply."""
        return refusals_of(self.name, decoding)

    async def __aenter__(self) -> Self:
        settings = self.settings
        if settings.checkpoint_sha256 is not None:
            verify_checkpoint(
                settings.folder / settings.model, settings.checkpoint_sha256
            )
        port = free_port() if settings.port is None else settings.port
        server = ServerProcess(
            ServerCommand(
                server_command(settings, port),
                port,
                settings.health_path,
                settings.log,
                settings.start_timeout_s,
                settings.stop_timeout_s,
                _ENVIRONMENT,
                settings.folder,
            )
        )
        await server.__aenter__()
        try:
            self._observed["server_version"] = await server_version(server.address)
            client = self._build_client(_PortTransport(port))
            await client.__aenter__()
        except BaseException as error:
            await server.__aexit__(type(error), error, error.__traceback__)
            raise
        self._server, self._client = server, client
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        server, client = self._running()
        self._applied = client.applied()
        self._server = self._client = None
        try:
            await client.__aexit__(kind, error, trace)
        finally:
            await server.__aexit__(kind, error, trace)

    def _running(self) -> tuple[ServerProcess, ChatHttpEngine]:
        if self._server is None or self._client is None:
            raise RuntimeError("the engine is used outside its `async with` block")
        return self._server, self._client

    async def generate(
        self,
        rows: Sequence[PromptRow],
        decoding: Decoding,
        take: Callable[[Generation], None],
    ) -> None:
        """Answer every row; raises EngineError where the server ends meanwhile."""
        server, client = self._running()
        doubtful: list[Generation] = []

        def take_unless_doubtful(found: Generation) -> None:
            if found.stopped:
                doubtful.append(found)
            else:
                take(found)

        async def work() -> None:
            await client.generate(rows, decoding, take_unless_doubtful)
            if not server.is_running():
                # The watcher is about to say how it ended.
                await anyio.sleep_forever()

        await server.while_running(work)
        asked = {row.row_id: row for row in rows}
        for found in doubtful:
            take(await self._judged(found, asked[found.row_id], decoding))

    async def _judged(
        self, found: Generation, row: PromptRow, decoding: Decoding
    ) -> Generation:
        """Return a refused row as too long where the server's own count says so.

        vLLM refuses such a prompt as it refuses a malformed request.
        """
        server, client = self._running()
        if found.failure != _REFUSED:
            return found
        room = await prompt_room(server.address, client.settings.model, row)
        if (
            room is None
            or room.prompt_tokens + decoding.max_tokens <= room.context_tokens
        ):
            return found
        return replace(
            found,
            failure=CONTEXT_OVERFLOW,
            prompt_tokens=room.prompt_tokens,
            generated_tokens=0,
            stopped=False,
        )

    def applied(self) -> Mapping[str, Json]:
        """Return what the client can tell: a server does not say what it applied."""
        if self._client is not None:
            return self._client.applied()
        return self._applied or {}

    def conditions(self) -> Mapping[str, Json]:
        """Return what is known of the server; unknown where it is another one."""
        own = self.settings.command is None
        versions: Json = runtime_versions() if own else UNKNOWN
        return {
            "engine": self.name,
            "engine_impl": "vllm" if own else UNKNOWN,
            "model_identity": self.settings.model_identity,
            "os": operating_system(),
            "versions": versions,
            "device": _device() if own else UNKNOWN,
            "device_name": ", ".join(gpu_names()) or None if own else UNKNOWN,
            "weight_dtype": self._dtype() if own else UNKNOWN,
            "compute_dtype": self._dtype() if own else UNKNOWN,
            **self._observed,
        }

    def _dtype(self) -> str:
        return UNKNOWN if self.settings.dtype == "auto" else self.settings.dtype

    async def measure(
        self, rows: Sequence[PromptRow], decoding: Decoding
    ) -> tuple[Measurement, ...]:
        """Time the rows one by one, in their order, by requests of their own.

        Memory and the time to load are the server's. Rows that the server does not
        answer are left out. Nothing of this is evidence of an answer.
        """
        server, client = self._running()
        samples: list[int] = []

        async def sample_memory() -> None:
            while True:
                size = server.memory_bytes()
                if size is not None:
                    samples.append(size)
                await anyio.sleep(MEMORY_PERIOD_S)

        async def work() -> StreamTimes:
            fields = client.fields(decoding)
            bodies = [client.body(row, fields) for row in rows]
            return await time_answers(
                f"{server.address}/v1", bodies, client.settings.timeout_s
            )

        times = await server.while_running(work, sample_memory)
        return (
            *first_token_figures(times.first_token_s, START_BOUNDARY),
            rate_figure(times.tokens_and_s, RATE_BOUNDARY),
            memory_figure(samples, "the server"),
            Measurement(
                LOAD,
                server.ready_after_s,
                "s",
                "wall time from starting the server to the first healthy answer",
            ),
        )


def memory_figure(samples: Sequence[int], of: str) -> Measurement:
    """Return the largest of several sizes of a process tree; `of` names its root."""
    return Measurement(
        PEAK_MEMORY,
        max(samples, default=None),
        "bytes",
        f"largest of {len(samples)} samples of the resident size of {of} and all "
        "processes below it, taken while rows were measured: a lower bound, without "
        "memory on a device"
        if samples
        else f"not measured: no size of {of} was read while rows were measured",
    )


def _device() -> str:
    """Return where the vLLM beside us computes, by the build of its torch."""
    if "+cpu" in runtime_versions().get("torch", ""):
        return "cpu"
    return "cuda" if gpu_names() else UNKNOWN
