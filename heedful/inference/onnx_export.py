"""A model written for ONNX Runtime and compared with ours: encoders with their pooling, and task heads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Encoding
from torch import Tensor

from heedful.atomic import atomic_file, atomic_path, check_free
from heedful.checkpoints.encoder_folder import load_encoder
from heedful.checkpoints.folder import CONFIG, ModelFolder
from heedful.checkpoints.folder_weights import ONNX
from heedful.checkpoints.int8_scheme import KEY
from heedful.checkpoints.new_folder import new_folder
from heedful.checkpoints.sentence_transformers import SentenceSettings, write_layout
from heedful.checkpoints.task_folder import TASK, is_for_task, load_for_task, read_task
from heedful.data.batching import flat_batch
from heedful.errors import HeedfulError
from heedful.export.onnx_file import write_onnx
from heedful.export.padded import CRF, STATES, WORDS, PaddedEncoder, PaddedHead
from heedful.inference.onnx_engine import Session
from heedful.json_files import write_json
from heedful.models.heads import Head
from heedful.tasks.registry import task_of

# Of several lengths and in two languages, so that padding and attention over it are seen.
SENTENCES = (
    "The miller had a grey dog.",
    "磨坊主有一只灰狗。",
    "Yes.",
    "A longer sentence, which says little but says it with many words, commas and a 2026, so that others are padded.",
    "A text longer than the window that some layers look through. " * 30,
)
# Float32 differs by rounding alone. In int8 every matmul is rounded to 8 bits: the direction of a vector must stay.
LARGEST, LOWEST_COSINE = 1e-3, 0.9
USE = """# {name} for ONNX Runtime

    import numpy as np, onnxruntime, tokenizers
    tokenizer = tokenizers.Tokenizer.from_file("tokenizer.json")
    tokenizer.enable_padding()
    session = onnxruntime.InferenceSession("model.onnx")
    encoded = tokenizer.encode_batch({texts})
    inputs = {{"input_ids": np.array([e.ids for e in encoded]),
              "attention_mask": np.array([e.attention_mask for e in encoded]),
              "token_type_ids": np.array([e.type_ids for e in encoded])}}{words}
    {outputs} = session.run(None, {{i.name: inputs[i.name] for i in session.get_inputs()}})
{note}
heedful takes this folder as it takes any other, for `embed`, `similarity`, `predict`, `evaluate` and `serve`.
"""
TEXTS = '["one text", "another"]'
# For a model that reads words: texts as words, and the fourth input.
WORDS_OF_TEXTS = '[["one", "text"], ["another"]], is_pretokenized=True'
WORD_MASK = """
    words = [[-1 if word is None else word for word in e.word_ids] for e in encoded]
    inputs["word_mask"] = np.diff(words, prepend=-1).clip(0, 1)"""
ABOUT_WORDS = """
`word_mask` is 1 at the first piece of each word. These are read in both directions, and `logits` say the same of all
pieces of a word.
"""
ABOUT_CRF = """
The labels of a text are the path with the greatest sum of `logits`, at the first piece of each word, and of `crf`: its
rows are what it counts to start with each label, to pass on to each from the first, the second …, and to end with each.
"""


@dataclass(frozen=True)
class Comparison:
    """How far what the exported model says is from what ours says, over a few texts."""

    precision: str
    largest: float  # difference of any number
    cosine: float  # the lowest of any vector

    def __str__(self) -> str:
        differ = f"largest difference {self.largest:.1e}, lowest cosine {self.cosine:.5f}"
        return f"{self.precision} for ONNX Runtime; beside ours: {differ}"


def export_onnx(
    folder: ModelFolder,
    output: str | Path,
    precision: str = "float32",
    texts: Sequence[str] = SENTENCES,
    overwrite: bool = False,
) -> Comparison:
    """Write a folder for ONNX Runtime alone, and compare; one that says something else than ours is not written."""
    tokenizer = folder.require_tokenizer()
    model, task = _padded(folder)
    with new_folder(output, tokenizer, folder.model_config.vocab_size, overwrite) as new:
        found = _written(folder, model, new / ONNX, precision, texts)
        write_json(new / CONFIG, {key: value for key, value in folder.config.items() if key != KEY})
        if task:
            write_json(new / TASK, task)
        else:
            write_layout(new, _sentence(folder), folder.max_length, folder.model_config.width)
        rule = task_of(task, new / TASK).rule if task else ""
        with atomic_file(new / "README.md") as file:
            file.write(_use(Path(output).name, model, rule))
    return found


def export_beside(
    folder: ModelFolder, precision: str = "float32", texts: Sequence[str] = SENTENCES, overwrite: bool = False
) -> Comparison:
    """Write the model for ONNX Runtime beside the weights of its folder, and compare as `export_onnx` does."""
    check_free(folder.weights / ONNX, overwrite)
    with atomic_path(folder.weights / ONNX) as path:
        return _written(folder, _padded(folder)[0], path, precision, texts)


def _written(
    folder: ModelFolder, model: PaddedEncoder | PaddedHead, path: Path, precision: str, texts: Sequence[str]
) -> Comparison:
    """Write the file; one that says something else than the model is refused."""
    write_onnx(model, path, precision)
    found = Comparison(precision, *_compared(folder, model, path, texts))
    if found.cosine < LOWEST_COSINE or (precision == "float32" and found.largest > LARGEST):
        raise HeedfulError(
            f"the exported model is not the same: {found}",
            where=folder.path,
            remedy="use float32" if precision == "int8" else "this family cannot be exported; use its own folder",
        )
    return found


def _use(name: str, model: PaddedEncoder | PaddedHead, rule: str) -> str:
    """The README: how the model is asked by ONNX Runtime alone, and what is made of its answers."""
    texts, words, note = (WORDS_OF_TEXTS, WORD_MASK, ABOUT_WORDS) if WORDS in model.inputs else (TEXTS, "", "")
    note += (ABOUT_CRF if CRF in model.outputs else "") + (f"\nOf the answers, {rule}.\n" if rule else "")
    return USE.format(name=name, outputs=", ".join(model.outputs), texts=texts, words=words, note=note)


def _sentence(folder: ModelFolder) -> SentenceSettings:
    """How its vectors are made: as the folder says, or else as suits its family."""
    return folder.sentence or SentenceSettings(folder.family.pooling)


def _padded(folder: ModelFolder) -> tuple[PaddedEncoder | PaddedHead, dict[str, Any]]:
    if not is_for_task(folder):
        sentence = _sentence(folder)
        return PaddedEncoder(load_encoder(folder), sentence.pooling, sentence.normalize, sentence.dense_layers()), {}
    settings = {"max_length": folder.max_length, **read_task(folder.weights)}
    model = load_for_task(folder, task_of(settings, folder.weights / TASK).model, seed=0, complete=True)
    assert isinstance(model, Head)
    return PaddedHead(model), settings


def _compared(
    folder: ModelFolder, model: PaddedEncoder | PaddedHead, path: Path, texts: Sequence[str]
) -> tuple[float, float]:
    """The largest difference of any output, and the lowest cosine of a state: padded texts there, single ones here."""
    encodings = folder.require_tokenizer().encode_batch(list(texts), folder.max_length)
    batch, session = flat_batch([e.ids for e in encodings]), Session(path)
    words = [_first_pieces(e) for e in encodings]
    rows = torch.cat(words).nonzero()[:, 0]
    ours = [_alone(model, e.ids, mask) for e, mask in zip(encodings, words, strict=True)]
    largest, cosine = 0.0, 1.0
    for name in model.outputs:
        if name == CRF:  # the same whatever is asked
            largest = max(largest, float(np.abs(session.constant(name) - ours[0][name]).max()))
            continue
        theirs, real = session(batch, name, rows)
        for number, one in enumerate(ours):
            said = theirs[number][real[number]] if theirs.ndim == 3 else theirs[number : number + 1]
            largest = max(largest, float(np.nan_to_num(np.abs(said - one[name]), nan=np.inf).max()))
            if name == STATES:  # an answer may be near zero, and then its direction says nothing
                cosine = min(cosine, _cosine(said, one[name]))
    return largest, cosine


def _first_pieces(encoding: Encoding) -> Tensor:
    """1 at the pieces that begin a word, (T,)."""
    numbers = [-1 if word is None else word for word in encoding.word_ids]
    return torch.tensor([-1, *numbers]).diff().clamp(0, 1)


@torch.no_grad()
def _alone(model: PaddedEncoder | PaddedHead, ids: list[int], words: Tensor) -> dict[str, NDArray[Any]]:
    """All outputs for one text without padding; `words` are 1 at the first piece of each word."""
    one = torch.tensor([ids])
    given = (one, torch.ones_like(one), torch.zeros_like(one), words[None])
    said = model(*given[: len(model.inputs)])
    return {name: (x[0] if x.ndim == 3 else x).numpy() for name, x in zip(model.outputs, said, strict=True)}


def _cosine(a: NDArray[Any], b: NDArray[Any]) -> float:
    """The lowest of any row; two rows of zeros, as word2vec has for words it does not know, are the same."""
    norms = np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1)
    cosines = np.where((a == 0).all(-1) & (b == 0).all(-1), 1.0, (a * b).sum(-1) / np.maximum(norms, 1e-9))
    return float(cosines.min(initial=1.0))
