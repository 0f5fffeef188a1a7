"""Decoding by CTranslate2, with the weights of a model folder."""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch

from heedful.checkpoints.translation_folder import TranslationFolder
from heedful.decoding import Beam, Hypothesis, Sampling, score_of
from heedful.errors import HeedfulError
from heedful.export.ctranslate2_folder import ctranslate2_module, ctranslate2_vocabulary, export_ctranslate2
from heedful.models.transformer import Transformer
from heedful.text.sides import Symbols


class Ctranslate2Engine:
    """Searches as `heedful.decoding` does, with CTranslate2's own beam, and in int8 with its own rounding."""

    def __init__(self, folder: TranslationFolder, device: str, int8: bool = False) -> None:
        kind, _, number = device.partition(":")
        source, target = folder.model.config.source_vocab_size, folder.model.config.target_vocab_size
        self._source = ctranslate2_vocabulary(folder.sides.source, source)
        self._target = {piece: i for i, piece in enumerate(ctranslate2_vocabulary(folder.sides.target, target))}
        symbols = Symbols.of(folder.sides.target)
        self._banned = [[folder.sides.target.vocabulary[i]] for i in symbols.banned]
        self._end = folder.sides.target.vocabulary[symbols.end]
        with tempfile.TemporaryDirectory() as scratch:
            export_ctranslate2(folder, Path(scratch) / "model")
            self._translator = ctranslate2_module().Translator(
                str(Path(scratch) / "model"),
                device=kind,
                device_index=int(number or 0),
                compute_type="int8" if int8 else "float32",
                inter_threads=torch.get_num_threads() if kind == "cpu" else 1,
                intra_threads=1,  # a worker each, as our own engine has it
            )

    def __call__(
        self, sources: Sequence[Sequence[int]], longest: Sequence[int], how: Beam | Sampling, rng: torch.Generator
    ) -> list[list[Hypothesis]]:
        """The best hypotheses of a beam, each cut at its own `longest`: CTranslate2 knows one limit for all."""
        if isinstance(how, Sampling):
            raise HeedfulError("samples are drawn by heedful's own engine", remedy="use heedful as the `engine`")
        results = self._translator.translate_batch(
            [[self._source[i] for i in ids[1:-1]] for ids in sources],
            beam_size=how.size,
            num_hypotheses=how.n_best,
            length_penalty=0.0 if how.size == 1 else how.length_penalty,
            min_decoding_length=0,
            max_decoding_length=max(longest),
            suppress_sequences=self._banned,
            return_scores=True,
            return_end_token=True,
        )
        return [
            [self._hypothesis(*one, how, most) for one in zip(result.hypotheses, result.scores, strict=True)]
            for result, most in zip(results, longest, strict=True)
        ]

    def _hypothesis(self, pieces: Sequence[str], score: float, how: Beam, most: int) -> Hypothesis:
        pieces = pieces[:most]
        finished = bool(pieces) and pieces[-1] == self._end
        ids = tuple(self._target[piece] for piece in (pieces[:-1] if finished else pieces))
        # Greedy search gives the log-probability itself, and so does a beam without penalty.
        length = max(len(pieces), 1)
        total = score if how.size == 1 else score * float(length) ** how.length_penalty
        return Hypothesis(ids, score_of(total, length, how.length_penalty), total, finished)


def engine_if_possible(folder: TranslationFolder, device: str, int8: bool = False) -> Ctranslate2Engine | None:
    """CTranslate2 for a Transformer that it can express, where it is installed; else None."""
    if not isinstance(folder.model, Transformer) or importlib.util.find_spec("ctranslate2") is None:
        return None
    try:
        return Ctranslate2Engine(folder, device, int8)
    except HeedfulError:  # such as one with a BERT as its encoder
        return None
