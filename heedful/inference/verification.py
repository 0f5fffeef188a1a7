"""Are two folders the same model? Every layer's states and every head's outputs, compared on texts.

    found = verify("bert_tensorflow", "bert_hugging_face")
    found.same, found.differences

The folders may be in any format that can be read, and even of different families: it is what they compute that counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from heedful.checkpoints.encoder_folder import load_encoder, load_for_pretraining, load_head
from heedful.checkpoints.folder import ModelFolder, read_folder
from heedful.checkpoints.folder_weights import is_exported
from heedful.checkpoints.task_folder import load_for_task, read_task
from heedful.data.batching import TOKENS_PER_BATCH, cut_by_tokens, flat_batch
from heedful.errors import HeedfulError
from heedful.export.padded import LOGITS, STATES, VECTORS
from heedful.inference.engine_choice import onnx_session
from heedful.inference.load import model_path
from heedful.models.encoder import Encoder
from heedful.models.heads import SequenceClassifier
from heedful.nn.pooling import pool
from heedful.schema import Batch, Selection
from heedful.tasks.registry import task_of
from heedful.tasks.task import Task

# Rounding of float32, added up over a dozen layers, stays far below this; float16 copies of weights do not.
TOLERANCE = 1e-4
SENTENCE = "sentence vectors"
SENTENCES = (
    "The quick brown fox jumps over the lazy dog.",
    "Attention is a weighted mean, and the weights are learned.",
    "今天天气怎么样？微信和支付宝哪个好？",
    "Der Zug nach Łódź fährt um 17:45 Uhr; naïve Reisende warten.",
    "a",
    "In 2018 a model of 340,000,000 parameters was thought to be large. " * 12,
)


@dataclass(frozen=True)
class Difference:
    """The largest difference of two numbers in the same place."""

    what: str  # "layer 3", "pooler", "MLM head", "sentence vectors" …
    largest: float


@dataclass(frozen=True)
class Verification:
    """What came of a comparison."""

    differences: tuple[Difference, ...]
    apart: tuple[str, ...]  # what cannot be compared because it is not the same kind of thing
    notes: tuple[str, ...]  # what is stored in int8, and what only one has, which is no difference of what both have
    tolerance: float

    @property
    def largest(self) -> float:
        """The largest difference of all."""
        return max((one.largest for one in self.differences), default=0.0)

    @property
    def same(self) -> bool:
        """Whether the two are the same model, within the tolerance."""
        return not self.apart and self.largest <= self.tolerance


@torch.inference_mode()
def verify(
    first: str | Path,
    second: str | Path,
    texts: Iterable[str] = SENTENCES,
    *,
    tolerance: float = TOLERANCE,
    force: bool = False,
) -> Verification:
    """Compare two model folders, or those of runs, on texts; `force` takes tokenizers with far too few pieces."""
    folders = [read_folder(model_path(path), force) for path in (first, second)]
    one, other = (folder.model_config for folder in folders)
    if (one.layers, one.width) != (other.layers, other.width):
        return Verification((), (f"{one.described} beside {other.described}",), (), tolerance)
    batches, apart = _batches(folders, list(texts))
    answers = [_answers(folder, batches) for folder in folders]
    notes = [
        f"the {name} is stored in {f.int8}" for name, f in zip(("first", "second"), folders, strict=True) if f.int8
    ]
    for has, lacks, names in ((0, 1, ("first", "second")), (1, 0, ("second", "first"))):
        notes += [f"only the {names[0]} has: {what}" for what in answers[has] if what not in answers[lacks]]
    differences = []
    for what, ours in answers[0].items():
        theirs = answers[1].get(what)
        if theirs is not None and ours.shape != theirs.shape:
            apart.append(f"{what}: {ours.shape[-1]} numbers beside {theirs.shape[-1]}")
        elif theirs is not None:
            differences.append(Difference(what, _largest(ours, theirs)))
    return Verification(tuple(differences), tuple(apart), tuple(notes), tolerance)


def _largest(one: Tensor, other: Tensor) -> float:
    """The largest difference; where one has no number and the other has, it is infinite."""
    distance = torch.nan_to_num((one - other).abs(), nan=torch.inf)
    return float(torch.where(one.isnan() & other.isnan(), 0.0, distance).max()) if one.numel() else 0.0


def _batches(folders: Sequence[ModelFolder], texts: list[str]) -> tuple[list[Batch], list[str]]:
    """The texts as both models see them, and what their tokenizers do not agree on."""
    limit = min(folder.max_length for folder in folders)
    rows = min(folder.model_config.vocab_size for folder in folders)
    tokenizers = [folder.tokenizer for folder in folders if folder.tokenizer is not None]
    if not tokenizers:
        return [flat_batch(_made_up(rows, limit))], []
    if not texts:
        raise HeedfulError("there are no texts to compare on", remedy="give a file with some lines, or none at all")
    encodings = [tokenizer.encode_batch(texts, limit) for tokenizer in tokenizers]
    other = sum(left.ids != right.ids for left, right in zip(encodings[0], encodings[-1], strict=True))
    apart = [f"the tokenizers make other pieces of {other} of {len(texts)} texts"] if other else []
    ids = [[min(piece, rows - 1) for piece in encoding.ids] for encoding in encodings[0]]
    cut = cut_by_tokens([len(one) for one in ids], TOKENS_PER_BATCH)
    return [flat_batch([ids[i] for i in batch], [encodings[0][i].type_ids for i in batch]) for batch in cut], apart


def _made_up(rows: int, limit: int) -> list[list[int]]:
    """Sequences of pieces from all over a vocabulary, for models without a tokenizer."""
    return [[(start + 7919 * place) % rows for place in range(min(limit, 64))] for start in range(3)]


def _answers(folder: ModelFolder, batches: Sequence[Batch]) -> dict[str, Tensor]:
    """All that a model computes for the batches: the states of each layer, and what its heads make of them."""
    if is_exported(folder.weights):
        return _exported_answers(folder, batches)
    encoder = load_encoder(folder)
    layers = range(encoder.layer_count + 1)
    states = [encoder(batch, hidden=layers).hidden for batch in batches]
    found = {f"layer {number}": torch.cat([one[number] for one in states]) for number in layers}
    last = found[f"layer {layers[-1]}"]
    found |= _pretrained_heads(folder, encoder, last, batches)
    return {**found, **_sentence_vectors(folder, last, batches), **_task_head(folder, batches)}


def _exported_answers(folder: ModelFolder, batches: Sequence[Batch]) -> dict[str, Tensor]:
    """What an exported folder tells: the last layer's states, and its vectors or what the head of its task says."""
    (session, _), task = onnx_session(folder), _task(folder)
    names = {f"layer {folder.model_config.layers}": STATES}
    names |= {SENTENCE: VECTORS} if task is None else {f"head of the task {task.name}": LOGITS}
    found = {what: [session(batch, output) for batch in batches] for what, output in names.items()}
    return {
        what: torch.cat([torch.from_numpy(said[real] if said.ndim == 3 else said) for said, real in some])
        for what, some in found.items()
    }


def _pretrained_heads(
    folder: ModelFolder, encoder: Encoder, last: Tensor, batches: Sequence[Batch]
) -> dict[str, Tensor]:
    family, found = folder.family, {}
    with folder.open_weights() as weights:
        held = {part for part in (*family.parts, *family.token_heads) if weights.holds(part)}
    lengths = [length for batch in batches for length in batch.lengths]
    summary = last[encoder.summary_rows(lengths)]
    if "encoder.pooler" in held:
        found["pooler"] = encoder.pool(summary)
    if "mlm" in held and family.masked_lm is not None:
        head = load_head(folder, "mlm", family.masked_lm)
        found["MLM head"] = head(last, encoder.token_matrix)
    if {"nsp", "encoder.pooler"} <= held:
        found[family.parts["nsp"]] = load_for_pretraining(folder, seed=0).nsp_logits(summary)  # type: ignore[operator]
    for part, build in family.token_heads.items():
        if part in held:
            found[part] = load_head(folder, part, build)(last)
    return found


def _sentence_vectors(folder: ModelFolder, last: Tensor, batches: Sequence[Batch]) -> Mapping[str, Tensor]:
    """The vectors of a folder that says how they are made: pooling, perhaps linear layers and a length of 1."""
    if (sentence := folder.sentence) is None:
        return {}
    vectors = pool(last, [length for batch in batches for length in batch.lengths], sentence.pooling)
    if (dense := sentence.dense_layers()) is not None:
        vectors = dense(vectors)
    return {SENTENCE: torch.nn.functional.normalize(vectors, dim=-1) if sentence.normalize else vectors}


def _task_head(folder: ModelFolder, batches: Sequence[Batch]) -> Mapping[str, Tensor]:
    """The outputs of the head of a fine-tuned folder; none of any other."""
    if (task := _task(folder)) is None:
        return {}
    model = load_for_task(folder, task.model, seed=0, complete=True)
    return {f"head of the task {task.name}": torch.cat([model(_selection(model, batch)) for batch in batches])}


def _task(folder: ModelFolder) -> Task[Any] | None:
    """The task of a fine-tuned folder."""
    try:
        settings = read_task(folder.weights)
    except HeedfulError:
        return None
    return task_of({"max_length": folder.max_length, **settings}, folder.weights)


def _selection(model: torch.nn.Module, batch: Batch) -> Selection:
    """The rows that a head looks at: what sums a text up, or every token."""
    if isinstance(model, SequenceClassifier):
        return Selection(batch, model.encoder.summary_rows(batch.lengths), (1,) * len(batch.lengths))
    return Selection(batch, torch.arange(len(batch.ids)), batch.lengths)
