"""Every bundled config runs as it is, on the benchmark that its head names."""

import shutil

import pytest

from harness.benchmark.bundled import bundled_config, bundled_pack
from harness.config import load_config
from harness.config.starter import CONTRACT_NAME

EXAMPLES = ("library-executable.yaml", "library-trace.yaml")


def test_every_bundled_config_is_run_here():
    folder = bundled_config(CONTRACT_NAME).parent

    assert sorted(path.name for path in folder.glob("*.yaml")) == list(EXAMPLES)


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_example_config_runs(name, tmp_path, bench):
    configs = tmp_path / "example" / "configs"
    shutil.copytree(bundled_config(name).parent, configs)
    shutil.copytree(bundled_pack("library"), tmp_path / "example" / "packs" / "library")
    shutil.copytree(bench.publication, configs / "library-benchmark")
    config = configs / name
    text = config.read_text("utf-8")
    config.write_text(text.replace("http://127.0.0.1:8377/v1", bench.base_url), "utf-8")
    finished = bench.run(load_config(config))

    scores = {c["alias"]: c["successful_tasks"] for c in finished.report["candidates"]}
    assert scores["gold"] == 50
    assert scores["eager"] < 50
