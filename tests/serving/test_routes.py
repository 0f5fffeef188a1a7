"""What a server tells of itself: health, metrics, models, and the clocks of each answer."""

from __future__ import annotations

from typing import Any

from heedful.serving.verbs.verb import Asked


def test_health_and_ready(live: Any) -> None:
    assert live.http.get("/health").json() == {"status": "ok"}
    assert live.http.get("/ready").json() == {"status": "ready"}


def test_info_names_models_verbs_and_limits(live: Any) -> None:
    info = live.http.get("/info").json()
    models = {one["name"]: one for one in info["models"]}
    assert list(models) == ["tiny", "classify", "regress", "tag", "answer", "choose", "multilabel", "en-zh"]
    assert models["tiny"]["verbs"] == ["embed", "similarity", "tokenize", "attention", "fill", "score", "search"]
    assert {"classify", "predict", "embed"} <= set(models["classify"]["verbs"])
    assert models["classify"]["labels"] == ["bad", "good"]
    assert "classify" in models["multilabel"]["verbs"] and models["multilabel"]["task"] == "multilabel"
    assert models["tiny"]["mask"] == "[MASK]"
    assert models["en-zh"]["verbs"] == ["translate", "score", "tokenize", "attention"]
    assert info["limits"]["max_inputs"] == 10_000 and info["versions"]["torch"]


def test_timing_is_told_when_it_is_asked_for(live: Any) -> None:
    assert "timing" not in live.ask("tiny", "embed", inputs=["a"])
    clocks = live.ask("tiny", "embed", inputs=["a"], timing=True)["timing"]
    assert list(clocks) == ["queue_ms", "tokenize_ms", "compute_ms", "total_ms"]
    assert clocks["compute_ms"] > 0 and clocks["total_ms"] >= clocks["compute_ms"]


def test_what_was_cut_is_told(live: Any) -> None:
    assert live.ask("tiny", "embed", inputs=["a", "cat " * 600, "b"])["truncated"] == [1]


def test_metrics_count_requests_batches_and_stages(live: Any) -> None:
    live.ask("tiny", "embed", inputs=["a", "the cat sees"])
    live.http.post("/v1/models/nobody/knows", json={})
    text = live.http.get("/metrics").text
    for line in (
        'heedful_requests_total{model="tiny",status="200",verb="embed"}',
        'heedful_requests_total{model="",status="404",verb=""}',
        'heedful_inputs_total{model="tiny",verb="embed"}',
        *("heedful_queue_tokens 0.0", "heedful_tokens_total", "heedful_padding_saved_tokens_total"),
        *(f'heedful_stage_seconds_count{{stage="{stage}"}}' for stage in ("queue", "tokenize", "compute", "answer")),
    ):
        assert line in text
    assert "knows" not in text


def test_the_description_has_a_route_for_every_verb(live: Any) -> None:
    described = live.http.get("/openapi.json").json()
    assert described["paths"]["/v1/models/tiny/embed"]["post"]["summary"].startswith("Vectors")
    page = live.http.get("/docs").text
    assert "POST /v1/models/en-zh/translate" in page
    told_elsewhere = ("/docs", "/page/{file}", "/v1/models/{name}/{verb}")
    for route in live.running.door.app.routes:
        assert route.path in told_elsewhere or route.path in page, f"nobody is told of {route.path}"
    schema = described["components"]["schemas"]["EmbedAsked"]
    assert schema["additionalProperties"] is False and schema["required"] == ["inputs"]


def test_every_field_says_what_it_is(live: Any) -> None:
    kinds: set[type[Asked]] = set()
    for served in live.running.server.service.catalogue.models.values():
        kinds |= {verb.asked for verb in served.verbs.values()}
    for kind in kinds:
        for name, field in kind.model_fields.items():
            assert field.description, f"{kind.__name__}.{name}"


def test_no_request_of_the_description_breaks_the_server(live: Any, script: Any) -> None:
    """A few cases for every operation; the script takes as many as one likes."""
    report = script("serve_fuzz").fuzz(live.url, cases=10, only=["/v1/models/tiny/embed", "/v1/models/answer/answer"])
    assert report["cases"] >= 20
    assert report["failures"] == []
