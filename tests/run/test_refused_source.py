"""A run that a gate refused leaves a diagnosis and nothing to resume."""

import shutil

import pytest

from harness.config import load_config
from harness.errors import SourceError


@pytest.mark.slow
def test_refused_run_starts_again_once_the_source_is_mended(bench, tmp_path):
    whole = bench.publication
    bench.publication = tmp_path / "benchmark"
    shutil.copytree(whole, bench.publication)
    config = bench.config("gold", executable=False)
    table = bench.publication / "benchmark.parquet"
    data = table.read_bytes()
    table.write_bytes(data + b"\n")
    with pytest.raises(SourceError):
        bench.run(config)
    left = {path.name for path in bench.output().glob("*.json")}
    table.write_bytes(data)
    finished = bench.run(load_config(config.paths.config))

    assert left == {"source_verification_failure.json"}
    assert finished.exit_status == 0
    assert not (bench.output() / "source_verification_failure.json").exists()
