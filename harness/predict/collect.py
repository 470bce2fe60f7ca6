"""Collect what every row of every subject comes to, and record it as it comes.

A row with a final answer is never asked again. A stop, a row without an answer for a
reason that is not the model's, is asked again by a resumed run; when more rows than
the config's share are stopped, the run is given up, for no score could stand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import anyio

from harness.canonical import Json, canonical_json, content_hash
from harness.config.predict_document import TorchLocalSection
from harness.engines.protocol import UNKNOWN, Decoding, Engine, Generation, PromptRow
from harness.errors import (
    EngineError,
    FairtrialError,
    SourceError,
    StopLimitError,
    first_own,
)
from harness.evidence.candidate_log import CandidateLog
from harness.evidence.commit import Committer
from harness.evidence.generation_log import GenerationLog, RecordedRow
from harness.predict.folder import PredictFolder
from harness.predict.nearest import nearest
from harness.predict.plan import PredictPlan, Subject
from harness.predict.registry import (
    Embedder,
    EnginePlace,
    build_embedder,
    build_engine,
    decoding_of,
)
from harness.predictions.answers import read_labels
from harness.predictions.questions import CLASSIFICATION, Question, read_questions

OVER_CAP = "stops.share_over_cap"


@dataclass(frozen=True, slots=True)
class Progress:
    """One row more, for whoever watches the run."""

    subject: str
    done: int
    planned: int
    stops: int


Watch = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Party:
    """One subject with what answers for it; nothing is loaded or opened yet."""

    subject: Subject
    engine: Engine | None
    embedder: Embedder | None


def build_parties(
    plan: PredictPlan, folder: PredictFolder, log: CandidateLog
) -> list[Party]:
    """Build the engine of every subject; raise CandidateError for a missing key."""
    parties = []
    for subject in plan.subjects:
        place = EnginePlace(folder.path, plan.config_folder, log, subject.index)
        if subject.embeds:
            embedder = build_embedder(subject.engine, subject.section, place)
            parties.append(Party(subject, None, embedder))
        else:
            engine = build_engine(subject.engine, subject.section, place)
            parties.append(Party(subject, engine, None))
    return parties


async def collect_all(
    plan: PredictPlan,
    folder: PredictFolder,
    questions: Sequence[Question],
    parties: Sequence[Party],
    logs: tuple[CandidateLog, GenerationLog],
    watch: Watch,
) -> None:
    """Ask every subject what it was not asked yet, while the logs are synced."""
    failure: FairtrialError | None = None
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(Committer([log.log for log in logs]).run)
            try:
                for party in parties:
                    collector = Collector(plan, folder, party.subject, logs[1], watch)
                    await collector.collect(party, questions)
            except FairtrialError as error:
                failure = error
            group.cancel_scope.cancel()
    except BaseExceptionGroup as failures:
        # A sync that failed ends the run from inside the group.
        raise first_own(failures) from None
    if failure is not None:
        raise failure


class Collector:
    """Collects one subject's rows."""

    def __init__(
        self,
        plan: PredictPlan,
        folder: PredictFolder,
        subject: Subject,
        log: GenerationLog,
        watch: Watch,
    ) -> None:
        self._plan = plan
        self._folder = folder
        self._subject = subject
        self._log = log
        self._watch = watch
        self._session = 0
        self._started = 0.0
        self._length = 0
        """Numbers in a vector; 0 until there is one."""
        self._planned = 0
        self._done = 0
        self._stops = 0

    async def collect(self, party: Party, questions: Sequence[Question]) -> None:
        """Ask what has no final answer yet, and measure where that is asked for."""
        name = self._subject.name
        waiting = [each for each in questions if not self._log.is_final(name, each.id)]
        self._planned = len(questions)
        self._done = len(questions) - len(waiting)
        if party.embedder is not None:
            if waiting:
                await self._compare(party.embedder, waiting)
        elif party.engine is not None:
            await self._ask(party.engine, waiting, questions)

    async def _ask(
        self, engine: Engine, waiting: Sequence[Question], questions: Sequence[Question]
    ) -> None:
        name, count = self._subject.name, self._plan.measure_rows
        measured = count is None or self._log.measurements(name) is not None
        if not waiting and measured:
            return
        decoding = decoding_of(self._plan.decoding)

        async def measure() -> None:
            rows = self._rows(questions[:count])
            found = await engine.measure(rows, decoding)
            self._log.add_measurements(name, [asdict(each) for each in found])

        async with engine:
            if not measured and engine.measures_fresh:
                await measure()
            if waiting:
                await self._generate(engine, waiting, decoding)
            if not measured and not engine.measures_fresh:
                await measure()

    async def _generate(
        self, engine: Engine, waiting: Sequence[Question], decoding: Decoding
    ) -> None:
        self._begin(engine.conditions(), _checkpoint_of(engine))
        rows = self._rows(waiting)
        prompts = {row.row_id: content_hash(list(row.messages)) for row in rows}

        def take(found: Generation) -> None:
            self._take(engine, prompts[found.row_id], found)

        await engine.generate(rows, decoding, take)

    def _begin(
        self, conditions: Mapping[str, Json], checkpoint: Mapping[str, str] | None
    ) -> None:
        """Begin a session; refuse a checkpoint that is not that of earlier rows."""
        name = self._subject.name
        for earlier in self._log.sessions(name):
            known = earlier["checkpoint_sha256"]
            if known != (None if checkpoint is None else dict(checkpoint)):
                raise SourceError(
                    "eval_predictions_drift",
                    "the checkpoint is not the one that answered the first rows",
                    where=f"subject {name}",
                    expected=canonical_json(known),
                    actual=canonical_json(checkpoint and dict(checkpoint)),
                    recovery="bring the checkpoint back, or choose a new output folder",
                )
        section, place = self._subject.section, None
        if isinstance(section, TorchLocalSection):
            place = Path(section.model).name
        self._session = self._log.begin(name, conditions, checkpoint, place)
        self._started = anyio.current_time()

    def _rows(self, questions: Sequence[Question]) -> list[PromptRow]:
        prompt = self._subject.prompt
        if prompt is None:
            raise AssertionError("an embedding baseline is not prompted")
        return [PromptRow(each.id, prompt.messages(each)) for each in questions]

    def _take(self, engine: Engine, prompt_hash: str, found: Generation) -> None:
        applied = engine.applied() if found.applied is None else found.applied
        self._add(
            RecordedRow(
                subject=self._subject.name,
                row_id=found.row_id,
                prompt_hash=prompt_hash,
                text=found.text,
                finish_reason=found.finish_reason,
                failure=found.failure,
                stopped=found.stopped,
                prompt_tokens=found.prompt_tokens,
                generated_tokens=found.generated_tokens,
                elapsed_s=found.elapsed_s,
                conditions={**engine.conditions(), **found.conditions},
                applied=_unclaimed(applied) if found.stopped else dict(applied),
                session=self._session,
                since_start_s=anyio.current_time() - self._started,
            )
        )

    def _add(self, row: RecordedRow) -> None:
        self._log.add(row)
        self._done += 1
        self._stops += row.stopped
        self._watch(
            Progress(self._subject.name, self._done, self._planned, self._stops)
        )
        cap = self._plan.evaluation.max_stop_share
        if self._stops > cap * self._planned:
            raise StopLimitError(
                OVER_CAP,
                "too many rows have no answer for reasons that are not the model's",
                where=f"subject {self._subject.name}, row {row.row_id}",
                expected=f"at most {cap:g} of {self._planned} rows "
                "(evaluation.max_stop_share)",
                actual=f"{self._stops} stops, the last one {row.failure}",
                recovery="look at the endpoint, then --resume: only rows without an "
                "answer are asked again",
            )

    async def _compare(self, embedder: Embedder, waiting: Sequence[Question]) -> None:
        """Answer every row with what stands nearest to its input."""
        answers = self._known_answers()
        async with embedder:
            self._begin(embedder.conditions(), None)
            known = await self._vectors(embedder, [text for text, _ in answers])
            asked = await self._vectors(embedder, [each.input_text for each in waiting])
            for question, vector in zip(waiting, asked, strict=True):
                place = nearest(vector, known)
                self._add(self._baseline_row(embedder, question, answers[place][1]))

    def _known_answers(self) -> list[tuple[str, str]]:
        """Return (text to embed, answer): labels, or training rows with their gold."""
        declaration = self._plan.declaration
        if self._plan.contract == CLASSIFICATION and declaration is not None:
            return [(label, label) for label in read_labels(declaration)]
        rows = read_questions(
            self._folder.train(self._subject.name), self._plan.contract
        )
        return [
            (
                row.input_text,
                row.gold if isinstance(row.gold, str) else canonical_json(row.gold),
            )
            for row in rows
        ]

    async def _vectors(
        self, embedder: Embedder, texts: Sequence[str]
    ) -> list[list[float]]:
        """Return a vector a text; those that are recorded are not asked for again."""
        engine = self._subject.engine
        recorded = {text: self._log.vector(engine, text) for text in texts}
        self._require_one_length([each for each in recorded.values() if each])
        missing = [text for text, vector in recorded.items() if vector is None]
        for start in range(0, len(missing), embedder.batch_size):
            batch = missing[start : start + embedder.batch_size]
            found = await embedder.embed(batch)
            self._require_one_length(found)
            conditions = embedder.conditions()
            for text, vector in zip(batch, found, strict=True):
                self._log.add_vector(engine, text, vector, conditions)
        return [self._log.vector(engine, text) or [] for text in texts]

    def _require_one_length(self, vectors: Sequence[Sequence[float]]) -> None:
        """Refuse vectors of another length than those before, which are kept."""
        for vector in vectors:
            self._length = self._length or len(vector)
            if len(vector) != self._length:
                raise EngineError(
                    "eval_engine_failed",
                    "the engine gave vectors of different lengths",
                    where=f"subject {self._subject.name}",
                    expected=f"{self._length} numbers for every text",
                    actual=f"{len(vector)} numbers",
                    recovery="look at the endpoint, then resume the run",
                )

    def _baseline_row(
        self, embedder: Embedder, question: Question, answer: str
    ) -> RecordedRow:
        conditions = embedder.conditions()
        recorded = self._log.vector_conditions(
            self._subject.engine, question.input_text
        )
        return RecordedRow(
            subject=self._subject.name,
            row_id=question.id,
            prompt_hash=content_hash(question.input_text),
            text=answer,
            finish_reason="stop",
            failure=None,
            stopped=False,
            prompt_tokens=None,
            generated_tokens=None,
            elapsed_s=None,
            conditions={**conditions, **recorded},
            applied={},
            session=self._session,
            since_start_s=anyio.current_time() - self._started,
        )


def _checkpoint_of(engine: Engine) -> Mapping[str, str] | None:
    """Return the hashes of what was loaded, None where nobody here loaded it."""
    found: Mapping[str, str] | None = getattr(engine, "checkpoint_sha256", None)
    return found


def _unclaimed(applied: Mapping[str, Json]) -> dict[str, Json]:
    return dict.fromkeys(applied, UNKNOWN)
