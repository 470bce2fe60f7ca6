"""What may stand nowhere in a config: secrets, and placeholders of a template.

The file ends up beside published scores, so it names the environment variable of a
key and never the key (`spec/executable-evaluator.md` 3.1).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from harness.canonical import Json
from harness.config.violations import Violations
from harness.strict_yaml import YamlPath

PLACEHOLDER: Final = "REPLACE_ME_"
_SECRET_NAMES: Final = frozenset(
    [
        "api_key",
        "apikey",
        "authorization",
        "bearer_token",
        "password",
        "secret",
        "token",
        "access_token",
        "auth_token",
        "credentials",
        "private_key",
    ]
)
_SECRET_SUFFIXES: Final = (
    "_api_key",
    "_password",
    "_secret",
    "_access_token",
    "_auth_token",
    "_token",
)
_SECRET_STARTS: Final = (
    *[
        "nvapi-",
        "sk-",
        "sk_live_",
        "hf_",
        "ghp_",
        "gho_",
        "github_pat_",
        "xoxb-",
        "xoxp-",
        "aiza",
    ],
    "bearer ",
)


def scan(violations: Violations) -> None:
    """Record every secret and placeholder; no message repeats the secret."""
    for path, text, is_key in _texts(violations.raw, ()):
        if _is_secret(text):
            shown = path[:-1] if is_key else path
            _refuse_secret(
                violations, path, shown, "a text that looks like a credential"
            )
        elif is_key and _names_secret(text):
            _refuse_secret(violations, path, path, f"the key {text!r} names a secret")
        elif PLACEHOLDER in text:
            violations.add(
                "eval_config_invalid",
                path,
                "a placeholder of the template was not filled in",
                expected="a value of your own",
                actual=PLACEHOLDER,
                recovery="replace the whole placeholder",
            )


def _refuse_secret(
    violations: Violations, path: YamlPath, shown: YamlPath, problem: str
) -> None:
    violations.add(
        "secret_in_eval_config",
        path,
        problem,
        expected="no secret in a file that is published with the score",
        recovery="export it and name the variable in candidates[].api.api_key_env; "
        "revoke it if the file was shared",
        shown=shown,
    )


def _names_secret(key: str) -> bool:
    name = key.strip().casefold().replace("-", "_")
    return name in _SECRET_NAMES or name.endswith(_SECRET_SUFFIXES)


def _is_secret(text: str) -> bool:
    return text.strip().casefold().startswith(_SECRET_STARTS)


def _texts(value: Json, path: YamlPath) -> Iterator[tuple[YamlPath, str, bool]]:
    """Yield every key and text with the path that it stands at."""
    if isinstance(value, str):
        yield path, value, False
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts(item, (*path, index))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield (*path, key), key, True
            yield from _texts(item, (*path, key))
