"""The model folder in the Hugging Face layout: what it is, read and checked before any weight is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.checkpoints.bert_config_json import bert_config, unknown_keys
from heedful.checkpoints.bert_weights import bert_weight_notes
from heedful.checkpoints.sentence_transformers import SentenceLayout, SentenceSettings, read_layout
from heedful.errors import HeedfulError
from heedful.json_files import read_json
from heedful.models.bert import BertConfig
from heedful.text.tokenizer import Tokenizer

CONFIG = "config.json"
MODEL_TYPES = ("bert",)
# How many pieces the tokenizer has that belongs to a model with more rows than that; Hugging Face passes it over.
PIECES = "tokenizer_pieces"
# Rows without a piece that are mere padding: up to either of these.
SPARE_SHARE, SPARE_ROWS = 0.01, 128


@dataclass(frozen=True)
class ModelFolder:
    """A model folder without its weights. `notes` names what was accepted although it is unusual."""

    path: Path
    weights: Path  # where config.json, the weights and the tokenizer lie; mostly the same as `path`
    model_type: str
    config: Mapping[str, Any]  # config.json as it stands
    model_config: BertConfig
    tokenizer: Tokenizer | None
    sentence: SentenceSettings | None
    max_length: int
    notes: tuple[str, ...]


def read_folder(path: str | Path, force: bool = False) -> ModelFolder:
    """Read and check everything in a model folder; of the weights the names only, until they are loaded.

    `force` takes a tokenizer that has far fewer pieces than the model has rows.
    """
    folder = Path(path)
    if not folder.is_dir():
        raise HeedfulError("there is no such folder", where=folder, remedy="give a folder that holds a config.json")
    layout = read_layout(folder)
    config = _config(layout.encoder)
    model_type = _model_type(config, layout.encoder / CONFIG)
    model_config = bert_config(config, layout.encoder / CONFIG)
    tokenizer = _tokenizer(layout)
    notes = [*layout.notes, *_config_notes(config)]
    meant = force or (tokenizer is not None and tokenizer.vocab_size == config.get(PIECES))
    notes += _vocabulary_notes(tokenizer, model_config, layout.encoder, meant)
    notes += bert_weight_notes(layout.encoder, model_config)
    return ModelFolder(
        path=folder,
        weights=layout.encoder,
        model_type=model_type,
        config=config,
        model_config=model_config,
        tokenizer=tokenizer,
        sentence=layout.settings,
        max_length=_max_length(layout, tokenizer, model_config, notes),
        notes=tuple(notes),
    )


def check_vocabulary(tokenizer: Tokenizer, vocab_size: int, where: Path) -> None:
    """Refuse a tokenizer that makes ids for which the model has no row."""
    if tokenizer.vocab_size > vocab_size:
        raise HeedfulError(
            f"the tokenizer has {tokenizer.vocab_size} pieces, but the model has only {vocab_size} rows (vocab_size)",
            where=where,
            remedy="use the tokenizer the model was trained with",
        )


def with_pieces(foreign: Mapping[str, Any] | None, tokenizer: Tokenizer | None, vocab_size: int) -> dict[str, Any]:
    """The keys of a config.json to keep, with the number of the tokenizer's pieces if the model has more rows."""
    kept = {key: value for key, value in (foreign or {}).items() if key != PIECES}
    return {**kept, PIECES: tokenizer.vocab_size} if tokenizer and tokenizer.vocab_size < vocab_size else kept


def _config(folder: Path) -> dict[str, Any]:
    if not (folder / CONFIG).is_file():
        raise HeedfulError(f"no {CONFIG} in the folder", where=folder, remedy="give a folder in Hugging Face's layout")
    return read_json(folder / CONFIG)


def _model_type(config: Mapping[str, Any], where: Path) -> str:
    model_type = config.get("model_type")
    if model_type is None and str(config.get("architectures")).startswith("['Bert"):
        return "bert"  # written before config.json had a model_type
    if model_type not in MODEL_TYPES:
        what = "no model_type is given" if model_type is None else f"the model_type {model_type!r} is not supported"
        remedy = f"use a model of the type {' or '.join(MODEL_TYPES)}"
        if str(model_type).startswith("heedful-"):
            remedy = "it is a translation model: use `heedful translate run`, `score` or `evaluate`"
        raise HeedfulError(what, where=where, remedy=remedy)
    return str(model_type)


def _tokenizer(layout: SentenceLayout) -> Tokenizer | None:
    if not any((layout.encoder / name).is_file() for name in ("tokenizer.json", "vocab.txt")):
        return None
    tokenizer = Tokenizer.load(layout.encoder)
    _check_frame(tokenizer, layout.encoder)
    if layout.lower_case and tokenizer.encode("A").ids != tokenizer.encode("a").ids:
        raise HeedfulError(
            "do_lower_case asks to lower-case texts before a tokenizer that keeps case, which is not supported",
            where=layout.encoder / "sentence_bert_config.json",
            remedy="lower-case your texts yourself and set do_lower_case to false",
        )
    return tokenizer


def _check_frame(tokenizer: Tokenizer, where: Path) -> None:
    frame = [tokenizer.special_tokens[role] for role in ("cls", "sep")]
    if tokenizer.encode("").tokens != frame:
        raise HeedfulError(
            f"the tokenizer does not put texts between {' and '.join(frame)}, as BERT was trained to see them",
            where=where,
            remedy="use the tokenizer.json that belongs to the model (its post_processor adds them), or its vocab.txt",
        )


def _config_notes(config: Mapping[str, Any]) -> list[str]:
    unknown = unknown_keys(config)
    return [f"unknown config keys, kept: {', '.join(unknown)}"] if unknown else []


def _vocabulary_notes(tokenizer: Tokenizer | None, config: BertConfig, folder: Path, meant: bool) -> list[str]:
    """What is unusual about the tokenizer; far too small a one is that of another model, unless it is `meant` so."""
    if tokenizer is None:
        return ["no tokenizer files (tokenizer.json or vocab.txt)"]
    check_vocabulary(tokenizer, config.vocab_size, folder)
    pieces, rows = tokenizer.vocab_size, config.vocab_size
    if rows - pieces > max(SPARE_ROWS, SPARE_SHARE * rows) and not meant:
        raise HeedfulError(
            f"the tokenizer has {pieces} pieces and the model {rows} rows: it may be that of another model, and then "
            "every answer is nonsense",
            where=folder,
            remedy=f"use the tokenizer the model was trained with; if it is this one, --force (in Python force=True), "
            f'or "{PIECES}": {pieces} in {CONFIG}',
        )
    return [f"{rows - pieces} of the model's {rows} vocabulary rows have no piece"] if rows > pieces else []


def _max_length(layout: SentenceLayout, tokenizer: Tokenizer | None, config: BertConfig, notes: list[str]) -> int:
    """The limit sentence-transformers set, else the tokenizer's, and never more than there are positions."""
    positions = config.max_position_embeddings
    asked = layout.max_length or (tokenizer.model_max_length if tokenizer else None) or positions
    if layout.max_length is not None and layout.max_length > positions:
        notes.append(f"max_seq_length {layout.max_length} is more than the {positions} positions, which are the limit")
    return min(asked, positions)
