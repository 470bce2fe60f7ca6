import dataclasses
import json

import pytest

from harness.benchmark.contamination import (
    assert_plan_unchanged,
    authorize,
    write_plan_failure,
    write_plan_report,
)
from harness.errors import ContaminationError
from tests.benchmark.publications import MODEL, candidate

EXPOSED = "eval_contamination_candidate_exposed"
UNRESOLVED = "eval_contamination_unresolved"
EMPTY = "eval_contamination_empty_task_set"
PIN = {"revision": "a" * 40}
READ = 3


@pytest.fixture
def paraphrased(publication):
    """Three rows were paraphrased by the model `writer` at the provider `nim`."""
    expose(publication)
    return publication


def expose(publication, rows=READ, **model):
    entry = {**MODEL, **model}

    def mark(table):
        for row in table[:rows]:
            row["paraphrase_model"] = entry["model"]
            row["paraphrase_model_canonical"] = entry["canonical_id"]

    publication.edit_rows(mark)
    publication.edit_manifest(lambda m: m["models"].update(paraphrase=entry))


def plan(publication, *aliases, candidates=None, **changes):
    config, source = gate(publication, *aliases, candidates=candidates, **changes)
    return authorize(config, source)


def gate(publication, *aliases, candidates=None, **changes):
    listed = candidates or [candidate(alias, **PIN) for alias in aliases]
    paths = {tuple(key.split("__")): value for key, value in changes.items()}
    config = publication.configured(candidates=listed, changes=paths)
    from harness.benchmark.source import verify_source

    return config, verify_source(config)


def refusal(publication, *aliases, **options):
    with pytest.raises(ContaminationError) as caught:
        plan(publication, *aliases, **options)
    return caught.value


def unresolved():
    """A candidate with the exposed model's name at another provider."""
    section = candidate("writer")
    section["provider"] = section["model_identity"]["source"] = "elsewhere"
    return section


def test_benchmark_that_no_model_read_leaves_every_task(publication):
    made = plan(publication, "alpha", "beta", publication__requested=True)

    assert made.publication_allowed
    assert made.common == tuple(publication.task_ids())
    assert [c.collisions for c in made.candidates] == [(), ()]


def test_served_model_that_read_rows_is_refused(paraphrased):
    error = refusal(paraphrased, "writer")

    assert error.code == EXPOSED


def test_every_exposed_candidate_is_named(paraphrased):
    listed = [
        candidate("writer", **PIN),
        candidate("other", **PIN),
        {**candidate("ghost", **PIN), "model": "Writer"},
    ]
    error = refusal(paraphrased, candidates=listed)

    assert [v.where for v in error.violations] == [
        "candidate ghost, role paraphrase",
        "candidate writer, role paraphrase",
    ]
    assert "served_model" in error.violations[0].problem


def test_other_model_is_not_exposed(paraphrased):
    made = plan(paraphrased, "alpha", publication__requested=True)

    assert made.publication_allowed
    assert len(made.exposures) == 1


def test_equal_digest_under_another_name_is_refused(publication):
    expose(publication, weights_digest="c" * 64)
    listed = [candidate("alpha", weights_digest="sha256:" + "c" * 64)]

    error = refusal(publication, candidates=listed)

    assert error.code == EXPOSED
    assert "weights_digest" in error.violations[0].problem


def test_different_digest_under_the_same_name_is_no_exposure(publication):
    expose(publication, weights_digest="sha256:" + "c" * 64)
    listed = [candidate("writer", weights_digest="sha256:" + "d" * 64)]

    assert plan(publication, candidates=listed).candidates[0].collisions == ()


def test_digest_of_another_scheme_falls_through_to_the_name(publication):
    expose(publication, weights_digest="bfcl-weight-manifest-v1:" + "c" * 64)
    listed = [candidate("writer", weights_digest="sha256:" + "d" * 64)]

    assert refusal(publication, candidates=listed).code == EXPOSED


def test_unresolved_exposure_runs_and_is_not_publishable(paraphrased):
    made = plan(paraphrased, candidates=[unresolved()])

    assert len(made.task_ids_for("writer")) == 50
    assert not made.publication_allowed
    assert "contamination.unresolved[writer]" in made.non_publication_reasons


def test_unresolved_exposure_refuses_a_requested_publication(paraphrased):
    section = unresolved()
    section["model_identity"] = {"source": "hf", "model": "org/writer", **PIN}
    error = refusal(paraphrased, candidates=[section], publication__requested=True)

    assert error.code == UNRESOLVED
    assert "state a weights_digest" in error.violations[0].recovery


def test_match_is_reported_before_the_unresolved(paraphrased):
    ghost = {**unresolved(), "alias": "ghost"}
    ghost["model_identity"] = {"source": "hf", "model": "org/writer", **PIN}
    error = refusal(
        paraphrased,
        candidates=[ghost, candidate("writer", **PIN)],
        publication__requested=True,
    )

    assert [v.code for v in error.violations] == [EXPOSED, UNRESOLVED]


def test_exclude_row_drops_exactly_the_rows_that_were_read(paraphrased):
    made = plan(
        paraphrased, "alpha", "writer", contamination__on_violation="exclude_row"
    )
    ids = tuple(paraphrased.task_ids())

    assert made.candidate("writer").excluded_task_ids == ids[:READ]
    assert made.candidate("writer").eligible_task_ids == ids[READ:]
    assert made.candidate("alpha").eligible_task_ids == ids


def test_common_set_is_what_every_candidate_may_be_asked(paraphrased):
    made = plan(
        paraphrased, "alpha", "writer", contamination__on_violation="exclude_row"
    )

    assert made.task_ids_for("alpha") == made.task_ids_for("writer") == made.common
    assert len(made.common) == 50 - READ


def test_per_candidate_set_is_the_candidates_own(paraphrased):
    made = plan(
        paraphrased,
        "alpha",
        "writer",
        contamination__on_violation="exclude_row",
        contamination__comparison_set="per_candidate",
    )

    assert len(made.task_ids_for("alpha")) == 50
    assert len(made.task_ids_for("writer")) == 50 - READ


def test_exclude_row_keeps_the_unresolved(paraphrased):
    made = plan(
        paraphrased,
        candidates=[unresolved()],
        contamination__on_violation="exclude_row",
    )

    assert made.candidates[0].excluded_task_ids == ()


def test_excluded_rows_are_a_reason_against_publication(paraphrased):
    made = plan(
        paraphrased, "alpha", "writer", contamination__on_violation="exclude_row"
    )

    assert "contamination.exposed[writer]" in made.non_publication_reasons
    assert "contamination.on_violation" in made.non_publication_reasons


def test_policy_that_is_not_enforced_records_and_excludes_nothing(paraphrased):
    made = plan(paraphrased, "writer", contamination__enforce=False)

    assert len(made.common) == 50
    assert len(made.candidate("writer").having("match")) == 1
    assert not made.publication_allowed


@pytest.mark.parametrize("comparison_set", ["per_candidate", "common_intersection"])
def test_candidate_without_a_task_is_refused(publication, comparison_set):
    expose(publication, rows=50)
    error = refusal(
        publication,
        "alpha",
        "writer",
        contamination__on_violation="exclude_row",
        contamination__comparison_set=comparison_set,
    )

    assert error.code == EMPTY
    assert error.violations[0].where == "candidate writer"


def test_empty_common_set_is_refused_where_it_is_used(publication):
    def split(rows):
        for index, row in enumerate(rows):
            if index < 25:
                row["paraphrase_model"] = "writer"
                row["paraphrase_model_canonical"] = MODEL["canonical_id"]
            else:
                row["metadata"]["profile_hash"] = "sha256:" + "1" * 64

    publication.edit_rows(split)

    def models(manifest):
        manifest["models"]["paraphrase"] = MODEL
        manifest["models"]["profile"] = {
            **MODEL,
            "model": "shaper",
            "canonical_id": "nim:shaper@x",
        }
        manifest["profile_influenced_surface"] = True

    publication.edit_manifest(models)
    excluding = {"contamination__on_violation": "exclude_row"}
    error = refusal(publication, "shaper", "writer", **excluding)
    own = plan(
        publication,
        "shaper",
        "writer",
        contamination__comparison_set="per_candidate",
        **excluding,
    )

    assert (error.code, error.violations[0].where) == (EMPTY, "the common set")
    assert len(own.task_ids_for("shaper")) == len(own.task_ids_for("writer")) == 25


def test_judge_read_every_row(publication):
    publication.edit_manifest(lambda m: m["models"].update(surface_judge=MODEL))

    error = refusal(publication, "writer")

    assert "50 rows (all_published_rows)" in error.violations[0].actual


def test_two_roles_of_one_model_exclude_their_union(publication):
    expose(publication)

    def shape(rows):
        for row in rows[2:5]:
            row["metadata"]["profile_hash"] = "sha256:" + "1" * 64

    publication.edit_rows(shape)

    def models(manifest):
        manifest["models"]["profile"] = MODEL
        manifest["profile_influenced_surface"] = True

    publication.edit_manifest(models)
    made = plan(publication, "writer", contamination__on_violation="exclude_row")

    assert len(made.candidate("writer").excluded_task_ids) == 5


def test_lineage_not_meant_for_publication_is_carried_into_the_plan(publication):
    publication.edit_manifest(lambda m: m.update(lineage_policy="smoke_no_publication"))
    made = plan(publication, "alpha", publication__requested=True)

    assert made.non_publication_reasons == ("source.lineage_policy",)
    assert not made.publication_allowed


def test_source_of_another_config_is_refused(publication):
    config, source = gate(publication, "alpha")
    other, _ = gate(publication, "beta")

    with pytest.raises(ContaminationError) as caught:
        authorize(other, source)

    assert caught.value.code == "eval_contamination_invalid"
    assert authorize(config, source).plan_identity


def test_plan_derived_again_is_the_same(paraphrased):
    config, source = gate(paraphrased, "alpha")
    made = authorize(config, source)

    assert authorize(config, source).plan_identity == made.plan_identity
    assert_plan_unchanged(made, config, source)


def test_widened_plan_is_refused(paraphrased):
    config, source = gate(
        paraphrased, "writer", contamination__on_violation="exclude_row"
    )
    made = authorize(config, source)
    widened = dataclasses.replace(made, common=source.task_ids)

    with pytest.raises(ContaminationError) as caught:
        assert_plan_unchanged(widened, config, source)

    assert caught.value.code == "eval_contamination_plan_drift"


@pytest.mark.parametrize(
    "field",
    [
        "eval_config_hash",
        "scoring_policy_hash",
        "source_verification_identity",
        "source_run_id",
        "source_task_ids_hash",
        "enforce",
        "on_violation",
        "comparison_set",
        "exposures",
        "candidates",
        "common",
        "publication_allowed",
        "non_publication_reasons",
    ],
)
def test_every_field_of_the_plan_moves_its_identity(paraphrased, field):
    made = plan(paraphrased, "alpha")
    value = getattr(made, field)
    changed = value[:-1] if isinstance(value, tuple) else f"{value}x"

    assert dataclasses.replace(made, **{field: changed}).plan_identity != (
        made.plan_identity
    )


def test_order_of_candidates_in_the_file_does_not_matter(paraphrased):
    one = plan(paraphrased, "alpha", "beta")
    other = plan(paraphrased, "beta", "alpha")

    assert one.plan_identity == other.plan_identity


def test_unknown_alias_has_no_tasks(publication):
    with pytest.raises(KeyError):
        plan(publication, "alpha").task_ids_for("beta")


def test_report_shows_what_decided_and_removes_a_failure(paraphrased):
    made = plan(paraphrased, candidates=[unresolved()])
    folder = paraphrased.root / "run"
    folder.mkdir()
    (folder / "contamination_failure.json").write_text("{}")
    write_plan_report(folder, made)

    (path,) = folder.iterdir()
    report = json.loads(path.read_bytes())
    (collision,) = report["candidates"][0]["collisions"]
    assert report["plan_identity"] == made.plan_identity
    assert (collision["verdict"], collision["decided_by"]) == ("unknown", "name")
    assert collision["settled_by"].startswith("state a weights_digest")
    assert len(collision["task_ids"]) == READ
    assert str(paraphrased.root) not in path.read_text("utf-8")


def test_failure_names_collisions_and_removes_an_older_report(paraphrased):
    config, source = gate(paraphrased, "writer")
    folder = paraphrased.root / "run"
    folder.mkdir()
    (folder / "contamination_report.json").write_text("{}")
    with pytest.raises(ContaminationError) as caught:
        authorize(config, source)
    write_plan_failure(folder, config, source, caught.value)

    (path,) = folder.iterdir()
    failure = json.loads(path.read_bytes())
    assert path.name == "contamination_failure.json"
    assert failure["error"]["code"] == EXPOSED
    assert failure["candidates"][0]["collisions"][0]["verdict"] == "match"
