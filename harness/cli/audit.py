"""`fairtrial audit CONFIG|RUN...`: who may have read what, and what rests on it."""

from __future__ import annotations

import argparse
import glob
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from harness.audit.runs import AuditedRuns

MOST_LINES: Final = 1000
"""Lines of a table across runs."""
_FATAL: Final = {"match": ("match",), "unresolved": ("match", "unknown")}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument(
        "paths",
        nargs="+",
        metavar="CONFIG|RUN",
        help="an eval.yaml, or run folders; a quoted glob of folders works too",
    )
    parser.add_argument(
        "--fail-on",
        choices=sorted(_FATAL),
        help="exit 1 where a candidate matches a reader; `unresolved`: or may",
    )
    parser.add_argument("--json", action="store_true", help="JSON on stdout")


def run(arguments: argparse.Namespace) -> int:
    """Audit; 1 when a report does not follow or --fail-on found something."""
    from harness.run.seclusion import secluded

    paths = _expanded(arguments.paths)
    with secluded():
        if len(paths) == 1 and paths[0].is_file():
            counts, follows = _config(paths[0], as_json=arguments.json), True
        else:
            counts, follows = _runs(_folders(paths), as_json=arguments.json)
    return _status(counts, arguments.fail_on, follows=follows)


def _status(counts: dict[str, Any], fail_on: str | None, *, follows: bool) -> int:
    from harness.causes import EXIT_ANSWER_IS_NO, EXIT_DONE

    found = any(counts[verdict] for verdict in _FATAL.get(fail_on or "", ()))
    return EXIT_ANSWER_IS_NO if found or not follows else EXIT_DONE


def _config(path: Path, *, as_json: bool) -> dict[str, Any]:
    from harness.audit.decision import audit_config
    from harness.config import load_config
    from harness.report.audit import render_config_audit

    audit: dict[str, Any] = audit_config(load_config(path))
    if as_json:
        print(json.dumps(audit, indent=2, sort_keys=True, ensure_ascii=False))
    else:
        print(render_config_audit(audit), end="")
    counts: dict[str, Any] = audit["counts"]
    return counts


def _runs(folders: list[Path], *, as_json: bool) -> tuple[dict[str, Any], bool]:
    from harness.audit.runs import audit_runs
    from harness.report.audit import render_run_audit

    with audit_runs(folders) as audited:
        totals = audited.totals()
        if as_json:
            for piece in _json(audited, totals):
                sys.stdout.write(piece)
        else:
            text = render_run_audit(
                totals,
                audited.runs(),
                audited.unresolved_claims(MOST_LINES),
                audited.candidates(MOST_LINES),
            )
            print(text, end="")
    return dict(totals), totals["do_not_follow"] == 0


def _json(audited: AuditedRuns, totals: dict[str, int]) -> Iterator[str]:
    """Yield one JSON object piece by piece; its runs are never held at once."""
    head = {
        "schema_version": "1.0",
        "totals": totals,
        "unresolved_claims": audited.unresolved_claims(MOST_LINES),
        "candidates": audited.candidates(MOST_LINES),
    }
    yield json.dumps(head, sort_keys=True)[:-1] + ', "runs": ['
    for number, each in enumerate(audited.runs()):
        yield ("," if number else "") + "\n" + json.dumps(each, sort_keys=True)
    yield "\n]}\n"


def _expanded(words: list[str]) -> list[Path]:
    """Return the paths in order, each once; a glob gives its matches sorted.

    A rescoring has the contamination report of its run, so a glob passes it over, and
    files beside the folders as well.
    """
    from harness.run.rescored_folder import is_rescored

    paths: dict[Path, Path] = {}
    for word in words:
        path = Path(word)
        if path.exists() or not glob.has_magic(word):
            paths.setdefault(path.resolve(), path)
            continue
        found = [Path(match) for match in sorted(glob.glob(word))]  # noqa: PTH207
        folders = [match for match in found if match.is_dir()]
        runs = [match for match in folders or found if not is_rescored(match)]
        if not runs:
            raise _usage("nothing matches", word)
        for match in runs:
            paths.setdefault(match.resolve(), match)
    return list(paths.values())


def _folders(paths: list[Path]) -> list[Path]:
    from harness.evidence.folder import PARENT_FOLDER
    from harness.run.rescored_folder import is_rescored

    for path in paths:
        if not path.is_dir():
            problem = "a config is audited alone" if path.exists() else "no such path"
            raise _usage(problem, str(path))
        if is_rescored(path):
            problem = f"a rescoring has its run's report: audit {path / PARENT_FOLDER}"
            raise _usage(problem, str(path))
    return paths


def _usage(problem: str, seen: str) -> Exception:
    from harness.errors import UsageError

    return UsageError(
        "eval_cli_invalid",
        problem,
        expected="one eval.yaml, or run folders, or a glob of run folders",
        actual=seen,
        recovery="correct the path",
    )
