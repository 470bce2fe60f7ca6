"""Peak memory and CPU of `fairtrial audit` over many reports and over many rows.

A small benchmark is published once. Its gate reports are copied into many run folders,
and its published table is repeated, with new ids, into a large one. Each audit runs in
a process of its own, at two sizes, so that what grows is seen.

    python perf/audit.py
    python perf/audit.py --reports 10000 --rows 1000000 --max-mib 600
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

SMALLER = 10
"""How many times smaller the first of the two sizes is."""
BLOCK = 2000
READER = {
    "enabled": True,
    "provider": "nim",
    "model": "writer",
    "canonical_id": "nim:writer@provider_managed",
    "revision": None,
    "weights_digest": None,
}


@dataclass(frozen=True, slots=True)
class Measured:
    """One audit in a process of its own."""

    what: str
    size: int
    peak_mib: float
    cpu_s: float


def measure(what: str, size: int, words: list[str]) -> Measured:
    """Run one audit and read what the kernel says of its process."""
    command = [sys.executable, "-m", "harness.cli", "audit", *words]
    child = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.DEVNULL, env={**os.environ}
    )
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise SystemExit(f"the audit ended with {child.returncode}")
    cpu_s = usage.ru_utime + usage.ru_stime
    return Measured(what, size, round(usage.ru_maxrss / 1024, 1), round(cpu_s, 2))


def publish(folder: Path) -> Path:
    """Publish the bundled library, with a model that read some rows."""
    import anyio

    from harness.benchmark.bundled import resolve_pack
    from harness.benchmark.pack import load_pack
    from harness.benchmark.publication import publish as publish_pack
    from harness.oracle.certifying import CertifyingOracle

    benchmark = folder / "benchmark"

    async def published() -> None:
        pack = load_pack(resolve_pack("library"))
        await publish_pack(pack, benchmark, oracle=CertifyingOracle())

    anyio.run(published)
    return benchmark


def repeat_rows(benchmark: Path, rows: int) -> Path:
    """Return a copy of the benchmark of which every tenth row was paraphrased."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    target = benchmark.with_name(f"benchmark-{rows}")
    shutil.copytree(benchmark, target)
    published, raw = (_declared(target, name) for name in ("published", "raw"))
    small = pq.read_table(published)
    block = pa.concat_tables([small] * (BLOCK // len(small) + 1)).slice(0, BLOCK)
    published.unlink()
    raw.unlink()
    with pq.ParquetWriter(published, small.schema, compression="zstd") as writer:
        for start in range(0, rows, BLOCK):
            part = block.slice(0, min(BLOCK, rows - start))
            numbers = range(start, start + len(part))
            columns = {
                "task_id": [f"made-up-{number:08}" for number in numbers],
                "paraphrase_model": [_read(n, "model") for n in numbers],
                "paraphrase_model_canonical": [
                    _read(n, "canonical_id") for n in numbers
                ],
            }
            for name, values in columns.items():
                at = part.schema.get_field_index(name)
                part = part.set_column(
                    at, part.field(at), pa.array(values, pa.string())
                )
            writer.write_table(part)
    os.link(published, raw)
    _declare(target, rows)
    return target


def _read(number: int, field: str) -> object:
    return READER[field] if number % 10 == 0 else None


def _declared(benchmark: Path, table: str) -> Path:
    manifest = json.loads((benchmark / "run_manifest.json").read_text("utf-8"))
    return benchmark / manifest["publication"][table]["file"]


def _declare(benchmark: Path, rows: int) -> None:
    from harness.canonical import hash_file

    path = benchmark / "run_manifest.json"
    manifest = json.loads(path.read_text("utf-8"))
    manifest["models"]["paraphrase"] = READER
    for table in ("published", "raw"):
        section = manifest["publication"][table]
        section["rows"] = rows
        section["content_hash"] = hash_file(benchmark / section["file"])
        for artifact in manifest["artifacts"].values():
            if artifact["file"] == section["file"]:
                artifact["content_hash"] = section["content_hash"]
    text = json.dumps(manifest, indent=2, sort_keys=True, ensure_ascii=False)
    path.write_text(text + "\n", "utf-8")


def configure(benchmark: Path, name: str) -> Path:
    """Write a config with two candidates, one of them named as the reader."""
    from harness.config.starter import starter_candidate, write_starter_config

    output = benchmark.parent / f"{name}.yaml"
    alike = starter_candidate("http://127.0.0.1:9/v1", "writer", alias="writer")
    other = starter_candidate("http://127.0.0.1:9/v1", "other", alias="other")
    write_starter_config(
        output,
        run_manifest=benchmark / "run_manifest.json",
        candidates=[alike, other],
        oracle=None,
        output_dir=f"{name}-run",
    )
    return output


def leave_reports(config_path: Path, folder: Path, count: int) -> None:
    """Leave the files of one gate in many run folders."""
    from harness.benchmark.contamination import authorize, write_plan_report
    from harness.benchmark.source import verify_source, write_source_report
    from harness.config import load_config
    from harness.evidence.artifacts import write_json_artifact

    config = load_config(config_path)
    source = verify_source(config)
    first = folder / "run-00000"
    first.mkdir(parents=True)
    write_source_report(first, source)
    write_plan_report(first, authorize(config, source))
    write_json_artifact(first / "resolved_eval_config.json", config.resolved_document())
    for number in range(1, count):
        shutil.copytree(first, folder / f"run-{number:05}")


def audits(reports: int, rows: int) -> list[Measured]:
    """Measure both audits at both sizes."""
    found = []
    with tempfile.TemporaryDirectory(prefix="fairtrial-perf-") as name:
        folder = Path(name)
        benchmark = publish(folder)
        small = repeat_rows(benchmark, 60)
        for size in (reports // SMALLER, reports):
            runs = folder / f"reports-{size}"
            leave_reports(configure(small, f"reports-{size}"), runs, size)
            found.append(measure("reports", size, [f"{runs}/run-*"]))
            shutil.rmtree(runs)
        for size in (rows // SMALLER, rows):
            config = configure(repeat_rows(benchmark, size), f"rows-{size}")
            found.append(measure("rows", size, [str(config)]))
    return found


def main() -> int:
    """Measure, print and hold the bound."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--reports", type=int, default=10_000)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--max-mib", type=float, help="exit 1 above this peak")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    found = audits(arguments.reports, arguments.rows)
    if arguments.json:
        listed: list[dict[str, Any]] = [asdict(each) for each in found]
        print(json.dumps(listed, indent=2))
    else:
        for each in found:
            print(
                f"{each.size:>9,} {each.what:<8} peak {each.peak_mib:7.1f} MiB  "
                f"CPU {each.cpu_s:7.2f} s"
            )
    highest = max(each.peak_mib for each in found)
    return int(arguments.max_mib is not None and highest > arguments.max_mib)


if __name__ == "__main__":
    sys.exit(main())
