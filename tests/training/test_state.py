"""Which evaluation is the best."""

from __future__ import annotations

from heedful.training.state import TrainerState
from heedful.training.training_config import TrainingConfig


def test_of_equally_good_weights_the_later_ones_are_the_best_but_patience_runs_out() -> None:
    state, config = TrainerState(), TrainingConfig(steps=10, best="bleu", patience=2)
    told = []
    for step, value in enumerate([0.0, 0.0, 0.0], start=1):
        assert not state.patience_over(config)
        state.step = step
        told.append(state.judge(value, higher_is_better=True))
    assert told == [True, True, True] and state.best_step == 3 and state.patience_over(config)
    state.step = 4
    assert state.judge(1.0, higher_is_better=True) and not state.patience_over(config)
    assert not state.judge(0.5, higher_is_better=True) and state.best_step == 4
