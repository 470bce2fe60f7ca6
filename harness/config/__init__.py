"""The evaluation config: closed, strict, all violations in one pass."""

from harness.config.evaluation import EvalConfig
from harness.config.load import load_config
from harness.config.resolve import ConfigPaths

__all__ = ["ConfigPaths", "EvalConfig", "load_config"]
