"""The trainer: takes steps, tells of them, evaluates, and keeps checkpoints from which it goes on bit for bit.

It does not know what it trains. A source gives micro-batches, an objective turns each into losses, and whatever else a
run does (evaluate, show progress, write the finished model) comes in as a hook.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from signal import SIGTERM
from typing import Any, TypeVar

import torch
from torch import nn

from heedful.errors import HeedfulError
from heedful.training.agreement import check_agreement
from heedful.training.contract import MicroBatch, Objective, Source
from heedful.training.distributed import World, joined, restarted
from heedful.training.events import Evaluated, Event, Note, Outcome, Progress
from heedful.training.free_memory import available
from heedful.training.hooks import Hooks
from heedful.training.journal import Journal, evaluation_at
from heedful.training.keeper import Keeper
from heedful.training.memory import does_not_fit, estimate, told_plainly
from heedful.training.optimiser import Optimiser
from heedful.training.own_step import stepper_for
from heedful.training.precision import resume_remark
from heedful.training.prefetch import Prefetch
from heedful.training.processor import arithmetic_of, computed_on
from heedful.training.run_folder import RunFolder
from heedful.training.sharding import sharded
from heedful.training.signals import BrokenOff, StopSignals
from heedful.training.state import LossWindow, TrainerState, score_named
from heedful.training.step import OutOfMemory, Taken, on_device
from heedful.training.timing import Clock
from heedful.training.training_config import TrainingConfig

__all__ = ["Hooks", "MicroBatch", "Objective", "Source", "Trainer"]

T = TypeVar("T")


class Trainer:
    """Trains `model` in `run_folder` as `config` says.

    `record` is the config of everything (a dataclass) that goes into the run's config.toml; without it `config` does.
    `device` is where it computes, without it a GPU if there is one; the model is moved there and stays.
    A program that does nothing but train should call `prepare_process` before anything else of torch.
    """

    def __init__(
        self,
        model: nn.Module,
        objective: Objective,
        source: Source,
        config: TrainingConfig,
        run_folder: str | Path | RunFolder,
        hooks: Hooks | None = None,
        record: Any = None,
        device: str | None = None,
    ) -> None:
        self.model, self.objective, self.source, self.config = model, objective, source, config
        self.folder = run_folder if isinstance(run_folder, RunFolder) else RunFolder(run_folder)
        self.hooks = hooks or Hooks()
        self.record, self.device = record or config, device
        self.clock = Clock()

    def run(self, resume: bool = False, signals: StopSignals | None = None, alone: World | None = None) -> Outcome:
        """Train to the end, or until one of `signals`; `resume` goes on with the run in the folder if there is one.

        Where nobody listens to signals, Ctrl-C leaves a checkpoint; `alone`: by this process only.
        """
        with (
            nullcontext(alone) if alone else joined(self.config.timeout_minutes, self.device) as world,
            signals or nullcontext(),
            Prefetch(self.source, world, self.config.steps) as prefetch,
            told_plainly(self.folder.path),
        ):
            try:
                check_agreement(world, self.record, self.source, self.model if self.config.shard else None)
                changed = world.first(lambda: self.folder.claim(self.record, resume or restarted()))
                return _Run(self, world, signals or StopSignals(), prefetch, changed).go()
            finally:
                self.folder.release()


class _Run:
    """A run in progress."""

    def __init__(
        self, trainer: Trainer, world: World, signals: StopSignals, prefetch: Prefetch, changed: str | None = None
    ) -> None:
        self.sharded = sharded(trainer.model, trainer.objective, world) if trainer.config.shard else None
        # Moved before there is an optimiser, whose state lies beside the parameters.
        self.model = self.sharded.model if self.sharded else trainer.model.to(world.device)
        objective = self.sharded.objective(trainer.objective) if self.sharded else trainer.objective
        self.config, self.folder, self.hooks = trainer.config, trainer.folder, trainer.hooks
        self.trainer, self.world, self.signals = trainer, world, signals
        self.prefetch, self.clock = prefetch, trainer.clock
        self.optimiser = Optimiser(self.model, self.config, self.hooks.rate_scale)
        self.stepper = stepper_for(self.model, objective, self.optimiser, self.config, world, self.clock, prefetch.fill)
        self.state = TrainerState(accumulate=self.config.accumulate)
        self.keeper = Keeper(
            self.folder, self.model, self.optimiser, world, lambda text: self._emit(Note(text)), self.stepper.carried
        )
        self.journal: Journal | None = None
        self.changed = changed  # what is other about a run that is gone on with
        self.pace: deque[tuple[float, int]] = deque(maxlen=50)  # moments and the tokens seen by then

    def go(self) -> Outcome:
        """The whole run; Ctrl-C that no signal handler caught loses no step that was done."""
        try:
            return self._all()
        except KeyboardInterrupt:
            self._keep_what_is_done()
            raise

    def _all(self) -> Outcome:
        """Every line of the loop happens on every rank, at the same step."""
        self.model.train()
        self._restore()
        self._tell_needs()
        self.prefetch.start(self.state.step, self.state.accumulate)
        self.pace.append((time.perf_counter(), self.state.tokens))
        if not self._evaluate_if_due():
            return self._stop()
        while self.state.step < self.config.steps and not self.state.patience_over(self.config):
            taken = self._step()
            self._tell(taken)
            if taken.totals.stop or (self.world.size == 1 and self.signals.received):
                return self._stop()
            if not self._evaluate_if_due():
                return self._stop()
            if self.config.checkpoint_every and self.state.step % self.config.checkpoint_every == 0:
                self._checkpoint()
        return self._finish()

    def _step(self) -> Taken:
        """The next step; if memory does not suffice, it is done in twice as many micro-batches of half the size."""
        largest = None
        while True:
            micro_batches = self.prefetch.take()
            self.clock.lap("wait")
            try:
                if largest is not None:
                    self._check_smaller(micro_batches, largest)
                taken = self.stepper.take(self.state.step, micro_batches, stop=self.signals.received is not None)
            except OutOfMemory:
                largest = self._size(micro_batches)
                self._halve()
            else:
                self.state.add(taken)
                self.stepper.moving = False
                return taken

    def _halve(self) -> None:
        self.state.accumulate *= 2
        self.stepper.share_carried()  # lanes change hands
        self._note(
            f"step {self.state.step + 1} does not fit into memory: micro-batches of half the size from here on, "
            f"{self.state.accumulate} for each batch; the batch stays the same",
            accumulate=self.state.accumulate,
        )
        self.prefetch.start(self.state.step, self.state.accumulate)

    def _size(self, micro_batches: Any) -> float:
        return self.world.sum([max(getattr(one, "at_once", one.tokens + one.padding) for one in micro_batches)])[0]

    def _check_smaller(self, micro_batches: Any, largest: float) -> None:
        if self._size(micro_batches) >= largest:
            raise does_not_fit(int(largest) // self.world.size, self.folder.path)

    def _tell(self, taken: Taken) -> None:
        """Progress after a step, a line in the journal now and then, and the end of too long a row of bad steps."""
        state, steps = self.state, self.config.steps
        self.pace.append((time.perf_counter(), state.tokens))
        (then, before), (now, tokens) = self.pace[0], self.pace[-1]
        speed = (tokens - before) / (now - then)
        left = (now - then) / (len(self.pace) - 1) * (steps - state.step)
        padding = taken.totals.padding / max(taken.totals.tokens + taken.totals.padding, 1)
        rate, norm = taken.learning_rate, taken.gradient_norm
        self._emit(Progress(state.step, steps, taken.losses, rate, norm, speed, padding, left))
        if not taken.finite:
            self._tell_skipped()
        if state.step % self.config.log_every == 0 or state.step == steps:
            self._write_line(taken, speed)
        self.clock.lap("other")

    def _write_line(self, taken: Taken, speed: float) -> None:
        window, self.state.window = self.state.window, LossWindow()
        self._journal(
            losses=window.losses,
            learning_rate=taken.learning_rate,
            gradient_norm=taken.gradient_norm,
            tokens=self.state.tokens,
            tokens_per_second=round(speed, 1),
            padding=window.padding / max(window.tokens + window.padding, 1),
            skipped=self.state.skipped,
        )

    def _tell_skipped(self) -> None:
        state = self.state
        self._note(f"step {state.step} skipped: its loss or gradient is not finite", skipped=state.skipped)
        if state.skipped_in_a_row >= self.config.non_finite_limit:
            newest = self._path(self.keeper.saved)
            good = f"the last good checkpoint is {newest.name}" if newest else "there is no checkpoint yet"
            raise HeedfulError(
                f"not finite {state.skipped_in_a_row} steps in a row, up to step {state.step}; {good}",
                where=newest or self.folder.path,
                remedy="look at the data of these steps, or start a new run with a lower learning rate",
            )

    def _evaluate_if_due(self) -> bool:
        """Evaluate; a new best is kept at once. Also done after a resume, if a signal came before it could be.

        False if a signal broke it off. The last step is saved before, whatever may happen to its evaluation.
        """
        state, every = self.state, self.config.eval_every
        last = state.step == self.config.steps
        due = last or (every and state.step % every == 0)
        if self.hooks.evaluate is None or not due or state.evaluated == state.step:
            return True
        if last:
            self._checkpoint()
        whole = self._whole()
        found = self.world.first(lambda: self._unless_stopped(lambda: self._evaluation(whole)))
        self.clock.lap("evaluation")
        if found is None:
            return False
        metrics, examples = found
        best = self._judge(metrics)
        self._journal(evaluation=metrics, **({"examples": examples} if examples else {}))
        self._emit(Evaluated(state.step, metrics, best, examples))
        if best:
            self._checkpoint()
        return True

    def _judge(self, metrics: Mapping[str, float]) -> bool:
        """Count an evaluation; gives whether it is the best so far."""
        self.state.evaluated = self.state.step
        decides, upwards = self.config.best, self.config.higher_is_better
        return decides is not None and self.state.judge(score_named(decides, metrics), upwards)

    def _unless_stopped(self, call: Callable[[], T]) -> T | None:
        """What comes of a call that changes nothing in the model, None if a signal broke it off."""
        try:
            with self.signals.breaking_off():
                return call()
        except BrokenOff:
            return None

    def _whole(self) -> nn.Module:
        """The model as rank 0 evaluates and saves it: with all of its weights."""
        return self.sharded.gather() if self.sharded else self.model

    def _evaluation(self, model: nn.Module) -> tuple[dict[str, float], list[Mapping[str, Any]]]:
        """The numbers, and the examples to look at."""
        assert self.hooks.evaluate is not None
        model.eval()
        try:
            with torch.no_grad():
                metrics = {name: float(value) for name, value in self.hooks.evaluate(model).items()}
                return metrics, list(self.hooks.examples(model)) if self.hooks.examples else []
        finally:
            model.train()

    def _checkpoint(self) -> None:
        if self.keeper.saved == self.state.step:
            return
        if self.journal is not None:
            self.journal.sync()
        self.keeper.write(self.state, self.config.keep_last)
        self.clock.lap("checkpoint")
        if self.world.rank == 0:
            self._write_timing()

    def _write_timing(self) -> None:
        place = computed_on(str(self.world.device), self.config.precision)
        self.clock.write(self.folder.timing, self.prefetch.seconds, place)

    def _restore(self) -> None:
        self.state = self.keeper.restore(self.state)
        before, self.state.arithmetic = self.state.arithmetic, arithmetic_of(self.world.device)
        if remark := resume_remark(self.config.precision, before, self.state.arithmetic):
            self._emit(Note(remark))
        if self.world.rank == 0:
            self.clock.resume(self.folder.timing)
            self.journal = Journal(self.folder.metrics, self.state.step)
        self._recall_evaluation()
        if self.changed:
            self._note(self.changed)
        self.clock.lap("other")

    def _recall_evaluation(self) -> None:
        """The last step is saved before it is evaluated: what came of that is in the journal alone."""
        if self.state.evaluated != self.state.step:
            metrics = self.world.first(lambda: evaluation_at(self.folder.metrics, self.state.step))
            if metrics is not None:
                self._judge(metrics)

    def _tell_needs(self) -> None:
        """Say, before the first step, how much memory it will take."""
        if self.world.rank == 0 and self.state.step < self.config.steps and not self.sharded:
            if self.config.shard:
                self._emit(Note("this process is alone: it has the whole model, and not a slice"))
            number, accumulate = self.state.step, self.state.accumulate
            micro_batch = self.trainer.source.step(number, self.world.rank, self.world.size, accumulate)[0]
            objective = on_device(self.trainer.objective, self.config.precision, self.world.device)
            needs = estimate(self.model, self.optimiser, objective, micro_batch)
            self._emit(Note(needs.beside(available(self.world.device))))

    def _keep_what_is_done(self) -> None:
        """Write a checkpoint of the last whole step, unless weights were just being moved or other processes wait."""
        if self.world.size == 1 and not self.stepper.moving and self.state.step > (self.keeper.saved or 0):
            self.optimiser.forget_gradients()
            self._checkpoint()

    def _stop(self) -> Outcome:
        self._checkpoint()
        # Where another rank had the signal, this one ends as if it had been asked politely.
        return self._outcome(signal=self.signals.received or SIGTERM)

    def _finish(self) -> Outcome:
        self._checkpoint()
        if self.journal is not None:
            self.journal.sync()
        self.world.first(lambda: self.folder.checkpoints.keep(self.config.keep_last, self.state.best_step))
        if self.config.restore_best and self.state.best_step is not None:
            self.keeper.restore_weights(self.state.best_step)
        self._whole()
        if not self.world.first(lambda: self._unless_stopped(self._save_model)):
            return self._outcome(signal=self.signals.received or SIGTERM)
        return self._outcome(stopped_early=self.state.step < self.config.steps)

    def _save_model(self) -> bool:
        """Write the finished model, if somebody wants it; it is there as a whole or not at all."""
        if self.hooks.save_model is not None:
            self.hooks.save_model(self.folder.model)
        return True

    def _outcome(self, stopped_early: bool = False, signal: int | None = None) -> Outcome:
        if self.journal is not None:
            self.journal.close()
            self._write_timing()
        state = self.state
        return Outcome(
            step=state.step,
            steps=self.config.steps,
            checkpoint=self._path(self.keeper.saved),
            best=self._path(state.best_step),
            best_value=state.best_value,
            skipped=state.skipped,
            accumulate=state.accumulate,
            stopped_early=stopped_early,
            signal=signal,
        )

    def _path(self, step: int | None) -> Path | None:
        return None if step is None else self.folder.checkpoints.path(step)

    def _note(self, text: str, **values: Any) -> None:
        """Tell the user, and later readers of the journal, of something out of the ordinary."""
        self._journal(note=text, **values)
        self._emit(Note(text))

    def _journal(self, **values: Any) -> None:
        if self.journal is not None:
            self.journal.write(self.state.step, values)

    def _emit(self, event: Event) -> None:
        if self.world.rank == 0 and self.hooks.on_event is not None:
            self.hooks.on_event(event)
