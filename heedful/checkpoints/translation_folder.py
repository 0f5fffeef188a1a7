"""Translation models from and to a model folder: Hugging Face's files, with our own names inside.

config.json         the kind of model, what the two sides are called, and the model's shape
model.safetensors   the weights
tokenizer.json      the vocabulary of both sides; or source/tokenizer.json and target/tokenizer.json
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from heedful.checkpoints.folder import CONFIG, LONGEST, check_vocabulary
from heedful.checkpoints.int8_scheme import KEY, Int8Scheme, read_scheme
from heedful.checkpoints.int8_tensors import STEM as INT8
from heedful.checkpoints.int8_tensors import in_int8
from heedful.checkpoints.new_folder import new_folder
from heedful.checkpoints.own_weights import fill_tensors, weights_of
from heedful.checkpoints.tensors import STEM, write_tensors
from heedful.checkpoints.weights import unfilled
from heedful.config import from_mapping, to_mapping
from heedful.errors import HeedfulError, no_such_model
from heedful.json_files import read_json, write_json
from heedful.models.int8_parts import stored_in_int8
from heedful.models.seq2seq import Seq2Seq, Seq2SeqConfig
from heedful.models.transformer import Transformer, TransformerConfig
from heedful.text.sides import Sides
from heedful.text.tokenizer import Tokenizer

TranslationModel = Transformer | Seq2Seq
MODEL_TYPES: Mapping[str, tuple[type[TranslationModel], type[Any]]] = {
    "heedful-transformer": (Transformer, TransformerConfig),
    "heedful-seq2seq": (Seq2Seq, Seq2SeqConfig),
}
_REMEDY = "use the config.json that belongs to these weights, or fetch both again"


@dataclass(frozen=True)
class TranslationFolder:
    """A model that is ready to translate, and what its two sides were called in the data it was trained on."""

    path: Path
    model: TranslationModel
    sides: Sides
    names: tuple[str, str]
    int8: Int8Scheme | None = None  # how its weights are stored, if not as floating-point numbers

    @property
    def max_length(self) -> int:
        """The tokens of the longest text that can be read or said."""
        return longest_text(self.model.config)


@dataclass(frozen=True)
class _Stored:
    """What config.json says."""

    model_type: str
    source: str
    target: str
    model: Mapping[str, Any]


def longest_text(shape: TransformerConfig | Seq2SeqConfig) -> int:
    """How many tokens, [CLS] and [SEP] included, a model of this shape can read or say."""
    if isinstance(shape, Seq2SeqConfig):
        return LONGEST
    source = shape.encoder.max_length if shape.encoder is not None else None
    return min(shape.max_length, source or shape.max_length)


def is_translation(path: str | Path) -> bool:
    """Whether a folder holds a model of one of these types."""
    config = Path(path) / CONFIG
    return config.is_file() and read_json(config).get("model_type") in MODEL_TYPES


def read_shape(path: str | Path) -> tuple[TransformerConfig | Seq2SeqConfig, tuple[str, str]]:
    """The shape of a folder's model and what its sides are called, without its weights."""
    file = Path(path) / CONFIG
    stored = _stored(file)
    return _config(stored, file), (stored.source, stored.target)


def load_translation(path: str | Path) -> TranslationFolder:
    """Read and check a folder, and load its weights in fp32."""
    folder = Path(path)
    stored = _stored(folder / CONFIG)
    model = _built(stored, folder / CONFIG)
    sides = _load_sides(folder)
    _check_sides(sides, model, folder)
    fill_tensors(weights_of(model), folder, _REMEDY)
    model.eval()
    int8 = read_scheme(read_json(folder / CONFIG), folder / CONFIG)
    return TranslationFolder(folder, model, sides, (stored.source, stored.target), int8)


def rebuilt(folder: TranslationFolder, shape: TransformerConfig | Seq2SeqConfig) -> TranslationModel:
    """The folder's model once more, with all its weights, in a shape that may have another dropout."""
    model = Seq2Seq(shape) if isinstance(shape, Seq2SeqConfig) else Transformer(shape)
    before = weights_of(folder.model)
    with torch.no_grad():
        for name, tensor in weights_of(model).items():
            tensor.copy_(before[name])
    return model


def save_translation(
    model: TranslationModel,
    path: str | Path,
    sides: Sides,
    names: tuple[str, str],
    *,
    overwrite: bool = False,
    int8: Int8Scheme | None = None,
) -> None:
    """Write a model folder, as a whole or not at all; `names` are what the two sides are called.

    With `int8` its matrices are stored so.
    """
    _check_sides(sides, model, Path(path))
    kind = next(kind for kind, (of_type, _) in MODEL_TYPES.items() if isinstance(model, of_type))
    tensors = {
        name: tensor.detach().to("cpu", torch.float32).contiguous() for name, tensor in weights_of(model).items()
    }
    values = to_mapping(_Stored(kind, *names, to_mapping(model.config)))
    if int8 is not None:
        tensors = in_int8(tensors, dict.fromkeys(stored_in_int8(model, int8.float32), False))
        values[KEY] = to_mapping(int8)
    joint = sides.target if sides.joint else None
    with new_folder(path, joint, model.config.target_vocab_size, overwrite) as folder:
        write_json(folder / CONFIG, values)
        write_tensors(folder, tensors, stem=STEM if int8 is None else INT8)
        if joint is None:
            sides.source.save(folder / "source")
            sides.target.save(folder / "target")


def check_frame(tokenizer: Tokenizer, where: object) -> None:
    """Refuse a tokenizer that does not put texts between the symbols with which a decoder starts and ends."""
    if tokenizer.encode("").ids != [tokenizer.cls_id, tokenizer.sep_id]:
        raise HeedfulError(
            "the tokenizer does not put texts between [CLS] and [SEP]",
            where=where,
            remedy="use one that `heedful tokenizer train` has made",
        )


def _stored(file: Path) -> _Stored:
    if not file.parent.is_dir():
        raise no_such_model(file.parent, CONFIG)
    if not file.is_file():
        what, remedy = f"no {CONFIG} in the folder", "give a translation model's folder"
        raise HeedfulError(what, where=file.parent, remedy=remedy)
    config = read_json(file)
    if config.get("model_type") not in MODEL_TYPES:
        raise HeedfulError(
            f"the model_type {config.get('model_type')!r} is none that translates",
            where=file,
            remedy="use a model that `heedful translate train` has made",
        )
    return from_mapping(_Stored, {key: value for key, value in config.items() if key != KEY}, file)


def _built(stored: _Stored, where: Path) -> TranslationModel:
    """The model with nothing in its parameters yet."""
    config = _config(stored, where)
    return unfilled(lambda: MODEL_TYPES[stored.model_type][0](config), where)  # type: ignore[arg-type]


def _config(stored: _Stored, where: Path) -> TransformerConfig | Seq2SeqConfig:
    try:
        config: TransformerConfig | Seq2SeqConfig = from_mapping(MODEL_TYPES[stored.model_type][1], stored.model, where)
        return config
    except HeedfulError as error:
        raise HeedfulError(error.what, where=where, remedy=error.remedy) from error


def _load_sides(folder: Path) -> Sides:
    if (folder / "tokenizer.json").is_file():
        joint = Tokenizer.load(folder)
        return Sides(joint, joint)
    return Sides(Tokenizer.load(folder / "source"), Tokenizer.load(folder / "target"))


def _check_sides(sides: Sides, model: TranslationModel, where: Path) -> None:
    sizes = (model.config.source_vocab_size, model.config.target_vocab_size)
    for tokenizer, size in zip(sides, sizes, strict=True):
        check_vocabulary(tokenizer, size, where)
        check_frame(tokenizer, where)
