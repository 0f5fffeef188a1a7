"""The page of attention: its numbers are the model's, it needs no network, and no text can break out of it."""

from __future__ import annotations

import base64
import hashlib
import json
import re

import numpy as np

from heedful.views.attention_page import AttentionPicture, Neighbours, attention_page

WEIGHTS = np.array([[[[0.25, 0.75], [1.0, 0.0]]]], np.float32)


def page(tokens: list[str]) -> str:
    picture = AttentionPicture("Self-attention", tokens, tokens, WEIGHTS)
    near = Neighbours(tokens, [0, 0], [[[(1, 0.5)], [(0, 0.5)]]])
    return attention_page("a <model>", [picture], near, np.eye(3, dtype=np.float32))


def data(html: str) -> dict[str, dict[str, object]]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.S)
    assert found
    result: dict[str, dict[str, object]] = json.loads(found[1])
    return result


def test_the_weights_are_there_to_a_byte() -> None:
    found = data(page(["a", "b"]))
    (picture,) = found["pictures"]
    stored = np.frombuffer(base64.b64decode(picture["bytes"]), np.uint8)  # type: ignore[index]
    np.testing.assert_allclose(stored / 255, WEIGHTS.ravel(), atol=1 / 255)
    assert found["neighbours"]["nearest"] == [[[[1, 0.5]], [[0, 0.5]]]]
    assert found["positions"]["size"] == 3


def test_the_only_script_is_the_one_that_the_policy_names() -> None:
    html = page(["a", "b"])
    scripts = re.findall(r"<script>(.*?)</script>", html, re.S)
    assert len(scripts) == 1
    digest = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'" in html
    assert "src=" not in html and "href=" not in html


def test_no_text_breaks_out() -> None:
    tokens = ["</script><script>alert(1)</script>", "\ud800"]
    html = page(tokens)
    assert html.count("<script") == 2 and "a &lt;model&gt;" in html
    assert data(html)["pictures"][0]["rows"][0] == tokens[0]  # type: ignore[index]
    html.encode("utf-8")
