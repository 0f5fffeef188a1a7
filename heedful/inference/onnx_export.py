"""A model folder written for ONNX Runtime and compared with ours: encoders with their pooling, and task heads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from heedful.atomic import atomic_file
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
from heedful.export.padded import PaddedEncoder, PaddedHead
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
)
# Float32 differs by rounding alone. In int8 every matmul is rounded to 8 bits: the direction of a vector must stay.
LARGEST, LOWEST_COSINE = 1e-3, 0.9
USE = """# {name} for ONNX Runtime

    import numpy as np, onnxruntime, tokenizers
    tokenizer = tokenizers.Tokenizer.from_file("tokenizer.json")
    tokenizer.enable_padding()
    session = onnxruntime.InferenceSession("model.onnx")
    encoded = tokenizer.encode_batch(["one text", "another"])
    inputs = {{
        "input_ids": np.array([e.ids for e in encoded]),
        "attention_mask": np.array([e.attention_mask for e in encoded]),
        "token_type_ids": np.array([e.type_ids for e in encoded]),
    }}
    {outputs} = session.run(None, {{i.name: inputs[i.name] for i in session.get_inputs()}})

heedful takes this folder as it takes any other, for `embed`, `similarity` and `predict`.
"""


@dataclass(frozen=True)
class Comparison:
    """How far what the exported model says is from what ours says, over a few texts."""

    largest: float  # difference of any number
    cosine: float  # the lowest of any vector

    def __str__(self) -> str:
        return f"largest difference {self.largest:.1e}, lowest cosine {self.cosine:.5f}"


def export_onnx(
    folder: ModelFolder,
    output: str | Path,
    precision: str = "float32",
    texts: Sequence[str] = SENTENCES,
    overwrite: bool = False,
) -> Comparison:
    """Write the folder, and compare; one that says something else than ours is not written."""
    tokenizer = folder.require_tokenizer()
    model, task = _padded(folder)
    with new_folder(output, tokenizer, folder.model_config.vocab_size, overwrite) as new:
        write_onnx(model, new / ONNX, precision)
        found = _compared(folder, model, new / ONNX, texts)
        if found.cosine < LOWEST_COSINE or (precision == "float32" and found.largest > LARGEST):
            raise HeedfulError(
                f"the exported model is not the same: {found}",
                where=output,
                remedy="use float32" if precision == "int8" else "this family cannot be exported; use its own folder",
            )
        write_json(new / CONFIG, {key: value for key, value in folder.config.items() if key != KEY})
        if task:
            write_json(new / TASK, task)
        else:
            write_layout(new, folder.sentence or SentenceSettings(), folder.max_length, folder.model_config.width)
        with atomic_file(new / "README.md") as file:
            file.write(USE.format(name=Path(output).name, outputs=", ".join(model.outputs)))
    return found


def _padded(folder: ModelFolder) -> tuple[PaddedEncoder | PaddedHead, dict[str, Any]]:
    if not is_for_task(folder):
        sentence = folder.sentence or SentenceSettings()
        if sentence.dense:
            what = "a folder with Dense modules after its pooling cannot be written for ONNX"
            raise HeedfulError(what, where=folder.path, remedy="export a copy without modules.json")
        return PaddedEncoder(load_encoder(folder), sentence.pooling, sentence.normalize), {}
    settings = {"max_length": folder.max_length, **read_task(folder.weights)}
    model = load_for_task(folder, task_of(settings, folder.weights / TASK).model, seed=0, complete=True)
    assert isinstance(model, Head)
    return PaddedHead(model), settings


def _compared(folder: ModelFolder, model: PaddedEncoder | PaddedHead, path: Path, texts: Sequence[str]) -> Comparison:
    """The exported model on padded texts beside ours on each text alone."""
    encodings = folder.require_tokenizer().encode_batch(list(texts), folder.max_length)
    batch = flat_batch([e.ids for e in encodings])
    theirs, real = Session(path)(batch)
    found = [theirs[i][real[i]] if theirs.ndim == 3 else theirs[i : i + 1] for i in range(len(texts))]
    with torch.no_grad():
        ours = [_alone(model, e.ids) for e in encodings]
    largest = max(float(np.abs(a - b).max()) for a, b in zip(found, ours, strict=True))
    return Comparison(largest, min(_cosine(a, b) for a, b in zip(found, ours, strict=True)))


def _alone(model: PaddedEncoder | PaddedHead, ids: list[int]) -> Any:
    one = torch.tensor([ids])
    said = model(one, torch.ones_like(one), torch.zeros_like(one))
    first: Tensor = said if isinstance(said, Tensor) else said[0]
    return first[0].numpy() if first.ndim == 3 else first.numpy()


def _cosine(a: Any, b: Any) -> float:
    norms = np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1)
    return float(((a * b).sum(-1) / np.maximum(norms, 1e-9)).min())
