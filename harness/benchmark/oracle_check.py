"""The pack of an executable run, held to what was certified.

The map of file hashes is the authority, for it says which file differs; the
fingerprint is recomputed under the algorithm that the manifest names. A foreign
algorithm whose bytes are unknown is settled by the map alone
(`spec/executable-evaluator.md` 1.10, 3.3). Pack code runs only in the probe, which
is passed in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from harness.benchmark.pack import Pack, load_pack
from harness.benchmark.pack_code import PackCode
from harness.benchmark.pack_tree import FINGERPRINT_OWN, FINGERPRINT_V1
from harness.benchmark.run_manifest import RunManifest
from harness.canonical import (
    Json,
    canonical_json,
    content_hash,
    hash_file,
    json_equal,
)
from harness.config import ConfigPaths, EvalConfig
from harness.errors import PackError, SourceError

INTERFACE: Final = ("call_tool", "get_state", "list_tools", "reset")
IsolationLevel = Literal["process", "confined", "namespaces"]
FILE_MAP: Final = "file-map"
"""How a pack is settled whose fingerprint algorithm is unknown."""


class ProbeAnswer(Protocol):
    """What a throwaway worker found: the four functions, or why not."""

    @property
    def importable(self) -> bool:
        """Whether the backend imports and has its four functions."""

    @property
    def detail(self) -> str:
        """The fault in words, empty where there is none."""

    @property
    def tools(self) -> Sequence[str]:
        """What `list_tools` returned."""


class Probe(Protocol):
    """Imports a pack in a throwaway worker under a containment level."""

    def __call__(self, pack: PackCode, *, level: IsolationLevel) -> ProbeAnswer:
        """Return what the worker found; a broken pack is an answer too."""


@dataclass(frozen=True, slots=True)
class CheckedOracle:
    """A pack that is the certified one."""

    pack: Pack
    algorithm: str
    identity_payload: dict[str, Json]
    probed: bool

    @property
    def verification_identity(self) -> str:
        """The content hash of everything that fixes the oracle's answers."""
        return content_hash(self.identity_payload)

    def payload(self) -> dict[str, Json]:
        """Return the oracle as the report has it."""
        return {
            **self.identity_payload,
            "fingerprint_algorithm": self.algorithm,
            "interface_probed": self.probed,
            "verification_identity": self.verification_identity,
        }


def check_oracle(
    config: EvalConfig,
    manifest: RunManifest,
    probe: Probe | None,
    passed: Callable[[str], None],
) -> CheckedOracle:
    """Load the pack and compare it with the manifest; raise SourceError."""
    paths = config.paths
    pack = _load(paths)
    algorithm = _check_fingerprint(pack, manifest)
    passed("oracle_pack")
    role = _check_resource(pack, paths, manifest)
    _check_endpoint(pack, manifest)
    passed("oracle_resource")
    probed = probe is not None and pack.oracle_kind == "python"
    if probe is not None and probed:
        _check_interface(pack, probe(pack.code(), level=config.isolation.level))
        passed("oracle_interface")
    resource = pack.manifest.paths[role]
    identity: dict[str, Json] = {
        "kind": pack.oracle_kind,
        "pack_id": pack.pack_id,
        "pack_version": pack.version,
        "pack_content_hash": manifest.pack["content_hash"],
        "pack_file_count": len(manifest.pack["files"]),
        "resource_role": "backend" if role == "backend" else "endpoint_config",
        "resource_content_hash": hash_file(resource),
        "interface": list(INTERFACE),
        "endpoint": manifest.value["oracle"].get("endpoint"),
    }
    return CheckedOracle(pack, algorithm, identity, probed)


def _load(paths: ConfigPaths) -> Pack:
    if paths.pack_manifest is None:
        raise AssertionError("an executable config names its pack")
    try:
        return load_pack(paths.pack_manifest)
    except PackError as error:
        raise SourceError(
            "eval_source_oracle_pack_drift",
            "the pack does not load, so it is not the certified one",
            where=error.violations[0].where,
            expected="the pack as it was published",
            actual="; ".join(v.problem for v in error.violations[:3]),
            recovery="restore the pack, or publish it again as it is now",
        ) from None


def _check_fingerprint(pack: Pack, manifest: RunManifest) -> str:
    """Return the algorithm under which the pack is the certified one."""
    for name, stated, seen in (
        ("pack_id", manifest.pack["pack_id"], pack.pack_id),
        ("version", manifest.pack["version"], pack.version),
    ):
        if stated != seen:
            raise _drift(f"manifest.yaml: {name}", stated, seen)
    named = manifest.pack.get("fingerprint_algorithm")
    inert = pack.tree.docs_files() if named == FINGERPRINT_OWN else {}
    files = {name: h for name, h in pack.files.items() if name not in inert}
    differences = _differences(manifest.pack["files"], files, pack)
    if differences:
        raise _drift("; ".join(differences[:8]), "the files of the manifest", "others")
    if named is None:
        same = pack.tree.fingerprint(FINGERPRINT_V1).value
        unnamed = same == manifest.pack["content_hash"]
        return FINGERPRINT_V1 if unnamed else FILE_MAP
    if named not in (FINGERPRINT_OWN, FINGERPRINT_V1):
        return FILE_MAP
    actual = pack.tree.fingerprint(named).value
    if actual != manifest.pack["content_hash"]:
        raise _drift(f"fingerprint {named}", manifest.pack["content_hash"], actual)
    return str(named)


def _differences(
    published: dict[str, str], found: dict[str, str], pack: Pack
) -> list[str]:
    declared = {
        name
        for name, path in pack.tree.paths.items()
        if path in pack.manifest.paths.values()
    }
    lines = []
    for name in sorted(published.keys() | found.keys()):
        if published.get(name) == found.get(name):
            continue
        kind = "changed"
        if name not in found:
            kind = "removed"
        elif name not in published:
            kind = "added"
        role = "" if name in declared or kind == "removed" else ", no declared input"
        lines.append(f"{name} ({kind}{role})")
    return lines


def _drift(where: str, expected: str, actual: str) -> SourceError:
    return SourceError(
        "eval_source_oracle_pack_drift",
        "the pack is not the one that was certified",
        where=where,
        expected=expected,
        actual=actual,
        recovery="restore the pack, or publish it again as it is now",
    )


def _check_resource(pack: Pack, paths: ConfigPaths, manifest: RunManifest) -> str:
    role = "backend" if pack.oracle_kind == "python" else "endpoint"
    own = pack.manifest.paths[role].resolve()
    named = paths.resource.resolve() if paths.resource else None
    if named != own:
        raise SourceError(
            "eval_source_oracle_resource_mismatch",
            f"the config's resource is not the pack's own {role}",
            where="source_oracle.resource",
            expected=own.name,
            actual=named.name if named else "none",
            recovery=f"name the {role} file of the pack",
        )
    stated = manifest.value["oracle"]["kind"]
    if stated != pack.oracle_kind:
        raise SourceError(
            "eval_source_oracle_resource_mismatch",
            "the pack answers in another way than when it was published",
            where="run_manifest.json: oracle.kind",
            expected=stated,
            actual=pack.oracle_kind,
            recovery="use the pack as it was published",
        )
    return role


def _check_endpoint(pack: Pack, manifest: RunManifest) -> None:
    """Compare the declared endpoint with the published one; nobody is contacted."""
    if pack.endpoint is None:
        return
    published = manifest.value["oracle"].get("endpoint")
    stated = published if isinstance(published, dict) else {}
    for name, declared in pack.endpoint.metadata().items():
        if not json_equal(stated.get(name), declared):
            raise SourceError(
                "eval_source_oracle_resource_mismatch",
                "the pack's endpoint is not the published one",
                where=f"run_manifest.json: oracle.endpoint.{name}",
                expected=canonical_json(stated.get(name)),
                actual=canonical_json(declared),
                recovery="use the pack as it was published",
            )


def _check_interface(pack: Pack, answer: ProbeAnswer) -> None:
    declared = sorted(pack.tools.by_name)
    listed = sorted(answer.tools)
    if answer.importable and listed == declared:
        return
    raise SourceError(
        "eval_source_oracle_resource_mismatch",
        "the backend does not answer as the pack declares",
        where=f"pack {pack.pack_id} {pack.version}",
        expected=f"{', '.join(INTERFACE)}, and the tools {declared}",
        actual=answer.detail or f"the tools {listed}",
        recovery="`fairtrial pack check` shows what is wrong with the pack",
    )
