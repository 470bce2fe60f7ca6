"""Work whose records are synced while it goes on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import anyio

from harness.errors import FairtrialError, first_own
from harness.evidence.commit import Committer
from harness.evidence.log import AppendLog


async def while_committed(
    logs: Sequence[AppendLog], work: Callable[[], Awaitable[None]]
) -> None:
    """Do the work while the logs are synced; raise what stopped it."""
    failure: FairtrialError | None = None
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(Committer(logs).run)
            try:
                await work()
            except FairtrialError as error:
                failure = error
            group.cancel_scope.cancel()
    except BaseExceptionGroup as failures:
        # A sync that failed ends the run from inside the group.
        raise first_own(failures) from None
    if failure is not None:
        raise failure
