"""The drill's endpoint: a gold candidate whose answers go wrong on a schedule.

A request is recognised by its opening, which no other task of the benchmark shares,
and by how many answers it holds. Every fault that was really put on the wire is
counted, so that the drill compares what happened and not what was planned.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
from anyio.abc import TaskGroup

from harness.candidates.control import ControlCandidate, Response
from harness.candidates.control_conversation import (
    Opening,
    UnreadableConversationError,
    read_conversation,
)
from harness.candidates.control_server import answer
from harness.candidates.loopback_http import (
    LOOPBACK,
    Delivery,
    Handler,
    Request,
    SocketStreamListener,
    listen,
    port_of,
    serve,
)
from harness.canonical import canonical_bytes
from harness.drill import deliveries
from harness.drill.layout import TaskLayout
from harness.drill.schedule import ServingHit
from harness.errors import first_own
from harness.strict_json import decode_object

MODEL = "gold"


@dataclass(slots=True)
class DrillEndpoint:
    """The answers of one round."""

    controls: ControlCandidate
    hits: dict[Opening, ServingHit]
    refuses_key_from: int | None = None
    """The number of the request, from 1, from which on the key is refused."""
    requests: int = 0
    injected: Counter[str] = field(default_factory=Counter)
    """Faults put on the wire, by task id."""
    _tries: Counter[tuple[str, int]] = field(default_factory=Counter)

    @classmethod
    def of(
        cls,
        controls: ControlCandidate,
        tasks: Iterable[TaskLayout],
        hits: Sequence[ServingHit],
    ) -> DrillEndpoint:
        """Return the endpoint that makes these hits."""
        openings = {task.task_id: task.opening for task in tasks}
        return cls(controls, {openings[hit.task_id]: hit for hit in hits})

    def answer(self, request: Request) -> Response | Delivery:
        """Answer one request, as gold or as planned."""
        self.requests += 1
        if self.refuses_key_from is not None and self.requests >= self.refuses_key_from:
            return deliveries.whole(b'{"error":{"message":"no"}}', 401)
        response = answer(self.controls, request)
        if response.status != 200 or request.method != "POST":
            return response
        hit = self._due(request)
        if hit is None:
            return deliveries.whole(canonical_bytes(response.payload))
        self.injected[hit.task_id] += 1
        return hit.fault.spoil(response.payload)

    def _due(self, request: Request) -> ServingHit | None:
        try:
            messages = decode_object(request.body.decode("utf-8")).get("messages")
            conversation = read_conversation(messages)
        except UnreadableConversationError:
            return None
        hit = self.hits.get(conversation.opening)
        turn_index = len(conversation.answers)
        if hit is None or hit.turn_index not in (None, turn_index):
            return None
        self._tries[hit.task_id, turn_index] += 1
        tries = self._tries[hit.task_id, turn_index]
        if hit.fault.attempts is not None and tries > hit.fault.attempts:
            return None
        return hit


class Line:
    """A place on loopback that can be taken away and put back."""

    def __init__(self, group: TaskGroup, handler: Handler) -> None:
        self._group = group
        self._handler = handler
        self._scope = anyio.CancelScope()
        self._down = anyio.Event()
        self.port = 0

    @property
    def base_url(self) -> str:
        """The base URL of the endpoint."""
        return f"http://{LOOPBACK}:{self.port}/v1"

    async def open(self) -> None:
        """Listen; after a cut, at the same place as before."""
        listener = await listen(self.port)
        self.port = port_of(listener)
        self._scope, self._down = anyio.CancelScope(), anyio.Event()
        self._group.start_soon(self._serve, listener, self._scope, self._down)

    async def cut(self) -> None:
        """Drop all connections and refuse new ones from now on."""
        self._scope.cancel()
        await self._down.wait()

    async def _serve(
        self,
        listener: SocketStreamListener,
        scope: anyio.CancelScope,
        down: anyio.Event,
    ) -> None:
        with scope:
            async with listener:
                await serve(listener, self._handler)
        down.set()


@asynccontextmanager
async def connected(endpoint: DrillEndpoint) -> AsyncIterator[Line]:
    """Serve an endpoint for as long as the context lasts."""
    try:
        async with anyio.create_task_group() as group:
            line = Line(group, endpoint.answer)
            await line.open()
            yield line
            group.cancel_scope.cancel()
    except BaseExceptionGroup as failures:
        raise first_own(failures) from None
