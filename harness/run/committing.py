"""Work that something else accompanies: records are synced while it goes on."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

import anyio

from harness.errors import FairtrialError, first_own
from harness.evidence.commit import Committer
from harness.evidence.log import AppendLog

Result = TypeVar("Result")
Work = Callable[[], Coroutine[Any, Any, Result]]


async def while_committed(logs: Sequence[AppendLog], work: Work[None]) -> None:
    """Do the work while the logs are synced; raise what stopped it.

    A sync that failed ends the work.
    """
    await accompanied(Committer(logs).run, work)


async def accompanied(companion: Work[None], work: Work[Result]) -> Result:
    """Do the work and end its companion after it; raise what stopped either."""
    failure: FairtrialError | None = None
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(companion)
            try:
                result = await work()
            except FairtrialError as error:
                failure = error
            group.cancel_scope.cancel()
    except BaseExceptionGroup as failures:
        raise first_own(failures) from None
    if failure is not None:
        raise failure
    return result
