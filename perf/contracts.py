"""How many rows a CPU second each prediction contract scores, from files to files.

The rows are made up from a fixed pattern: tools in changing order, most predictions
right, some wrong, cut or broken. Reading, scoring and writing count; making the rows
and starting Python do not. `--min-factor` makes a gate of the ratio to what the
contract's own program was seen to do on one core, so it depends on the machine; where
there is a plain implementation over a public library, it is measured beside ours.
`--memory` adds what one more row costs in memory at the peak: the difference of two
runs of different length, so that what does not grow is left out.

    python perf/contracts.py action-ir --rows 8000 --min-factor 10
    python perf/contracts.py mlperf-agentic --rows 20000 --min-factor 4 --max-bytes 300
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from perf import answer_rows  # noqa: E402
from perf.mlperf_run import write_run  # noqa: E402


@dataclass(frozen=True, slots=True)
class Contract:
    """One contract: how to lay its files out and how to score them."""

    write: Callable[[Path, int], None]
    """Takes a folder and a count of rows."""
    score: Callable[[Path, Path], None]
    """Takes that folder and an output that does not exist."""
    original: float | Callable[[Path, Path], None]
    """Rows a CPU second as they were seen, or what scores the same files."""


ACTION_IR_TOOLS = (
    ("create_calendar_event", "Creates a new calendar event.", "datetime! title!"),
    (
        "create_contact",
        "Creates a contact in the phone's contact list.",
        "first_name! last_name! email phone_number",
    ),
    ("open_wifi_settings", "Opens the Wi-Fi settings.", ""),
    ("send_email", "Sends an email.", "to! subject! body"),
    ("show_map", "Shows a location on the map.", "query!"),
    ("turn_off_flashlight", "Turns the flashlight off.", ""),
    ("turn_on_flashlight", "Turns the flashlight on.", ""),
)


def _turned(items: list[str], by: int) -> list[str]:
    by %= len(items) or 1
    return items[by:] + items[:by]


def _action_ir_prompt(row: int) -> str:
    lines = []
    for position, (name, words, listed) in enumerate(ACTION_IR_TOOLS):
        arguments = [
            f"{argument.rstrip('!')}:string{'!' * argument.endswith('!')}"
            for argument in _turned(listed.split(), row // 7 + position)
        ]
        lines.append(f"{name}({', '.join(arguments)}): {words}")
    block = "\n".join(_turned(lines, row))
    return (
        f"<bos><system>\nACTION_IR_V1\nNOW 2026-08-03T16:{row % 60:02}:00\nTOOLS\n"
        f"{block}\n<user>\nRow {row}: please do what this sentence asks for.\n"
        "<assistant>\n"
    )


def _action_ir_calls(row: int) -> list[dict[str, object]]:
    calls: list[dict[str, object]] = []
    for step in range(1 + row % 5 // 3):
        name, _, listed = ACTION_IR_TOOLS[(row + step) % len(ACTION_IR_TOOLS)]
        args = {
            argument.rstrip("!"): f"{argument.rstrip('!')} of row {row}, as it was said"
            for argument in listed.split()
        }
        calls.append({"args": args, "tool": name})
    return calls


def _action_ir_text(calls: list[dict[str, object]]) -> str:
    mode = "SINGLE" if len(calls) == 1 else "SERIAL"
    return json.dumps(
        {"calls": calls, "decision": "CALL", "mode": mode},
        sort_keys=True,
        separators=(",", ":"),
    )


def _action_ir_prediction(row: int, target: str) -> str:
    if row % 50 == 7:
        return target[: len(target) // 2]
    if row % 10 == 3:
        return target.replace("as it was said", "as it was meant")
    if row % 50 == 11:
        return target.replace('"args"', '"arguments"')
    return target


def write_action_ir(folder: Path, rows: int) -> None:
    """Write a manifest and predictions like those of Mobile Actions."""
    with (
        (folder / "manifest.jsonl").open("w", encoding="utf-8") as manifest,
        (folder / "predictions.jsonl").open("w", encoding="utf-8") as predictions,
    ):
        for row in range(rows):
            calls = _action_ir_calls(row)
            target = _action_ir_text(calls)
            line = {
                "id": f"made-up-{row:06}",
                "metadata": {
                    "call_names": [call["tool"] for call in calls],
                    "cluster_id": f"{row:064x}",
                    "family_id": f"{row:064x}",
                    "prompt_sha256": f"{row:064x}",
                    "raw_sha256": f"{row:064x}",
                    "target_sha256": f"{row:064x}",
                    "tool_order": [name for name, _, _ in ACTION_IR_TOOLS],
                },
                "prompt": _action_ir_prompt(row),
                "schema_version": "barun-sft-example-v1",
                "target": target,
            }
            print(json.dumps(line), file=manifest)
            answer = {
                "generated_tokens": 78,
                "generation_failure": None,
                "id": line["id"],
                "prediction_raw": _action_ir_prediction(row, target),
                "prompt_tokens": 245,
                "truncated": row % 50 == 7,
            }
            print(json.dumps(answer), file=predictions)


def score_action_ir(folder: Path, output: Path) -> None:
    """Score the files as `fairtrial score action-ir` does."""
    from harness.predictions.action_ir import score_files

    score_files(folder / "manifest.jsonl", folder / "predictions.jsonl", output)


def score_mlperf_agentic(folder: Path, output: Path) -> None:
    """Score the files as `fairtrial score mlperf-agentic` does."""
    from harness.predictions.mlperf_agentic import score_report

    score_report(folder / "dataset.jsonl", folder, output)


CONTRACTS = {
    "action-ir": Contract(write_action_ir, score_action_ir, 550.0),
    "classification": Contract(
        answer_rows.write_labels, answer_rows.score_labels, answer_rows.plain_labels
    ),
    "json-records": Contract(
        answer_rows.write_records, answer_rows.score_records, answer_rows.plain_records
    ),
    "json-records-full": Contract(
        answer_rows.write_full_records,
        answer_rows.score_records,
        answer_rows.plain_records,
    ),
    "mlperf-agentic": Contract(write_run, score_mlperf_agentic, 5000.0),
}


def rows_per_cpu_s(contract: Contract, rows: int, rounds: int) -> float:
    """Return the best of some rounds; each writes a new output folder."""
    best = 0.0
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        contract.write(folder, rows)
        contract.score(folder, folder / "first")
        for number in range(rounds):
            begin = time.process_time()
            contract.score(folder, folder / f"out-{number}")
            best = max(best, rows / (time.process_time() - begin))
    return best


def original_rows_per_cpu_s(contract: Contract, rows: int, rounds: int) -> float:
    """Return what the contract is compared with, measured where it can be run here."""
    if not callable(contract.original):
        return contract.original
    return rows_per_cpu_s(replace(contract, score=contract.original), rows, rounds)


def bytes_per_row(contract: Contract, rows: int) -> float:
    """Return what the peak of a run grows by for each row, from `rows` to twice that.

    Python objects and arrays count; the interpreter and its libraries do not.
    """
    peaks = []
    for length in (rows, 2 * rows):
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            contract.write(folder, length)
            contract.score(folder, folder / "first")
            gc.collect()
            tracemalloc.start()
            contract.score(folder, folder / "out")
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    return (peaks[1] - peaks[0]) / rows


def main() -> int:
    """Measure and print; 1 when a bound is asked for and missed."""
    parser = argparse.ArgumentParser(description="rows per CPU second of the contracts")
    parser.add_argument("contract", nargs="*", help="default: all")
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("-n", type=int, default=3, help="rounds (default: 3)")
    parser.add_argument("--json", action="store_true")
    parser.add_argument(
        "--min-factor", type=float, help="exit 1 below this multiple of the original"
    )
    parser.add_argument("--memory", action="store_true", help="bytes a row, too")
    parser.add_argument(
        "--max-bytes", type=float, help="exit 1 above this memory a row; --memory"
    )
    arguments = parser.parse_args()
    unknown = set(arguments.contract) - CONTRACTS.keys()
    if unknown:
        parser.error(f"no contract {sorted(unknown)}; there are {sorted(CONTRACTS)}")
    figures = {}
    for name in arguments.contract or sorted(CONTRACTS):
        contract = CONTRACTS[name]
        speed = rows_per_cpu_s(contract, arguments.rows, arguments.n)
        factor = speed / original_rows_per_cpu_s(contract, arguments.rows, arguments.n)
        figures[name] = {"rows_per_cpu_s": round(speed), "factor": round(factor, 1)}
        if arguments.memory or arguments.max_bytes is not None:
            size = bytes_per_row(contract, arguments.rows)
            figures[name]["bytes_per_row"] = round(size)
    if arguments.json:
        print(json.dumps(figures, sort_keys=True))
    else:
        for name, figure in figures.items():
            print(
                f"{name:18} {figure['rows_per_cpu_s']:>8} rows per CPU s, "
                f"{figure['factor']} times the original"
            )
            if "bytes_per_row" in figure:
                print(f"{'':18} {figure['bytes_per_row']:>8} bytes a row at the peak")
    slowest, largest = arguments.min_factor, arguments.max_bytes
    return int(
        any(
            (slowest is not None and figure["factor"] < slowest)
            or (largest is not None and figure["bytes_per_row"] > largest)
            for figure in figures.values()
        )
    )


if __name__ == "__main__":
    raise SystemExit(main())
