"""Answers of a fine-tuned model: the one way that Python, `heedful predict` and `heedful evaluate` go.

predictor = Predictor(read_folder("run/model"))
predictor.predict(["a text", "another"])        # one mapping for each, ready for JSON
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from heedful.checkpoints.folder import ModelFolder
from heedful.checkpoints.task_folder import load_for_task, read_task
from heedful.data.labelled import Columns, Dataset
from heedful.errors import HeedfulError
from heedful.inference.workers import worker_pool
from heedful.models.bert import Bert
from heedful.nn.packed_linear import can_pack
from heedful.tasks.finetuning import predict
from heedful.tasks.registry import task_of
from heedful.tasks.task import Prediction

# So many examples are tokenized, sorted and computed together.
EXAMPLES_PER_CHUNK = 1024


@dataclass(frozen=True)
class Evaluation:
    """Labelled examples, what the model said of them, and how good that is."""

    data: Dataset[Any]
    predictions: Sequence[Prediction]
    scores: Mapping[str, float]


class Predictor:
    """A fine-tuned model with its task and tokenizer; an `encoder` that is loaded already is used, not read again."""

    def __init__(self, folder: ModelFolder, device: str = "cpu", encoder: Bert | None = None) -> None:
        if folder.tokenizer is None:
            raise HeedfulError("the folder has no tokenizer", where=folder.path, remedy="put its tokenizer.json there")
        self.tokenizer = folder.tokenizer
        self.task = task_of(read_task(folder.weights), folder.weights)
        self.model: nn.Module = load_for_task(folder, self.task.model, seed=0, complete=True).to(device).eval()
        if encoder is not None:
            self.model.encoder = encoder
        elif device == "cpu" and can_pack():
            self.model.encoder.pack()  # type: ignore[operator, union-attr]

    def predict(self, inputs: Any) -> list[Prediction]:
        """What the model says of each input: texts, pairs or mappings, as the task takes them."""
        if isinstance(inputs, str | Mapping):
            raise HeedfulError("a single input", remedy="give a list of inputs, such as [text]")
        examples = [self.task.example(given) for given in inputs]
        return [prediction for chunk in self.stream(examples) for prediction in chunk]

    def stream(self, examples: Sequence[Any]) -> Iterator[list[Prediction]]:
        """The predictions for examples, a chunk at a time."""
        with worker_pool() as pool:
            for start in range(0, len(examples), EXAMPLES_PER_CHUNK):
                chunk = examples[start : start + EXAMPLES_PER_CHUNK]
                yield predict(self.task, self.model, chunk, self.tokenizer, pool.map)

    def read(self, path: str | Path, columns: Columns | None = None, labelled: bool = True) -> Dataset[Any]:
        """The examples of a file, checked against the labels the model knows."""
        data = self.task.read(Path(path), columns or Columns(), labelled)
        if labelled:
            self.task.check(data.examples)
        return data

    def evaluate(self, data: Dataset[Any]) -> Evaluation:
        """Predictions and scores for labelled examples."""
        predictions = [prediction for chunk in self.stream(data.examples) for prediction in chunk]
        return Evaluation(data, predictions, self.task.score(data.examples, predictions))
