"""Answers of a fine-tuned model: the one way that Python, `heedful predict` and `heedful evaluate` go.

predictor = Predictor(read_folder("run/model"))
predictor.predict(["a text", "another"])        # one mapping for each, ready for JSON
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from torch import nn

from heedful.checkpoints.folder import ModelFolder
from heedful.checkpoints.int8_scheme import Int8Scheme
from heedful.checkpoints.task_folder import TASK, load_for_task, read_task
from heedful.config import from_mapping
from heedful.data.labelled.dataset import BadRows, Columns, Dataset, TextRow
from heedful.data.labelled.spellings import respelled, spelling_of
from heedful.data.tables import RAGGED, ending
from heedful.errors import HeedfulError
from heedful.inference.engine_choice import onnx_session, runs_on_onnx
from heedful.inference.int8 import computes_in_int8, encoder_in_int8
from heedful.inference.onnx_engine import OnnxEncoder, OnnxHead
from heedful.inference.onnx_export import Comparison
from heedful.inference.workers import worker_pool
from heedful.models.encoder import Encoder, encoder_of
from heedful.nn.packed_linear import can_pack, pack_int8
from heedful.tasks.finetuning import predict
from heedful.tasks.registry import task_of
from heedful.tasks.task import Prediction
from heedful.text.documents import read_lines
from heedful.text.rows import DataSource, Rows

# So many examples are tokenized, sorted and computed together.
EXAMPLES_PER_CHUNK = 1024


@dataclass(frozen=True)
class Evaluation:
    """Labelled examples, what the model said of them, and how good that is."""

    data: Dataset[Any]
    predictions: Sequence[Prediction]
    scores: Mapping[str, float]


@dataclass(frozen=True)
class TrainingData:
    """What task.json tells of the data the model was trained on."""

    columns: Columns = field(default_factory=Columns)  # those that were named
    pairs: bool | None = None  # whether the texts came in pairs, if that is known
    merge_labels: str | None = None  # "case" if labels that differ only by case or spaces were taken for one


class Predictor:
    """A fine-tuned model with its task and tokenizer.

    An `encoder` that is loaded already takes the place of the one that is read with the head, so that only one stays
    in memory. `precision`, `force` and `engine` are those of `heedful.load`.
    """

    def __init__(
        self,
        folder: ModelFolder,
        device: str = "cpu",
        encoder: Encoder | None = None,
        precision: str = "auto",
        force: bool = False,
        engine: str = "auto",
    ) -> None:
        self.tokenizer = folder.require_tokenizer()
        # A folder of Hugging Face's does not say how long its windows were: as long as it allows.
        settings = {"max_length": folder.max_length, **read_task(folder.weights)}
        file = folder.weights / TASK
        self.task = task_of(settings, file)
        told = {known.name: settings[known.name] for known in fields(TrainingData) if known.name in settings}
        self.trained_on = from_mapping(TrainingData, told, file)
        folder.check_room(f"max_length {self.task.max_length} is", self.task.max_length, where=file)
        self.int8: Int8Scheme | None = None
        self.exported: Comparison | None = None  # how ONNX Runtime differs, where the model was exported for now
        if isinstance(encoder, OnnxEncoder):
            self.model: nn.Module = OnnxHead(encoder.session)
            return
        if encoder is None and runs_on_onnx(folder, engine):
            session, self.exported = onnx_session(folder, precision)
            self.model = OnnxHead(session)
            return
        self.model = load_for_task(folder, self.task.model, seed=0, complete=True).to(device).eval()
        if encoder is not None:
            self.model.encoder = encoder
            return
        own = encoder_of(self.model)
        if computes_in_int8(precision, device, folder.int8 is not None, force):
            self.int8 = encoder_in_int8(folder, own)
        if device == "cpu" and can_pack():
            own.pack()
            pack_int8(own)

    def predict(self, inputs: Any) -> list[Prediction]:
        """What the model says of each input: texts, pairs or mappings, as the task takes them."""
        if isinstance(inputs, str | Mapping):
            raise HeedfulError("a single input", remedy="give a list of inputs, such as [text]")
        examples = [self.task.example(given) for given in inputs]
        return [prediction for chunk in self.stream(examples) for prediction in chunk]

    def stream(self, examples: Sequence[Any]) -> Iterator[list[Prediction]]:
        """The predictions for examples, a chunk at a time."""
        self.check_pairs(examples)
        with worker_pool() as pool:
            for start in range(0, len(examples), EXAMPLES_PER_CHUNK):
                chunk = examples[start : start + EXAMPLES_PER_CHUNK]
                yield predict(self.task, self.model, chunk, self.tokenizer, pool.map)

    def read(
        self,
        data: str | DataSource,
        columns: Columns | None = None,
        labelled: bool = True,
        bad_rows: BadRows | None = None,
    ) -> Dataset[Any]:
        """The examples of a file, or of rows in memory; remarks tell of labels that training never showed.

        Columns that are not named are those of the training data. Without `labelled` every row is an example: one that
        cannot be read is an error, where labelled data may lose a few.
        """
        found = self.task.read_data(data, self.columns(data, columns or Columns(), labelled), labelled, bad_rows)
        if labelled:
            if self.trained_on.merge_labels:
                spelling = spelling_of(getattr(self.task, "labels", ()))
                found = replace(found, examples=[respelled(example, spelling) for example in found.examples])
            self.task.check(found.examples)
            return replace(found, remarks=(*found.remarks, *self.task.unseen(found.examples)))
        _check_whole(found)
        return found

    def evaluate(self, data: Dataset[Any], advance: Callable[[int], object] = lambda done: None) -> Evaluation:
        """Predictions and scores for labelled examples; `advance` is told how many are done."""
        predictions: list[Prediction] = []
        for chunk in self.stream(data.examples):
            predictions += chunk
            advance(len(predictions))
        return Evaluation(data, predictions, self.task.score(data.examples, predictions))

    def columns(self, data: str | DataSource, asked: Columns, labelled: bool = True) -> Columns:
        """The columns to read of a file: those that are named, else those of the training data."""
        own = self.trained_on.columns
        if not labelled and asked == Columns() and _holds_plain_lines(data, own.text):
            return asked
        return Columns(*(getattr(asked, one.name) or getattr(own, one.name) for one in fields(Columns)))

    def check_pairs(self, examples: Sequence[Any]) -> None:
        """Refuse pairs where the model was trained on single texts, and the other way round."""
        pairs = self.trained_on.pairs
        if pairs is None:
            return
        for row in examples:
            if isinstance(row, TextRow) and (row.pair is not None) != pairs:
                trained, given = ("pairs of texts", "a single one") if pairs else ("single texts", "a pair")
                raise HeedfulError(
                    f"the model was trained on {trained}, and this is {given}",
                    where=row.where or None,
                    remedy="give the second text too, or name its column" if pairs else "give or name one text only",
                )


def _check_whole(data: Dataset[Any]) -> None:
    for remark in data.remarks:
        if remark.what == RAGGED:
            what = f"{remark.count:,} rows have another number of columns than the header"
            raise HeedfulError(what, where=remark.places[0], remedy="fix them: each row is to get an answer")


def _holds_plain_lines(data: str | DataSource, header: str | None) -> bool:
    """Whether a file has a text in each line and no columns; the first line may still name the only one."""
    if isinstance(data, Rows) or ending(Path(data)) != ".txt":
        return False
    first = next((line for line in read_lines(data) if line.strip()), "")
    return "\t" not in first and first.strip() != header
