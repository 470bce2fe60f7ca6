"""What the values of a config must be to each other.

A rule looks only at sound values, so each reports its own mistake and no other
(`spec/executable-evaluator.md` 3.1).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from harness.config.resolve import PUBLICATION_FILES, Resolver
from harness.config.values import RESERVED_BODY_KEYS, is_pinning_revision
from harness.config.violations import UNSOUND, Unsound, Violations, seen

_NAMESPACE: Final = re.compile(r"[a-z0-9][a-z0-9_]*\.v[0-9]+")
_RESOURCE_SUFFIXES: Final = {
    "python": (".py",),
    "endpoint": (".yaml", ".yml", ".json"),
}


def check_relations(violations: Violations) -> None:
    """Record every broken relation between values of the document."""
    for rule in _RULES:
        rule(violations)


def check_candidates(violations: Violations) -> None:
    """Record broken relations within `candidates`, whatever kind the config has."""
    for rule in _CANDIDATE_RULES:
        rule(violations)


def check_locations(violations: Violations, files: Resolver) -> None:
    """Record an output folder that would touch the publication or the pack."""
    output = files.output_dir
    if output is None:
        return
    manifest = files.place("source_run_manifest")
    pack = files.place("source_oracle", "pack_manifest")
    source = manifest.parent if manifest else None
    held = [name for name in PUBLICATION_FILES if (output / name).exists()]
    if held or (source and (_holds(source, output) or _holds(output, source))):
        problem = "the output folder and the publication overlap"
    elif pack and _holds(pack.parent, output):
        problem = "the output folder lies in the pack, which is hashed whole"
    else:
        return
    violations.add(
        "eval_config_path_invalid",
        ("outputs", "output_dir"),
        problem,
        expected="a folder of its own, outside the publication and the pack",
        actual=seen(violations.raw["outputs"]["output_dir"]),
        recovery="name another folder",
    )


def _holds(folder: Path, inner: Path) -> bool:
    return inner == folder or folder in inner.parents


def check_oracle_facts(violations: Violations, files: Resolver) -> None:
    """Record a pack that is not the one the publication was made from."""
    oracle = files.oracle()
    if oracle is None:
        return
    published_oracle = files.manifest.get("oracle")
    published_pack = files.manifest.get("pack")
    for section, key, path in (
        (published_oracle, "kind", "kind"),
        (published_pack, "pack_id", "pack_manifest"),
        (published_pack, "version", "pack_manifest"),
    ):
        declared = oracle[key]
        expected = section.get(key) if isinstance(section, dict) else None
        if expected is None or declared is None or expected == declared:
            continue
        violations.add(
            "eval_config_invalid",
            ("source_oracle", path),
            f"the oracle's {key} is not the publication's",
            expected=seen(expected),
            actual=seen(declared),
            recovery="name the pack that the benchmark was published from",
        )


def check_outputs(violations: Violations) -> None:
    """Record a flag that would leave a run without the evidence of its score.

    Scores are worked out from the logs, and the manifest says that a folder is
    whole; without them a run could be neither resumed nor replayed. The task table
    alone follows from the rest, so it alone may be left out.
    """
    modes = violations.value("eval", "mode")
    executable = not isinstance(modes, Unsound) and "executable" in modes
    for flag in ("write_eval_manifest", "cache_candidate_responses"):
        _kept(violations, flag)
    if executable:
        _kept(violations, "cache_tool_results")


def _kept(violations: Violations, flag: str) -> None:
    if violations.value("outputs", flag) is False:
        violations.add(
            "eval_config_invalid",
            ("outputs", flag),
            "a run without it can be neither resumed nor replayed",
            expected="true",
            actual="false",
            recovery="write true; outputs.write_task_results may be false",
        )


def _oracle_for_mode(violations: Violations) -> None:
    modes = violations.value("eval", "mode")
    oracle = violations.value("source_oracle")
    if isinstance(modes, Unsound) or isinstance(oracle, Unsound):
        return
    executable = "executable" in modes
    if executable == (oracle is not None):
        return
    violations.add(
        "eval_config_invalid",
        ("source_oracle",),
        "the oracle does not fit the mode",
        expected="an oracle" if executable else "null, as a trace run has no oracle",
        actual=seen(oracle),
        recovery="name the pack, or change eval.mode",
    )


def _resource_suffix(violations: Violations) -> None:
    kind = violations.value("source_oracle", "kind")
    resource = violations.value("source_oracle", "resource")
    if isinstance(kind, Unsound) or isinstance(resource, Unsound):
        return
    suffixes = _RESOURCE_SUFFIXES[kind]
    if not resource.endswith(suffixes):
        violations.add(
            "eval_config_invalid",
            ("source_oracle", "resource"),
            f"not a resource of kind {kind}",
            expected=f"a file ending with {' or '.join(suffixes)}",
            actual=seen(resource),
            recovery="name the pack's backend or endpoint file",
        )


def _deadlines(violations: Violations) -> None:
    episode = violations.value("limits", "episode_timeout_s")
    if isinstance(episode, Unsound):
        return
    for key in ("tool_timeout_s", "candidate_timeout_s"):
        part = violations.value("limits", key)
        if not isinstance(part, Unsound) and episode < part:
            violations.add(
                "eval_config_invalid",
                ("limits", "episode_timeout_s"),
                f"an episode is given less time than its {key}",
                expected=f"at least {part}",
                actual=seen(episode),
                recovery="raise it, or lower the part",
            )


def _success_for_mode(violations: Violations) -> None:
    modes = violations.value("eval", "mode")
    success = violations.value("scoring", "task_success")
    if isinstance(modes, Unsound) or success != "assertions_only":
        return
    if "executable" not in modes:
        violations.add(
            "eval_config_invalid",
            ("scoring", "task_success"),
            "a trace run has no assertions to succeed by",
            expected='"all_applicable_gates", or eval.mode with executable',
            actual=seen(success),
            recovery="change one of the two",
        )


def _sampling(violations: Violations) -> None:
    for index in range(violations.candidates()):
        path = ("candidates", index, "inference")
        temperature = violations.value(*path, "temperature")
        top_p = violations.value(*path, "top_p")
        if isinstance(temperature, Unsound) or top_p is not None:
            continue
        if temperature != 0:
            violations.add(
                "eval_config_invalid",
                (*path, "top_p"),
                "top_p may be left out of the request only at temperature 0",
                expected="a number above 0, at most 1",
                actual="null",
                recovery="write 1.0 for no restriction",
            )


def _pins(violations: Violations) -> None:
    for index in range(violations.candidates()):
        path = ("candidates", index, "model_identity")
        revision = violations.value(*path, "revision", default=None)
        digest = violations.value(*path, "weights_digest", default=None)
        if isinstance(revision, Unsound) or isinstance(digest, Unsound):
            continue
        if revision is None and digest is None:
            _unpinned(violations, index)
        elif digest is None and not is_pinning_revision(revision):
            violations.add(
                "candidate_identity_invalid",
                (*path, "revision"),
                "a revision that does not pin the weights",
                expected="40 to 64 hex digits, or a weights_digest beside it",
                actual=seen(revision),
                recovery="write the full commit hash",
            )


def _unpinned(violations: Violations, index: int) -> None:
    path = ("candidates", index)
    for identity_key, candidate_key in (("source", "provider"), ("model", "model")):
        claimed = violations.value(*path, "model_identity", identity_key)
        served = violations.value(*path, candidate_key)
        if isinstance(claimed, Unsound) or isinstance(served, Unsound):
            continue
        if claimed != served:
            violations.add(
                "candidate_identity_invalid",
                (*path, "model_identity", identity_key),
                "an identity without a pin claims more than the endpoint says",
                expected=f"the candidate's {candidate_key}, {seen(served)}",
                actual=seen(claimed),
                recovery="repeat it, or add a revision or weights_digest",
            )


def _distinct(violations: Violations) -> None:
    aliases: dict[str, int] = {}
    identities: dict[tuple[object, ...], int] = {}
    for index in range(violations.candidates()):
        path = ("candidates", index)
        alias = violations.value(*path, "alias")
        if isinstance(alias, str) and aliases.setdefault(alias, index) != index:
            _repeats(violations, (*path, "alias"), "alias", aliases[alias])
        identity = violations.value(*path, "model_identity")
        if not isinstance(identity, dict):
            continue
        pin = identity.get("weights_digest") or identity.get("revision")
        key = (identity["source"], identity["model"], pin)
        if identities.setdefault(key, index) != index:
            _repeats(violations, (*path, "model_identity"), "identity", identities[key])


def _repeats(
    violations: Violations, path: tuple[str | int, ...], what: str, first: int
) -> None:
    violations.add(
        "candidate_identity_invalid",
        path,
        f"two candidates share one {what}",
        expected=f"another {what} than candidates[{first}]",
        actual="the same",
        recovery="a model under other settings is another run, not another candidate",
    )


def _extensions(violations: Violations) -> None:
    for index in range(violations.candidates()):
        path = ("candidates", index)
        extensions = violations.value(*path, "inference", "provider_extensions")
        if not isinstance(extensions, dict):
            continue
        for namespace, body in extensions.items():
            _extension(violations, path, namespace, body)


def _extension(
    violations: Violations, path: tuple[str | int, ...], namespace: str, body: object
) -> None:
    place = (*path, "inference", "provider_extensions", namespace)
    provider = violations.value(*path, "provider")
    version = violations.value(*path, "provider_api_version")
    if _NAMESPACE.fullmatch(namespace) is None:
        problem, expected = "not an extension namespace", "`name.v1`, lower case"
    elif UNSOUND not in (provider, version) and namespace != f"{provider}.{version}":
        problem = "an extension for another provider would never be sent"
        expected = f"{provider}.{version}"
    else:
        problem = expected = ""
    if problem:
        violations.add(
            "eval_config_invalid",
            place,
            problem,
            expected=expected,
            actual=namespace,
            recovery="make it `<provider>.<provider_api_version>`",
        )
    stated = body if isinstance(body, dict) else {}
    for key in sorted(RESERVED_BODY_KEYS & stated.keys()):
        violations.add(
            "eval_config_invalid",
            (*place, key),
            "an extension may not set what the config itself states",
            expected="none of " + ", ".join(sorted(RESERVED_BODY_KEYS)),
            actual=key,
            recovery="use the key of the candidate or its inference section",
        )


_CANDIDATE_RULES: Final[tuple[Callable[[Violations], None], ...]] = (
    _sampling,
    _pins,
    _distinct,
    _extensions,
)
_RULES: Final[tuple[Callable[[Violations], None], ...]] = (
    _oracle_for_mode,
    _resource_suffix,
    _deadlines,
    _success_for_mode,
    *_CANDIDATE_RULES,
)
