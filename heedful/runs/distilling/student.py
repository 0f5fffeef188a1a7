"""The student as training finds it: a model folder in the run's own, with what it takes over from its teacher."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from heedful.checkpoints.encoder_folder import load_encoder, save_model
from heedful.checkpoints.families import family_named
from heedful.checkpoints.folder import ModelFolder, read_folder
from heedful.inference.load import model_path
from heedful.models.encoder import Encoder, EncoderConfig
from heedful.models.student_start import TABLES, follow_teacher
from heedful.runs.distilling.settings import DistillingSettings
from heedful.runs.overrides import overridden
from heedful.text.tokenizer import Tokenizer

FOLDER = "start"
PASSES = 3.0
LEARNING = 4.5  # backwards costs twice as much as forwards, and products that are not packed more than packed ones


def student_folder(settings: DistillingSettings, run: Path) -> ModelFolder:
    """The folder that the student starts from: one of the user's own, or that in the run's folder."""
    own = run / FOLDER if settings.student is None else model_path(settings.student)
    return read_folder(own)


def write_student(settings: DistillingSettings, teacher: ModelFolder, run: Path, note: Callable[[str], object]) -> None:
    """Make the student that the settings describe and write it into the run's folder."""
    family = teacher.family if teacher.family.sized is not None else family_named("bert")
    tokenizer = teacher.require_tokenizer() if settings.tokenizer is None else Tokenizer.load(settings.tokenizer)
    family.check_frame(tokenizer, teacher.path if settings.tokenizer is None else Path(settings.tokenizer))
    config = overridden(family.config_of_size(settings.size, tokenizer.vocab_size), settings.set)
    student: Encoder = config.build().without_pooler()
    family.initialise(student, config, settings.seed)
    note(f"student: {config.described}, {config.vocab_size:,} pieces, {_size(student):,} parameters")
    if settings.start == "teacher":
        encoder = load_encoder(teacher)
        rows = piece_vectors(tokenizer, teacher.require_tokenizer(), encoder.token_matrix.detach())
        note(f"from the teacher: {'; '.join(follow_teacher(student, encoder, rows))}")
    save_model(student, run / FOLDER, tokenizer, overwrite=True)


def piece_vectors(tokenizer: Tokenizer, teacher: Tokenizer, matrix: Tensor) -> Tensor:
    """The teacher's vectors of a tokenizer's pieces, (V, D).

    That of the same piece or of the special token that has its part, or the mean of the pieces that spell it there.
    """
    if tokenizer.vocabulary == teacher.vocabulary:
        return matrix[: tokenizer.vocab_size]
    parts = {token: teacher.special_tokens[part] for part, token in tokenizer.special_tokens.items()
             if part in teacher.special_tokens}  # fmt: skip
    known = [teacher.id_of(parts.get(piece, piece)) for piece in tokenizer.vocabulary]
    others = [_text(number, tokenizer) for number, same in enumerate(known) if same is None]
    spelled = iter(teacher.pieces(others))
    ids = [[same] if same is not None else next(spelled).ids or [teacher.unk_id] for same in known]
    return torch.stack([matrix[row].mean(0) for row in ids])


def teacher_share(teacher: EncoderConfig, student: EncoderConfig) -> float:
    """The part of a time that is the teacher's, so that the student reads what it has read PASSES times.

    A pass costs as many products as there are weights in the layers, LEARNING times as many for who learns.
    """
    reading, learning = _layer_size(teacher), PASSES * LEARNING * _layer_size(student)
    return reading / (reading + learning)


def tell_size(student: Encoder, teacher: ModelFolder, note: Callable[[str], object]) -> None:
    """Say it where the student is not the smaller one."""
    with torch.device("meta"):
        theirs = _size(teacher.model_config.build().without_pooler())
    if _size(student) >= theirs:
        note(f"the student has {_size(student):,} parameters and the teacher {theirs:,}: it will not be the faster one")


def _layer_size(config: EncoderConfig) -> int:
    with torch.device("meta"):
        named = config.build().without_pooler().named_parameters()
    return sum(parameter.numel() for name, parameter in named if not name.startswith(TABLES)) or 1


def _size(encoder: Encoder) -> int:
    return sum(parameter.numel() for parameter in encoder.parameters())


def _text(number: int, tokenizer: Tokenizer) -> str:
    """What a piece stands for in a text."""
    return tokenizer.library.decode([number], skip_special_tokens=False).strip().removeprefix("##")
