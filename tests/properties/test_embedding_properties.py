"""One text, one vector: whatever its neighbours, its place among them and its script."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from heedful.inference.embedder import Embedder

TEXT = st.text(st.sampled_from("ab the cat中国，🙂é\u0301 \n"), max_size=60)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(TEXT, min_size=1, max_size=12), data=st.data())
def test_company_does_not_matter(tiny: Embedder, texts: list[str], data: st.DataObject) -> None:
    chosen = data.draw(st.integers(0, len(texts) - 1))
    alone = {normalize: tiny.embed([texts[chosen]], normalize=normalize)[0] for normalize in (False, True)}
    np.testing.assert_allclose(tiny.embed(texts)[chosen], alone[False], rtol=0, atol=2e-5)
    np.testing.assert_allclose(tiny.embed(texts, normalize=True)[chosen], alone[True], rtol=0, atol=1e-6)


@settings(max_examples=40, deadline=None)
@given(texts=st.lists(st.text(max_size=80), max_size=6))
def test_any_text_has_vectors_of_numbers(tiny: Embedder, texts: list[str]) -> None:
    for unit in ("sentence", "word", "token"):
        vectors = tiny.embed(texts, unit=unit)
        assert len(vectors) == len(texts)
        assert all(np.isfinite(v).all() for v in vectors)
