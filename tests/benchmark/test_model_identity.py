import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.benchmark.model_identity import IdentityClaim, compare

HEX, OTHER = "a" * 64, "b" * 64
FIELDS = (
    "provider",
    "served_model",
    "weight_source",
    "weight_model",
    "revision",
    "weights_digest",
    "label",
)


def claim(**stated):
    return IdentityClaim(**{**dict.fromkeys(FIELDS), **stated})


LLAMA = {"served_model": "meta/llama-3"}


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict", "axis"),
    [
        # 1: a side that names nothing
        ({}, LLAMA, "unknown", "nothing_named"),
        (LLAMA, {}, "unknown", "nothing_named"),
        (LLAMA, {"provider": "nim"}, "unknown", "nothing_named"),
        # 2: digests
        (
            {"weights_digest": f"sha256:{HEX}"},
            {"weights_digest": f"sha256:{HEX}"},
            "match",
            "weights_digest",
        ),
        (
            {"weights_digest": f"sha256:{HEX}"},
            {"weights_digest": HEX.upper()},
            "match",
            "weights_digest",
        ),
        (
            {"weights_digest": f"sha256:{HEX}"},
            {"weights_digest": f"bfcl-weight-manifest-v1:{HEX}"},
            "match",
            "weights_digest",
        ),
        (
            {**LLAMA, "weights_digest": f"sha256:{HEX}"},
            {**LLAMA, "weights_digest": f"sha256:{OTHER}"},
            "different",
            "weights_digest",
        ),
        (
            {**LLAMA, "weights_digest": f"sha256:{HEX}"},
            {**LLAMA, "weights_digest": OTHER},
            "different",
            "weights_digest",
        ),
        # conflicting schemes, lengths and broad schemes fall through to names
        (
            {**LLAMA, "weights_digest": f"sha256:{HEX}"},
            {**LLAMA, "weights_digest": f"bfcl-weight-manifest-v1:{OTHER}"},
            "match",
            "served_model",
        ),
        (
            {**LLAMA, "weights_digest": HEX},
            {**LLAMA, "weights_digest": OTHER[:40]},
            "match",
            "served_model",
        ),
        (
            {**LLAMA, "weights_digest": f"bfcl-weight-manifest-v1:{HEX}"},
            {**LLAMA, "weights_digest": f"bfcl-weight-manifest-v1:{OTHER}"},
            "match",
            "served_model",
        ),
        (
            {"weights_digest": f"sha256:{HEX}"},
            {"weights_digest": f"bfcl-weight-manifest-v1:{OTHER}"},
            "unknown",
            "name",
        ),
        # 3: labels
        ({"label": "hf:M@x"}, {"label": "HF:m@X"}, "match", "label"),
        # 4: served models
        (LLAMA, {"served_model": "Meta/Llama-3"}, "match", "served_model"),
        (
            {**LLAMA, "provider": "nim"},
            {**LLAMA, "provider": "NIM"},
            "match",
            "served_model",
        ),
        (
            {**LLAMA, "provider": "nim"},
            {**LLAMA, "provider": "other"},
            "unknown",
            "name",
        ),
        # 5: shared names
        (LLAMA, {"served_model": "llama_3"}, "unknown", "name"),
        (
            {**LLAMA, "weight_source": "hf", "revision": "1"},
            {"weight_model": "LLaMA 3", "weight_source": "ngc", "revision": "1"},
            "unknown",
            "weight_source",
        ),
        (
            {**LLAMA, "revision": "ABC"},
            {"weight_model": "llama-3", "revision": "abc"},
            "match",
            "revision",
        ),
        (
            {**LLAMA, "revision": "abc"},
            {"weight_model": "llama-3", "revision": "abd"},
            "different",
            "revision",
        ),
        ({**LLAMA, "revision": "abc"}, {"weight_model": "llama-3"}, "unknown", "name"),
        ({"label": "hf:org/llama-3@x"}, LLAMA, "unknown", "name"),
        # 6: no shared name
        (LLAMA, {"served_model": "mistral-7b"}, "different", "name"),
        (LLAMA, {"revision": "abc"}, "unknown", "name"),
        (LLAMA, {"served_model": "模型"}, "unknown", "name"),
    ],
)
def test_first_rule_that_decides_wins(ours, theirs, verdict, axis):
    comparison = compare(claim(**ours), claim(**theirs))

    assert (comparison.verdict, comparison.axis) == (verdict, axis)


def test_digest_outranks_every_name():
    ours = claim(**LLAMA, label="l", weights_digest=f"sha256:{HEX}")
    theirs = claim(**LLAMA, label="l", weights_digest=f"sha256:{OTHER}")

    assert compare(ours, theirs).verdict == "different"


def test_unknown_says_what_would_settle_it():
    ours = claim(served_model="llama-3", revision="abc")
    theirs = claim(served_model="x/llama-3")

    assert compare(ours, theirs).settled_by == (
        "state a weights_digest of the candidate and of the exposed model, "
        "or a revision of the exposed model"
    )


TEXTS = st.none() | st.sampled_from(
    ["m", "M", "org/m", "n", f"sha256:{HEX}", HEX, f"bfcl-weight-manifest-v1:{OTHER}"]
)
CLAIMS = st.builds(IdentityClaim, **dict.fromkeys(FIELDS, TEXTS))


@given(CLAIMS, CLAIMS)
def test_comparison_is_symmetric(one, other):
    assert compare(one, other).verdict == compare(other, one).verdict


@given(CLAIMS, CLAIMS)
def test_case_never_matters(one, other):
    def upper(side):
        payload = side.semantic_payload()
        return IdentityClaim(**{k: v and v.upper() for k, v in payload.items()})

    assert compare(upper(one), other).verdict == compare(one, other).verdict


@given(CLAIMS, CLAIMS)
def test_only_the_unknown_can_be_settled(one, other):
    comparison = compare(one, other)

    assert (comparison.settled_by is not None) == (comparison.verdict == "unknown")


@given(CLAIMS)
def test_a_model_is_never_different_from_itself(one):
    assert compare(one, one).verdict != "different"
