"""The desk: a published pack, a scripted candidate for its tickets, and whole runs.

Every task of the pack is a ticket, and the ticket stands in the task's first user
message. A test says per ticket how the candidate answers; the run is a real one,
from the config over HTTP and workers to the artifacts, and is read back from them.
"""

import json
import re
import shutil
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import anyio

from harness.benchmark.pack import load_pack
from harness.benchmark.publication import publish
from harness.benchmark.tables import read_rows, write_rows
from harness.candidates.control import ControlCandidate
from harness.candidates.request import Endpoint
from harness.canonical import hash_file
from harness.config.starter import (
    OracleFiles,
    starter_candidate,
    write_starter_config,
)
from harness.evidence.task_table import read_task_rows
from harness.oracle.certifying import CertifyingOracle
from harness.run.evaluate import evaluate
from harness.run.recorded import RunEvidence
from harness.scoring.score import score_episode
from tests.servers import Reply, ScriptedServer, completion, tool_call

PACK = Path(__file__).parent / "pack"
_TICKET = re.compile(r"Ticket (\S+)\.")
_PATIENCE = {
    "max_parallel_tasks": 8,
    "max_retries": 0,
    "max_stops": 100,
    "tool_timeout_s": 1.5,
    "assertion_timeout_s": 1.5,
}


def ticket_of(messages):
    """Return the ticket that a conversation is about."""
    words = next(m["content"] for m in messages if m["role"] == "user")
    return _TICKET.search(words).group(1)


def calls(*entries, **options):
    """A completion with calls, each (name, arguments); ids count from `c0`."""
    return completion(
        calls=[tool_call(name, a, f"c{i}") for i, (name, a) in enumerate(entries)],
        **options,
    )


def find(**arguments):
    """The call that most tickets ask for, with more or other arguments."""
    return ("find_book", {"title": "Salt", **arguments})


WORDS = completion("Very well.")


@dataclass(frozen=True)
class Script:
    """Answers each ticket's turns from a table, and as gold where there is none.

    `answers` maps a ticket to replies by turn; words follow behind the last. A
    function in the place of a reply gets the request.
    """

    gold: ControlCandidate
    answers: dict

    def __call__(self, received):
        body = received.json()
        turns = self.answers.get(ticket_of(body["messages"]))
        if turns is None:
            response = self.gold.respond("gold", body)
            headers = {"Content-Type": "application/json"}
            return Reply(
                response.status, headers, json.dumps(response.payload).encode()
            )
        turn = sum(m["role"] == "assistant" for m in body["messages"])
        reply = turns[turn] if turn < len(turns) else WORDS
        return reply(received) if callable(reply) else reply


class Publication:
    """A folder with `pack/` and `benchmark/` that a test may change."""

    def __init__(self, folder):
        self.folder = folder
        self.pack = folder / "pack"
        self.benchmark = folder / "benchmark"

    @property
    def manifest_path(self):
        return self.benchmark / "run_manifest.json"

    @property
    def rows(self):
        return list(read_rows(self.benchmark / "benchmark.parquet"))

    def copy(self, folder, tickets=None):
        """Copy it, with the rows of some tickets only."""
        shutil.copytree(self.folder, folder)
        copied = Publication(folder)
        if tickets is not None:
            copied.edit_rows(
                lambda row: row if ticket_of(row["messages"]) in tickets else None
            )
        return copied

    def edit_manifest(self, edit):
        """Change the commit marker in place."""
        manifest = json.loads(self.manifest_path.read_text("utf-8"))
        edit(manifest)
        self.manifest_path.write_text(json.dumps(manifest), "utf-8")

    def edit_rows(self, edit, write=write_rows):
        """Rewrite both tables and declare them anew; None leaves a row out."""
        for table in ("raw", "published"):
            self._edit_table(table, edit, write)

    def _edit_table(self, table, edit, write):
        names = {"raw": "benchmark_raw", "published": "benchmark"}
        file = self.benchmark / f"{names[table]}.parquet"
        rows = [row for row in map(edit, read_rows(file)) if row is not None]
        write(file, rows)

        def declare(manifest):
            section = manifest["publication"][table]
            section["rows"] = len(rows)
            section["content_hash"] = hash_file(file)
            artifact = manifest["artifacts"][f"{names[table]}_parquet"]
            artifact["content_hash"] = section["content_hash"]

        self.edit_manifest(declare)


def publish_pack(folder, pack=PACK):
    """Publish a pack with real workers."""
    shutil.copytree(pack, folder / "pack")

    async def published():
        loaded = load_pack(folder / "pack")
        await publish(loaded, folder / "benchmark", oracle=CertifyingOracle())

    anyio.run(published)
    return Publication(folder)


class Desk:
    """Writes configs for one publication and runs them, all in one folder."""

    def __init__(self, folder, publication, *, backend="backend.py"):
        self.folder = folder
        self.publication = publication
        self.backend = publication.pack / backend
        self.gold = ControlCandidate(publication.rows)

    @property
    def gold_eligible(self):
        """What certification said of the publication."""
        return json.loads(self.publication.manifest_path.read_text())["gold_eligible"]

    def served(self, answers):
        """Serve a scripted candidate: a context manager with `.url`."""
        return ScriptedServer(Script(self.gold, answers))

    def config(
        self,
        url,
        name="eval",
        *,
        models=("scripted",),
        executable=True,
        key_env=None,
        identity=None,
        **sections,
    ):
        """Write a config; `sections` update single values of top-level sections."""
        pack = self.publication.pack
        changes = {("limits", key): value for key, value in _PATIENCE.items()}
        for section, values in sections.items():
            changes |= {(section, *k.split(".")): v for k, v in values.items()}
        candidates = [
            starter_candidate(url, model, api_key_env=key_env) for model in models
        ]
        for candidate in candidates:
            candidate["model_identity"].update(identity or {})
        return write_starter_config(
            self.folder / f"{name}.yaml",
            run_manifest=self.publication.manifest_path,
            candidates=candidates,
            oracle=OracleFiles("python", pack / "manifest.yaml", self.backend)
            if executable
            else None,
            output_dir=f"{name}-run",
            changes=changes,
        )

    def run(self, config, *, resume=False, watch=lambda _: None):
        """Evaluate; return what `evaluate` returns."""
        return evaluate(
            config,
            resume=resume,
            watch=watch,
            render_page=lambda _: "<!doctype html>\n",
        )

    def play(self, answers, name="eval", **options):
        """Serve, configure and run at once; return the run read back."""
        with self.served(answers) as server:
            config = self.config(server.url, name, **options)
            finished = self.run(config)
        return Ran(config, finished, server.requests)


@dataclass(frozen=True)
class Ran:
    """A finished run, read from its folder."""

    config: object
    finished: object
    requests: list

    @property
    def folder(self):
        return self.config.paths.output_dir

    @property
    def candidate(self):
        """The report of the first candidate."""
        return self.finished.report["candidates"][0]

    def asked(self, ticket):
        """The message lists that were sent for a ticket, in order."""
        bodies = [received.json()["messages"] for received in self.requests]
        return [messages for messages in bodies if ticket_of(messages) == ticket]

    def score(self, ticket):
        """The score that the evidence gives for a ticket."""
        return self._read[ticket][1]

    def episode(self, ticket):
        return self._read[ticket][0].episode

    def attempts(self, ticket):
        return self._read[ticket][2]

    def row(self, ticket):
        """The line of the task table for a ticket."""
        return self._rows[self.score(ticket).task_id]

    @cached_property
    def _rows(self):
        table = self.folder / "eval_task_results.parquet"
        return {row.task_id: row for row in read_task_rows(table)}

    @cached_property
    def _read(self):
        return anyio.run(read_run, self.folder)


async def read_run(folder):
    """Return recorded episode, score and attempts of the first candidate by ticket."""
    read = {}
    with RunEvidence(folder) as evidence:
        config, header = evidence.config, evidence.plan.header
        planned = header.candidates[0]
        endpoint = Endpoint(**config.endpoint(planned.alias))
        for task in evidence.tasks_of(planned):
            recorded = await evidence.episode(endpoint, task, 0)
            score = score_episode(
                recorded.episode,
                recorded.task,
                config.scoring_policy,
                eval_config_hash=config.eval_config_hash,
                scoring_policy_hash=config.scoring_policy_hash,
                plan_identity=header.plan_identity,
            )
            attempts = [each for turn in recorded.attempts_by_turn for each in turn]
            ticket = ticket_of(task.spec.script.seed_messages)
            read[ticket] = (recorded, score, attempts)
    return read


def failing(score):
    """Names of the gates that failed, in their order."""
    return [gate.gate for gate in score.gates if gate.outcome == "failed"]


def outcome(score, gate):
    return score.gate(gate).outcome


def metric(score, name):
    """(numerator, denominator) of a metric, or why it does not apply."""
    found = next(m for m in score.metrics if m.metric == name)
    if found.not_applicable_reason is not None:
        return found.not_applicable_reason
    return found.numerator, found.denominator
