"""One rung of the ladder: a model is trained and then measured, each only as far as it has not been done before."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from heedful.data.corpus.corpus import Corpus
from heedful.inference.embedder import Embedder
from heedful.inference.load import load_embedder
from heedful.runs.ladder import measurements
from heedful.runs.ladder.measured import Measured
from heedful.runs.ladder.rungs import Rung, pretraining_of
from heedful.runs.ladder.settings import LadderSettings
from heedful.runs.ladder.tasks import LabelledTask, tasks_of
from heedful.runs.ladder.trials import WAYS, Way, finished, settings_of_try, tried
from heedful.runs.ladder.valid_text import valid_texts
from heedful.runs.pretraining.plan import parse_phases
from heedful.runs.pretraining.run import pretrain
from heedful.runs.run import Stage
from heedful.runs.settings import Place, storable
from heedful.training.events import Event, Progress

TRAINING, SIZE, SPEED, PERPLEXITY = "training", "size", "speed", "perplexity"
PAIRS = "pairs"


class RungRun:
    """The work on one rung, in a process of its own, because its memory is measured too."""

    def __init__(self, rung: Rung, settings: LadderSettings, stage: Stage) -> None:
        self.rung, self.settings, self.stage = rung, settings, stage
        self.measured = Measured(stage.folder.path)
        self.pretraining = pretraining_of(rung, settings)
        self.trained = storable(self.pretraining)  # whatever is measured was measured of this

    def go(self) -> None:
        """Train, then measure."""
        if self.measured.take(TRAINING, {"trained": self.trained}, self._training):
            self._measure()

    def _training(self) -> dict[str, Any]:
        return measurements.of_training(finished(pretrain(self.pretraining, self.stage)))

    @cached_property
    def model(self) -> Embedder:
        """The trained model."""
        return load_embedder(self.stage.folder.path)

    @cached_property
    def texts(self) -> list[str]:
        """The text for perplexities."""
        return valid_texts(Corpus.open(self.settings.corpus), self.settings.valid)

    @property
    def length(self) -> int:
        """The longest examples it was trained on."""
        return max(phase.length for phase in parse_phases(self.pretraining.phases or self.settings.phases))

    def _measure(self) -> None:
        valid = {"valid": str(self.settings.valid)}
        self._take(SIZE, {}, lambda: measurements.of_size(self.model.folder))
        self._take(SPEED, valid, lambda: measurements.speed(self.model, self.texts))
        self._take(PERPLEXITY, valid, lambda: measurements.perplexity(self.model, self.texts, self.length))
        for pairs in self.settings.pairs:
            name = f"{PAIRS} {measurements.name_of_pairs(pairs)}"
            self._take(name, {"pairs": str(pairs)}, partial(self._similarity, pairs))
        for task in tasks_of(self.settings.tasks, Path(self.settings.output)):
            for way in WAYS:
                told = settings_of_try(self.rung, task, way, self.settings, Path(), self.length)
                self._take(f"{way} {task.name}", {"told": storable(told)}, partial(self._tried, task, way))

    def _similarity(self, pairs: Place) -> dict[str, Any]:
        return measurements.similarity(self.model, pairs, self.rung.static)

    def _tried(self, task: LabelledTask, way: Way) -> dict[str, Any]:
        quiet = replace(self.stage, on_event=self._only_steps)
        return tried(self.rung, self.model, task, way, self.settings, self.length, quiet)

    def _only_steps(self, event: Event) -> None:
        if isinstance(event, Progress):
            self.stage.on_event(event)

    def _take(self, name: str, of: Mapping[str, Any], measure: Callable[[], Mapping[str, Any]]) -> None:
        self.stage.note(name)
        self.measured.take(name, {"trained": self.trained, **of}, measure)
