"""A folder with rows, declaration and config, and a chat endpoint that answers them."""

import hashlib
import json
import threading

import yaml

from harness.cli.main import main
from harness.predict.folder import PredictFolder
from harness.predict.plan import plan_of_file
from harness.predict.run import predict
from tests.servers import Reply, ScriptedServer, completion, json_reply

LABELS = ["billing", "delivery", "returns"]
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "nights": {"type": "integer"}},
    "required": ["city", "nights"],
    "additionalProperties": False,
}
DECODING = {
    "max_tokens": 64,
    "temperature": 0.0,
    "top_p": 1.0,
    "top_k": None,
    "stop": [],
    "seed": 7,
    "greedy": True,
    "num_beams": 1,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "repetition_penalty": 1.0,
    "no_repeat_ngram_size": 0,
}
TOOLS_PROMPT = (
    "<bos><system>\nACTION_IR_V1\nNOW 2026-01-05T12:00:00\nTOOLS\n"
    "turn_on_flashlight(): Turns the light on.\n<user>\n{text}\n<assistant>\n"
)
LIGHT_ON = (
    '{"calls":[{"args":{},"tool":"turn_on_flashlight"}],"decision":"CALL",'
    '"mode":"SINGLE"}'
)


def label_rows(count=6):
    """Rows whose input says its label."""
    return [
        {
            "id": f"row-{n}",
            "input": f"about {LABELS[n % 3]}, {n}",
            "gold": LABELS[n % 3],
        }
        for n in range(count)
    ]


def record_rows(count=4):
    return [
        {
            "id": f"stay-{n}",
            "input": {"text": f"{n} nights in Rome"},
            "gold": {"city": "Rome", "nights": n},
        }
        for n in range(count)
    ]


def action_rows(count=3):
    return [
        {
            "schema_version": "barun-sft-example-v1",
            "id": f"mobile-{n}",
            "prompt": TOOLS_PROMPT.replace("{text}", f"Light, please. {n}"),
            "target": LIGHT_ON,
            "metadata": {"call_names": ["turn_on_flashlight"]},
        }
        for n in range(count)
    ]


CONTRACTS = {
    "classification": (label_rows, LABELS),
    "json-records": (record_rows, SCHEMA),
    "action-ir": (action_rows, None),
}


def chat(url, **changes):
    """A `chat_http` engine at a base URL."""
    candidate = {
        "alias": "under-test",
        "canonical_id": "local:scripted@provider_managed",
        "provider": "local",
        "provider_api_version": "v1",
        "base_url": url,
        "model": "scripted",
        "api_key_env": None,
        **changes.pop("candidate", {}),
    }
    return {
        "kind": "chat_http",
        "candidate": candidate,
        "max_in_flight": 4,
        "timeout_s": 20.0,
        "max_retries": 0,
        **changes,
    }


def embeddings(url, **changes):
    """An `embeddings_http` engine at a base URL."""
    section = chat(url, **changes)
    del section["max_in_flight"]
    return {**section, "kind": "embeddings_http", "batch_size": 2}


class Workspace:
    """The files of one config; `document` may be changed before it is written."""

    def __init__(self, root, contract="classification", *, url, rows=None):
        self.root = root
        self.contract = contract
        make_rows, declaration = CONTRACTS[contract]
        self.rows = make_rows() if rows is None else rows
        self.manifest = root / "rows.jsonl"
        self.write_rows(self.rows)
        if declaration is not None:
            (root / "declared.json").write_text(json.dumps(declaration), "utf-8")
        (root / "system.txt").write_text("Only one of:\n{contract}\n", "utf-8")
        (root / "user.txt").write_text("Text: {input}", "utf-8")
        own_text = declaration is not None
        self.document = {
            "schema_version": "1",
            "kind": "predict",
            "manifest": {
                "path": "rows.jsonl",
                "sha256": None,
                "contract": contract,
                "declaration": "declared.json" if own_text else None,
            },
            "prompt": {
                "system": "system.txt" if own_text else None,
                "user": "user.txt" if own_text else None,
            },
            "engine": "main",
            "engines": {"main": chat(url)},
            "decoding": dict(DECODING),
            "evaluation": {"metric": None, "holdout": False, "max_stop_share": 0.2},
            "comparators": [],
            "measure": None,
        }
        self.config = root / "predict.yaml"
        self.output = root / "out"

    def write_rows(self, rows):
        lines = [json.dumps(row, sort_keys=True, separators=(",", ":")) for row in rows]
        self.manifest.write_text("\n".join(lines) + "\n", "utf-8")

    def write(self):
        text = yaml.safe_dump(self.document, sort_keys=False)
        self.config.write_text(text, "utf-8")
        return self.config

    def plan(self, **options):
        return plan_of_file(self.write(), **options)

    def predict(self, *, resume=False, output=None):
        """Run in this process and return what is finished."""
        folder = PredictFolder(output or self.output)
        return predict(self.plan(), folder, resume=resume, watch=lambda _: None)

    def lines(self, subject="candidate"):
        """The predictions of a subject, decoded."""
        path = PredictFolder(self.output).predictions(subject)
        return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]


def asked(received):
    """The text of the last message of a request."""
    return received.json()["messages"][-1]["content"]


def answer_of(text):
    """What a right model says to a row of any of the three contracts."""
    for label in LABELS:
        if label in text:
            return label
    if "nights in Rome" in text:
        number = text.split('"text":"')[-1].split(" ")[0]
        return json.dumps({"city": "Rome", "nights": int(number)})
    return LIGHT_ON


def right(received):
    """Answer a chat request rightly."""
    return completion(answer_of(asked(received)))


def vector_of(text):
    """A vector that stands nearest to texts with the same label."""
    hashed = hashlib.sha256(text.encode()).digest()
    return [
        *(1.0 if label in text else 0.0 for label in LABELS),
        hashed[0] / 2560,
    ]


def embedding_reply(received):
    texts = received.json()["input"]
    data = [
        {"index": index, "object": "embedding", "embedding": vector_of(text)}
        for index, text in enumerate(texts)
    ]
    return json_reply({"object": "list", "model": "vectors", "data": data[::-1]})


def right_or_vectors(received):
    """Answer chat rightly and embeddings by label."""
    if received.path.endswith("/embeddings"):
        return embedding_reply(received)
    return right(received)


class Flaky:
    """Answers rightly, save for rows whose text holds one of some words."""

    def __init__(self, *words, reply=None):
        self.words = set(words)
        self.reply = reply or Reply(503, {}, b"{}")
        self._lock = threading.Lock()

    def __call__(self, received):
        text = asked(received)
        with self._lock:
            if any(word in text for word in self.words):
                return self.reply
        return right(received)


def server(answer=right):
    return ScriptedServer(answer)


def run_command(space, *words, output=None):
    """Run `fairtrial predict` over a workspace and return its exit status."""
    config = space.write()
    folder = output or space.output
    return main(["predict", str(config), "--output", str(folder), *words])


def record_of(folder):
    """The evaluation record of a folder."""
    return json.loads((folder / "eval_record.json").read_text())


def tree(folder):
    """Every file below a folder with its bytes, the lock apart."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != ".lock"
    }
