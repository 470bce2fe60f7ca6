"""`fairtrial config init`: write an evaluation config that loads at once."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness.causes import EXIT_DONE
from harness.errors import UsageError
from harness.regular_file import read_regular_file

if TYPE_CHECKING:
    from harness.canonical import Json
    from harness.config import EvalConfig
    from harness.config.starter import OracleFiles
    from harness.config.upgrade import Upgrade
    from harness.strict_yaml import YamlPath


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the sub-commands."""
    commands = parser.add_subparsers(dest="config_command", required=True)
    init = commands.add_parser("init", help="write a complete, commented config")
    init.add_argument(
        "--kind",
        choices=("executable", "predict", "mlperf-agentic"),
        default="executable",
        help="`predict` reads the kind predict, `run` the others (executable)",
    )
    init.add_argument("--benchmark", type=Path, help="folder of run_manifest.json")
    init.add_argument("--base-url", help="chat-completions endpoint, up to /v1")
    init.add_argument("--model", help="model name in the request")
    init.add_argument("--pack", help="pack folder or bundled name (executable mode)")
    init.add_argument("--mode", choices=("trace", "executable"))
    init.add_argument(
        "--from",
        dest="old",
        type=Path,
        metavar="OLD",
        help="config to convert, of schema 1.1, 1.2 or 1; other options override it",
    )
    init.add_argument(
        "--api-key-env",
        metavar="NAME",
        help="environment variable with the key (default: no Authorization header)",
    )
    init.add_argument("--alias", help="short name of the candidate in reports")
    predict = init.add_argument_group("kind predict")
    predict.add_argument("--manifest", type=Path, help="rows to answer, JSON lines")
    predict.add_argument(
        "--contract", choices=("action-ir", "json-records", "classification")
    )
    predict.add_argument(
        "--declaration", type=Path, help="JSON Schema or labels of the contract"
    )
    predict.add_argument("--system", type=Path, help="file with the system message")
    predict.add_argument("--user", type=Path, help="file with the user template")
    recorded = init.add_argument_group("kind mlperf-agentic")
    recorded.add_argument(
        "--dataset", type=Path, help="recorded conversations, JSON lines or Parquet"
    )
    init.add_argument("--output", type=Path, required=True, metavar="FILE")
    init.add_argument("--json", action="store_true", help="one JSON object on stdout")


def run(arguments: argparse.Namespace) -> int:
    """Write the file and say what had to be chosen."""
    _refuse_other_kinds(arguments)
    if arguments.kind == "predict":
        return _new_predict(arguments)
    if arguments.kind == "mlperf-agentic":
        return _new_recorded(arguments)
    if arguments.old is None:
        config, choices = _new(arguments)
    else:
        config, choices = _converted(arguments)
    _show(arguments, config, choices)
    return EXIT_DONE


_OPTIONS_OF: Final = {
    "executable": ("benchmark", "pack", "mode", "old"),
    "predict": ("manifest", "contract", "declaration", "system", "user"),
    "mlperf-agentic": ("dataset",),
}
"""Options that one kind alone has."""


def _refuse_other_kinds(arguments: argparse.Namespace) -> None:
    for kind, options in _OPTIONS_OF.items():
        for option in options:
            if kind != arguments.kind and getattr(arguments, option) is not None:
                name = "from" if option == "old" else option
                raise _usage(f"--{name} belongs to --kind {kind}", "leave it out")


def _require(arguments: argparse.Namespace, *options: str) -> None:
    for option in options:
        if getattr(arguments, option) is None:
            raise _usage(f"--{option.replace('_', '-')} is missing", "state it")


def _new_recorded(arguments: argparse.Namespace) -> int:
    from harness.config.teacher_forced_starter import write_teacher_forced_config

    _require(arguments, "dataset", "base_url", "model")
    config = write_teacher_forced_config(
        arguments.output,
        dataset=arguments.dataset,
        base_url=arguments.base_url,
        model=arguments.model,
        alias=arguments.alias,
        api_key_env=arguments.api_key_env,
    )
    if arguments.json:
        document = {
            "output": str(arguments.output),
            "eval_config_hash": config.eval_config_hash,
        }
        print(json.dumps(document, sort_keys=True))
        return EXIT_DONE
    print(f"wrote {arguments.output} ({arguments.kind})")
    print(f"eval_config_hash {config.eval_config_hash}")
    print(f"next: fairtrial run {arguments.output}")
    return EXIT_DONE


def _new_predict(arguments: argparse.Namespace) -> int:
    from harness.config.predict_starter import PredictFiles, write_predict_config

    _require(arguments, "manifest", "contract", "base_url", "model")
    config = write_predict_config(
        arguments.output,
        PredictFiles(
            arguments.manifest,
            arguments.contract,
            arguments.declaration,
            arguments.system,
            arguments.user,
        ),
        base_url=arguments.base_url,
        model=arguments.model,
        alias=arguments.alias,
        api_key_env=arguments.api_key_env,
    )
    if arguments.json:
        print(json.dumps({"output": str(arguments.output)}, sort_keys=True))
    else:
        print(f"{arguments.output}: engine {config.engine}, {arguments.contract}")
    return EXIT_DONE


def _new(arguments: argparse.Namespace) -> tuple[EvalConfig, dict[YamlPath, str]]:
    from harness.config.starter import starter_candidate, write_starter_config

    _require(arguments, "benchmark", "base_url", "model")
    manifest = _run_manifest(arguments.benchmark)
    choices: dict[YamlPath, str] = {}
    oracle = _oracle(arguments, manifest, choices)
    candidate = starter_candidate(
        arguments.base_url,
        arguments.model,
        alias=arguments.alias,
        api_key_env=arguments.api_key_env,
    )
    config = write_starter_config(
        arguments.output,
        run_manifest=manifest,
        candidates=[candidate],
        oracle=oracle,
    )
    return config, choices


def _run_manifest(benchmark: Path) -> Path:
    manifest = benchmark / "run_manifest.json"
    if not manifest.is_file():
        raise _usage(
            f"{benchmark} is no published benchmark: it has no run_manifest.json",
            "name the output folder of `fairtrial publish`",
            code="eval_config_path_invalid",
        )
    return manifest


def _oracle(
    arguments: argparse.Namespace, manifest: Path, choices: dict[YamlPath, str]
) -> OracleFiles | None:
    """Return the pack that was named, or the bundled one that was published."""
    mode = arguments.mode or ("executable" if arguments.pack else "trace")
    if mode == "trace":
        if arguments.pack:
            choices["source_oracle",] = "--pack is not used: a trace run has no oracle"
        return None
    pack = arguments.pack
    if pack is None:
        pack = _published_pack_id(manifest)
        choices["source_oracle",] = f"no --pack given: the bundled pack {pack}"
    return _pack_files(pack)


def _published_pack_id(manifest: Path) -> str:
    from harness.strict_json import StrictJsonError, decode_document

    try:
        value: Json = decode_document(read_regular_file(manifest))
        pack_id: Json = value["pack"]["pack_id"]
    except (StrictJsonError, KeyError, TypeError):
        pack_id = None
    if not isinstance(pack_id, str):
        raise _usage("--pack is missing in executable mode", "name the pack")
    return pack_id


def _pack_files(pack: str) -> OracleFiles:
    from harness.benchmark.bundled import resolve_pack
    from harness.benchmark.pack import load_pack
    from harness.config.starter import OracleFiles

    paths = load_pack(resolve_pack(pack)).manifest.paths
    manifest = resolve_pack(pack) / "manifest.yaml"
    if "endpoint" in paths:
        return OracleFiles("endpoint", manifest, paths["endpoint"])
    return OracleFiles("python", manifest, paths["backend"])


def _converted(
    arguments: argparse.Namespace,
) -> tuple[EvalConfig, dict[YamlPath, str]]:
    from harness.config.starter import write_document
    from harness.config.upgrade import upgrade

    result = upgrade(arguments.old, arguments.output)
    _override_source(arguments, result)
    _override_candidate(arguments, result)
    notes = {path: f"config init: {why}." for path, why in result.choices.items()}
    return write_document(arguments.output, result.document, notes), result.choices


def _override_source(arguments: argparse.Namespace, result: Upgrade) -> None:
    from harness.config.starter import oracle_section, relative_path

    document = result.document
    manifest = None
    if arguments.benchmark is not None:
        manifest = _run_manifest(arguments.benchmark)
        document["source_run_manifest"] = relative_path(manifest, arguments.output)
        result.choices["source_run_manifest",] = "replaced by --benchmark"
    if arguments.mode is None and arguments.pack is None:
        return
    if manifest is None:
        written = document.get("source_run_manifest")
        manifest = arguments.output.parent / str(written)
    if arguments.mode is None:
        arguments.mode = "executable"
    oracle = _oracle(arguments, manifest, result.choices)
    document["source_oracle"] = (
        oracle_section(oracle, arguments.output) if oracle else None
    )
    section = document.get("eval")
    if arguments.mode not in (section or {}).get("mode", ()) or oracle is None:
        document["eval"] = {**(section or {}), "mode": [arguments.mode]}
        result.choices["eval", "mode"] = "replaced by --mode or --pack"


def _override_candidate(arguments: argparse.Namespace, result: Upgrade) -> None:
    wanted = (arguments.base_url, arguments.model, arguments.api_key_env)
    if wanted == (None, None, None) and arguments.alias is None:
        return
    index, candidate = _chosen_candidate(arguments, result)
    path: YamlPath = ("candidates", index)
    api = candidate.setdefault("api", {})
    for key, value in (
        ("base_url", arguments.base_url),
        ("api_key_env", arguments.api_key_env),
    ):
        if value is not None and api.get(key) != value:
            api[key] = value
            option = key.replace("_", "-")
            result.choices[*path, "api", key] = f"replaced by --{option}"
    if arguments.alias is not None:
        candidate["alias"] = arguments.alias
        result.choices[*path, "alias"] = "replaced by --alias"
    if arguments.model is not None and candidate.get("model") != arguments.model:
        candidate["model"] = arguments.model
        candidate["model_identity"] = {
            "source": candidate.get("provider"),
            "model": arguments.model,
            "revision": None,
            "weights_digest": None,
        }
        result.choices[*path, "model"] = "replaced by --model"
        result.choices[*path, "model_identity"] = (
            "another model than before, so the old pin does not hold"
        )


def _chosen_candidate(
    arguments: argparse.Namespace, result: Upgrade
) -> tuple[int, dict[str, Any]]:
    listed = result.document.get("candidates")
    candidates = [c for c in listed if isinstance(c, dict)] if listed else []
    if len(candidates) == 1:
        return 0, candidates[0]
    named = [i for i, c in enumerate(candidates) if c.get("model") == arguments.model]
    if len(named) != 1:
        raise _usage(
            f"{arguments.old} has {len(candidates)} candidates, so --base-url and "
            "--model do not say which one they change",
            "name the model of one of them, or edit the new file",
        )
    return named[0], candidates[named[0]]


def _usage(problem: str, recovery: str, code: str = "eval_cli_invalid") -> UsageError:
    return UsageError(code, problem, recovery=recovery)


def _show(
    arguments: argparse.Namespace, config: EvalConfig, choices: dict[YamlPath, str]
) -> None:
    from harness.config.violations import path_text

    listed = {path_text(path): why for path, why in choices.items()}
    if arguments.json:
        document = {
            "output": str(arguments.output),
            "eval_config_hash": config.eval_config_hash,
            "choices": listed,
            "non_publication_reasons": list(config.non_publication_reasons),
        }
        print(json.dumps(document, sort_keys=True))
        return
    print(f"wrote {arguments.output} ({', '.join(config.eval.mode)})")
    print(f"eval_config_hash {config.eval_config_hash}")
    for place, why in listed.items():
        print(f"chosen: {place}: {why}")
    for reason in config.non_publication_reasons:
        print(f"not publishable yet: {reason}")
    print(f"next: fairtrial run {arguments.output}")
