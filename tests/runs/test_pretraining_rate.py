"""The rate of a pretraining run that is told none."""

from __future__ import annotations

from heedful.models.bert import sized
from heedful.runs.pretraining.recipes import rate_for
from heedful.tasks.objectives import CAUSAL, MLM


def test_the_rate_falls_as_the_width_grows_and_is_half_where_masked_tokens_are_learned_from_random_weights() -> None:
    mini, base = sized("mini", 8000), sized("base", 8000)
    assert rate_for(mini, MLM, informed=True) == 1e-3 and rate_for(base, MLM, informed=True) == 1e-3 / 3
    assert rate_for(mini, MLM, informed=False) == 5e-4
    assert rate_for(mini, CAUSAL, informed=False) == rate_for(mini, CAUSAL, informed=True) == 1e-3
