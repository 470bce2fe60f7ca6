"""From a section of the config to the engine that it describes.

Libraries of an engine are imported only where one of its kind is built. Building opens
nothing and loads nothing; entering the engine does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from harness.candidates.api_key import api_key
from harness.canonical import Json
from harness.config.predict_document import (
    ChatEndpoint,
    ChatHttpSection,
    DecodingSection,
    EmbeddingsHttpSection,
    EngineSection,
    TorchLocalSection,
    VllmOfflineSection,
    VllmServerSection,
)
from harness.engines.chat_request import ChatSettings
from harness.engines.protocol import Decoding, Engine
from harness.errors import UsageError
from harness.evidence.candidate_log import CandidateLog

if TYPE_CHECKING:
    from harness.engines.chat_http import ChatHttpEngine
    from harness.engines.torch_checkpoint import TorchSettings


class Embedder(Protocol):
    """One way to get vectors for texts; an async context manager."""

    @property
    def batch_size(self) -> int:
        """How many texts are embedded at once."""

    async def __aenter__(self) -> Self:
        """Load or open."""

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Free or close."""

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector a text, in the order of the texts."""

    def conditions(self) -> Mapping[str, Json]:
        """Return what is known of the runtime."""


@dataclass(frozen=True, slots=True)
class EnginePlace:
    """Where an engine works and what it records in."""

    run_folder: Path
    """Output folder of the run, for logs of servers."""
    config_folder: Path
    """From which relative paths of the config start."""
    log: CandidateLog
    """The log of requests over HTTP."""
    subject: int
    """Number of the subject that it answers for, from 0."""


def build_engine(name: str, section: EngineSection, place: EnginePlace) -> Engine:
    """Build the engine that the config calls `name`.

    Raises CandidateError for a key that is not set or that no header can carry.
    """
    if isinstance(section, ChatHttpSection):
        return chat_engine(section, key_of(name, section), place)
    if isinstance(section, TorchLocalSection):
        from harness.engines.torch_local import TorchLocal

        return TorchLocal(_torch_settings(section, place.config_folder))
    if isinstance(section, VllmServerSection):
        return _vllm_server(name, section, place)
    if isinstance(section, VllmOfflineSection):
        return _vllm_offline(section, place)
    raise _not_built(name, section)


def chat_engine(
    section: ChatHttpSection, key: str | None, place: EnginePlace
) -> ChatHttpEngine:
    """Build the engine of a chat endpoint; what was recorded is read without a key."""
    from harness.engines.chat_http import ChatHttpEngine

    return ChatHttpEngine(
        _chat_settings(section, section.max_in_flight, section.max_tokens_field),
        key,
        place.log,
        subject=place.subject,
    )


def build_embedder(name: str, section: EngineSection, place: EnginePlace) -> Embedder:
    """Build the engine of vectors that the config calls `name`."""
    if isinstance(section, EmbeddingsHttpSection):
        from harness.engines.embeddings_http import EmbeddingsHttp

        return EmbeddingsHttp(
            _chat_settings(section, 1),
            key_of(name, section),
            batch_size=section.batch_size,
        )
    if isinstance(section, TorchLocalSection):
        from harness.engines.torch_embedding import TorchEmbedder

        settings = _torch_settings(section, place.config_folder)
        return TorchEmbedder(settings)
    raise _not_built(name, section)


def key_of(name: str, section: EngineSection) -> str | None:
    """Return the key of an endpoint; raise CandidateError for one that is no use."""
    if not isinstance(section, ChatHttpSection | EmbeddingsHttpSection):
        return None
    where = f"engines.{name}.candidate.api_key_env"
    return api_key(section.candidate.api_key_env, where=where)


def decoding_of(section: DecodingSection) -> Decoding:
    """Return the decoding that a section asks for."""
    return Decoding(**section.model_dump())


def model_of(section: EngineSection) -> dict[str, Json]:
    """Return which model a section says that it answers with."""
    if isinstance(section, ChatHttpSection | EmbeddingsHttpSection):
        candidate = section.candidate
        return {
            "alias": candidate.alias,
            "canonical_id": candidate.canonical_id,
            "model": candidate.model,
            "provider": candidate.provider,
        }
    if isinstance(section, TorchLocalSection):
        return {"canonical_id": section.model_identity}
    return {"canonical_id": section.model_identity, "model": section.model}


def _chat_settings(
    section: ChatHttpSection | EmbeddingsHttpSection,
    max_in_flight: int,
    max_tokens_field: str = "max_tokens",
) -> ChatSettings:
    candidate: ChatEndpoint = section.candidate
    return ChatSettings(
        alias=candidate.alias,
        canonical_id=candidate.canonical_id,
        provider=candidate.provider,
        provider_api_version=candidate.provider_api_version,
        base_url=candidate.base_url,
        model=candidate.model,
        api_key_env=candidate.api_key_env,
        provider_extensions=candidate.provider_extensions,
        max_in_flight=max_in_flight,
        timeout_s=section.timeout_s,
        max_retries=section.max_retries,
        max_tokens_field="max_completion_tokens"
        if max_tokens_field == "max_completion_tokens"
        else "max_tokens",
    )


def _torch_settings(section: TorchLocalSection, folder: Path) -> TorchSettings:
    from harness.engines.torch_checkpoint import TorchSettings

    return TorchSettings(
        model=folder / section.model,
        checkpoint_sha256=section.checkpoint_sha256,
        device=section.device,
        dtype=section.dtype,
        batch_size=section.batch_size,
        model_identity=section.model_identity,
        chat_template=section.chat_template,
    )


def _vllm_server(name: str, section: VllmServerSection, place: EnginePlace) -> Engine:
    from harness.engines.chat_http import ChatHttpEngine
    from harness.engines.vllm_server import (
        LOCAL_BASE_URL,
        VllmServer,
        VllmServerSettings,
        changed_fields,
        vllm_fields,
    )

    settings = VllmServerSettings(
        model=section.model,
        model_identity=section.model_identity,
        command=section.command,
        port=section.port,
        start_timeout_s=section.start_timeout_s,
        stop_timeout_s=section.stop_timeout_s,
        log=place.run_folder / f"server-{name}.log",
        checkpoint_sha256=section.checkpoint_sha256,
        arguments=section.arguments,
        dtype=section.dtype,
        health_path=section.health_path,
        folder=place.config_folder,
    )
    chat = ChatSettings(
        alias=name,
        canonical_id=section.model_identity,
        provider="local",
        provider_api_version="v1",
        base_url=LOCAL_BASE_URL,
        model=settings.model,
        api_key_env=None,
        provider_extensions={},
        max_in_flight=section.max_in_flight,
        timeout_s=section.timeout_s,
        max_retries=section.max_retries,
    )
    more = vllm_fields if section.command is None else changed_fields
    return VllmServer(
        settings,
        lambda transport: ChatHttpEngine(
            chat,
            None,
            place.log,
            subject=place.subject,
            transport=transport,
            more_fields=more,
        ),
    )


def _vllm_offline(section: VllmOfflineSection, place: EnginePlace) -> Engine:
    from harness.engines.vllm_offline import VllmOffline, VllmOfflineSettings

    return VllmOffline(
        VllmOfflineSettings(
            model=place.config_folder / section.model,
            model_identity=section.model_identity,
            dtype=section.dtype,
            checkpoint_sha256=section.checkpoint_sha256,
            batch_size=section.batch_size,
            options=section.options,
        )
    )


def _not_built(name: str, section: EngineSection) -> UsageError:
    kinds = VllmServerSection | VllmOfflineSection
    known = "generates text only" if isinstance(section, kinds) else "gives vectors"
    return UsageError(
        "eval_config_invalid",
        f"an engine of kind {section.kind} {known}",
        where=f"engines.{name}",
        recovery="name an engine of another kind",
    )
