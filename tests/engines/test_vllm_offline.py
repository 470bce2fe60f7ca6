"""Without vLLM, `vllm_offline` refuses at its start and says what would help."""

import sys

import anyio
import pytest

from harness.causes import exit_status
from harness.engines.protocol import UNKNOWN
from harness.engines.vllm_offline import VllmOffline, VllmOfflineSettings
from harness.errors import EngineError, SourceError


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    return tmp_path


def _enter(engine):
    async def entered():
        async with engine:
            pass

    anyio.run(entered)


def test_absent_vllm_is_a_clear_refusal(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "vllm", None)

    with pytest.raises(EngineError, match="vllm_offline needs vLLM") as caught:
        _enter(VllmOffline(VllmOfflineSettings(folder, "test:tiny@0", "float32")))

    assert exit_status(caught.value.code) == 3
    assert "torch_local" in str(caught.value)


def test_the_checkpoint_is_verified_before_vllm_is_imported(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "vllm", None)
    settings = VllmOfflineSettings(
        folder, "test:tiny@0", "float32", {"config.json": "0" * 64}
    )

    with pytest.raises(SourceError, match="a checkpoint file has changed"):
        _enter(VllmOffline(settings))


def test_nothing_is_known_before_it_ran(folder):
    engine = VllmOffline(VllmOfflineSettings(folder, "test:tiny@0", "float32"))

    assert set(engine.applied().values()) == {UNKNOWN}
    assert engine.conditions()["device"] == UNKNOWN
