"""The model folder in the Hugging Face layout: what it is, read and checked before any weight is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from heedful.checkpoints.families import family_of
from heedful.checkpoints.family import Family
from heedful.checkpoints.folder_weights import open_weights, weight_notes
from heedful.checkpoints.int8_scheme import Int8Scheme, read_scheme
from heedful.checkpoints.sentence_transformers import SentenceLayout, SentenceSettings, read_layout
from heedful.checkpoints.tensorflow_folder import config_file, config_values
from heedful.checkpoints.weights import WeightSource
from heedful.errors import HeedfulError, no_such_model
from heedful.models.encoder import EncoderConfig, check_room
from heedful.text import tokenizer_folder
from heedful.text.tokenizer import Tokenizer

CONFIG = "config.json"
# How many pieces the tokenizer has that belongs to a model with more rows than that; Hugging Face passes it over.
PIECES = "tokenizer_pieces"
# Rows without a piece that are mere padding: up to either of these.
SPARE_SHARE, SPARE_ROWS = 0.01, 128
# A model without positions has none that could run out; a text has to end somewhere all the same.
LONGEST = 512


@dataclass(frozen=True)
class ModelFolder:
    """A model folder without its weights. `notes` names what was accepted although it is unusual."""

    path: Path
    weights: Path  # where config.json, the weights and the tokenizer lie; mostly the same as `path`
    family: Family[Any]
    config: Mapping[str, Any]  # config.json as it stands
    model_config: EncoderConfig
    tokenizer: Tokenizer | None
    sentence: SentenceSettings | None
    max_length: int
    notes: tuple[str, ...]
    int8: Int8Scheme | None = None  # how its weights are stored, if not as floating-point numbers

    @property
    def model_type(self) -> str:
        """The name of its family."""
        return self.family.model_type

    def open_weights(self) -> AbstractContextManager[WeightSource]:
        """Its weights, for the time of a `with` block."""
        return open_weights(self.weights, self.family, self.model_config)

    def require_tokenizer(self) -> Tokenizer:
        """Its tokenizer; a folder without one is refused."""
        if self.tokenizer is None:
            raise HeedfulError(
                "the folder has no tokenizer",
                where=self.path,
                remedy="put its tokenizer.json or vocab.txt beside config.json",
            )
        return self.tokenizer

    def check_room(self, what: str, tokens: int, *, where: object = None, remedy: str | None = None) -> None:
        """Refuse more tokens than its model has room for; `what` has so many, as in "windows of 600 tokens are"."""
        check_room(what, tokens, self.model_config.max_length, where=where or self.path, remedy=remedy)

    def with_dropout(self, dropout: float | None) -> ModelFolder:
        """The same folder, whose models are built with this dropout; None leaves its own."""
        if dropout is None:
            return self
        return replace(self, model_config=self.model_config.with_dropout(dropout))


def read_folder(path: str | Path, force: bool = False) -> ModelFolder:
    """Read and check everything in a model folder; of the weights the names only, until they are loaded.

    `force` takes a tokenizer that has far fewer pieces than the model has rows.
    """
    folder = Path(path)
    if not folder.is_dir():
        raise no_such_model(path, CONFIG)
    layout = read_layout(folder)
    config, file = config_values(layout.encoder), config_file(layout.encoder) or layout.encoder
    family = family_of(config, file)
    int8 = read_scheme(config, file)
    model_config = family.config.read(config, file)
    tokenizer = _tokenizer(layout, family)
    notes = [*layout.notes, *_config_notes(family, config), *([f"stored in {int8}"] if int8 else [])]
    meant = force or (tokenizer is not None and tokenizer.vocab_size == config.get(PIECES))
    notes += _vocabulary_notes(tokenizer, model_config, layout.encoder, meant)
    notes += weight_notes(layout.encoder, family, model_config)
    return ModelFolder(
        path=folder,
        weights=layout.encoder,
        family=family,
        config=config,
        model_config=model_config,
        tokenizer=tokenizer,
        sentence=layout.settings,
        max_length=_max_length(layout, tokenizer, model_config, notes),
        notes=tuple(notes),
        int8=int8,
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


def _tokenizer(layout: SentenceLayout, family: Family[Any]) -> Tokenizer | None:
    if tokenizer_folder.is_here(layout.encoder):
        tokenizer: Tokenizer | None = Tokenizer.load(layout.encoder)
    else:
        tokenizer = family.other_tokenizer(layout.encoder)
    if tokenizer is None:
        return None
    family.check_frame(tokenizer, layout.encoder)
    if layout.lower_case and tokenizer.encode("A").ids != tokenizer.encode("a").ids:
        raise HeedfulError(
            "do_lower_case asks to lower-case texts before a tokenizer that keeps case, which is not supported",
            where=layout.encoder / "sentence_bert_config.json",
            remedy="lower-case your texts yourself and set do_lower_case to false",
        )
    return tokenizer.summed_up_by(family.config.kind.summary)


def _config_notes(family: Family[Any], config: Mapping[str, Any]) -> list[str]:
    unknown = family.config.unknown(config)
    return [f"unknown config keys, kept: {', '.join(unknown)}"] if unknown else []


def _vocabulary_notes(tokenizer: Tokenizer | None, config: EncoderConfig, folder: Path, meant: bool) -> list[str]:
    """What is unusual about the tokenizer; far too small a one is that of another model, unless it is `meant` so."""
    if tokenizer is None:
        return ["no tokenizer files (tokenizer.json or vocab.txt)"]
    where = tokenizer_folder.tokenizer_file(folder) if tokenizer_folder.is_here(folder) else folder
    check_vocabulary(tokenizer, config.vocab_size, where)
    pieces, rows = tokenizer.vocab_size, config.vocab_size
    if rows - pieces > max(SPARE_ROWS, SPARE_SHARE * rows) and not meant:
        raise HeedfulError(
            f"the tokenizer has {pieces} pieces and the model {rows} rows: it may be that of another model, and then "
            "every answer is nonsense",
            where=where,
            remedy=f"use the tokenizer the model was trained with; if it is this one, use `force`, "
            f'or "{PIECES}": {pieces} in {CONFIG}',
        )
    return [f"{rows - pieces} of the model's {rows} vocabulary rows have no piece"] if rows > pieces else []


def _max_length(layout: SentenceLayout, tokenizer: Tokenizer | None, config: EncoderConfig, notes: list[str]) -> int:
    """The limit sentence-transformers set, else the tokenizer's, and never more than there are positions."""
    positions = config.max_length
    asked = layout.max_length or (tokenizer.model_max_length if tokenizer else None) or positions or LONGEST
    if positions is None:
        return asked
    if layout.max_length is not None and layout.max_length > positions:
        notes.append(f"max_seq_length {layout.max_length} is more than the {positions} positions, which are the limit")
    return min(asked, positions)
