"""What a library raises is the engine's error; what is ours passes untouched."""

import anyio
import pytest

from harness.engines.library_border import LibraryBorder
from harness.errors import EngineError, SourceError

BORDER = LibraryBorder("eval_engine_failed", "it broke", "there", "look")


def test_any_exception_becomes_an_engine_error_with_its_words():
    with pytest.raises(EngineError) as caught, BORDER:
        raise ZeroDivisionError("first\n" + "\n".join(map(str, range(20))))

    (violation,) = caught.value.violations
    assert violation.code == "eval_engine_failed"
    assert violation.actual.splitlines() == [
        *("ZeroDivisionError: first", "0", "1", "2", "3", "4"),
    ]
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_an_exception_without_words_is_named():
    with pytest.raises(EngineError, match="KeyError: "), BORDER:
        raise KeyError


def test_an_error_of_ours_passes():
    fault = SourceError("eval_predictions_drift", "changed")

    with pytest.raises(SourceError) as caught, BORDER:
        raise fault

    assert caught.value is fault


def test_cancellation_passes():
    async def cancelled():
        with anyio.CancelScope() as scope:
            scope.cancel()
            with BORDER:
                await anyio.sleep_forever()
        return scope.cancelled_caught

    assert anyio.run(cancelled)


def test_nothing_raised_is_nothing_done():
    with BORDER:
        pass
