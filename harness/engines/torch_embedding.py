"""Texts as vectors: the mean of a checkpoint's last hidden states over a text's tokens.

What a comparator does with the vectors is not decided here; they are not normalised.
Padding is masked out of the mean, so a text has one vector in any batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import anyio.lowlevel

from harness.canonical import Json
from harness.engines.decoding_rules import TORCH_LOCAL
from harness.engines.library_border import LibraryBorder
from harness.engines.runtime_versions import operating_system, runtime_versions
from harness.engines.torch_checkpoint import TorchSettings, verified_files
from harness.engines.torch_loading import (
    context_tokens,
    import_library,
    load_weights,
    loading,
    require_device,
)
from harness.errors import EngineError


class TorchEmbedder:
    """Loads the checkpoint's encoder on entry, gives vectors, and frees on exit."""

    def __init__(self, settings: TorchSettings) -> None:
        self.settings = settings
        self.checkpoint_sha256: Mapping[str, str] = {}
        """Every file that may have been loaded, once it is entered."""
        self._torch: Any = None
        self._tokenizer: Any = None
        self._model: Any = None

    @property
    def name(self) -> str:
        """The kind of engine."""
        return TORCH_LOCAL

    @property
    def batch_size(self) -> int:
        """Texts that are computed at once."""
        return self.settings.batch_size

    async def __aenter__(self) -> Self:
        self.checkpoint_sha256 = verified_files(
            self.settings.model, self.settings.checkpoint_sha256
        )
        self._torch, transformers = import_library(self.settings)
        require_device(self._torch, self.settings)
        with loading(self.settings):
            self._tokenizer = transformers.AutoTokenizer.from_pretrained(
                self.settings.model, local_files_only=True, trust_remote_code=False
            )
            self._model = load_weights(
                transformers.AutoModel.from_pretrained,
                self._torch,
                self.settings,
                # Works on the hidden states, which are taken as they are.
                may_lack=("pooler.",),
            )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._model = self._tokenizer = None

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector a text, in the order of the texts.

        A batch blocks the event loop: it is one pass over the texts, without decoding.

        Raises EngineError for a text without tokens or beyond the context, naming its
        position, and where the library breaks down.
        """
        with LibraryBorder(
            "eval_engine_failed",
            "the model broke down while it embedded texts",
            where=self.settings.model.name,
            recovery="look at the message of the library",
        ):
            tokens = [self._tokenizer(text)["input_ids"] for text in texts]
            self._refuse_unfit(tokens)
            vectors: list[list[float]] = []
            size = self.settings.batch_size
            for start in range(0, len(tokens), size):
                vectors += self._means(tokens[start : start + size])
                await anyio.lowlevel.checkpoint()
            return vectors

    def conditions(self) -> Mapping[str, Json]:
        """Return library, versions, device and type of the computation."""
        return {
            "engine": TORCH_LOCAL,
            "engine_impl": "transformers",
            "pooling": "mean of the last hidden states over all tokens of a text",
            "model_identity": self.settings.model_identity,
            "device": self.settings.device,
            "compute_dtype": self.settings.dtype,
            "os": operating_system(),
            "versions": runtime_versions(),
        }

    def _refuse_unfit(self, tokens: Sequence[list[int]]) -> None:
        limit = context_tokens(self._model)
        for position, each in enumerate(tokens):
            if not each or (limit is not None and len(each) > limit):
                raise EngineError(
                    "eval_engine_failed",
                    "a text cannot be embedded",
                    where=f"text {position}",
                    expected=f"1 to {limit} tokens",
                    actual=f"{len(each)} tokens",
                    recovery="leave the row out, or use a model that takes it",
                )

    def _means(self, batch: Sequence[list[int]]) -> list[list[float]]:
        torch, device = self._torch, self._model.device
        width = max(map(len, batch))
        padding = self._tokenizer.pad_token_id or 0
        padded = [each + [padding] * (width - len(each)) for each in batch]
        mask = [[1] * len(each) + [0] * (width - len(each)) for each in batch]
        with torch.inference_mode():
            attention = torch.tensor(mask, device=device)
            states = self._model(
                input_ids=torch.tensor(padded, device=device), attention_mask=attention
            ).last_hidden_state.float()
            weights = attention.unsqueeze(-1).float()
            means = (states * weights).sum(dim=1) / weights.sum(dim=1)
        found: list[list[float]] = means.tolist()
        return found
