"""Engines that translate with the same weights by a beam of 5; each is asked for the translations of texts."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from heedful.checkpoints.translation_folder import TranslationFolder, load_translation
from heedful.export.ctranslate2_folder import ctranslate2_vocabulary, export_ctranslate2
from heedful.inference.load import model_path
from heedful.text.sides import Symbols

Translate = Callable[[Sequence[str]], list[str]]

BEAM = 5
CORES = len(os.sched_getaffinity(0))
MOST_SYMBOLS = 200
# Sentences of a batch for transformers, tokens of one for CTranslate2.
HF_BATCH, CT2_TOKENS = 64, 1024


def heedful(model: Path, scratch: Path) -> Translate:
    """This project."""
    from heedful.inference.load import load_translator

    translator = load_translator(model, "cpu", "heedful")
    return lambda texts: translator.translate(texts, beam=BEAM)


def transformers_sorted(model: Path, scratch: Path) -> Translate:
    """`generate` on sentences sorted by length."""
    return _generate(model, by_length=True)


def transformers_in_order(model: Path, scratch: Path) -> Translate:
    """`generate` on sentences as they come, which is what a pipeline of transformers does."""
    return _generate(model, by_length=False)


def ctranslate2_workers(model: Path, scratch: Path) -> Translate:
    """CTranslate2 with a worker on each core."""
    return _ctranslate2(model, scratch, CORES, 1)


def ctranslate2_threads(model: Path, scratch: Path) -> Translate:
    """CTranslate2 with one worker on all cores."""
    return _ctranslate2(model, scratch, 1, CORES)


ENGINES = {
    "heedful": heedful,
    "transformers (sorted)": transformers_sorted,
    "transformers (in order)": transformers_in_order,
    "ctranslate2 (workers)": ctranslate2_workers,
    "ctranslate2 (threads)": ctranslate2_threads,
}


def _generate(model: Path, by_length: bool) -> Translate:
    """`generate` of transformers' Marian; it stops as soon as the others do."""
    from marian import marian_of, transformer_in, with_weights

    folder, symbols = _folder(model)
    ours = transformer_in(folder)
    theirs = with_weights(marian_of(ours.config, symbols), ours)

    def translate(texts: Sequence[str]) -> list[str]:
        ids = [encoding.ids for encoding in folder.sides.source.encode_batch(texts)]
        order = sorted(range(len(ids)), key=lambda i: -len(ids[i]) if by_length else 0)
        said: dict[int, str] = {}
        for start in range(0, len(order), HF_BATCH):
            numbers = order[start : start + HF_BATCH]
            longest = max(len(ids[i]) for i in numbers)
            block = torch.tensor([ids[i] + [0] * (longest - len(ids[i])) for i in numbers])
            with torch.inference_mode():
                found = theirs.generate(
                    input_ids=block,
                    attention_mask=(torch.arange(longest) < torch.tensor([[len(ids[i])] for i in numbers])).long(),
                    num_beams=BEAM,
                    length_penalty=1.0,
                    early_stopping=True,
                    max_new_tokens=min(MOST_SYMBOLS, 3 * longest + 20),
                    bad_words_ids=[[banned] for banned in symbols.banned],
                )
            said.update((i, folder.sides.target.decode(row)) for i, row in zip(numbers, found.tolist(), strict=True))
        return [said[i] for i in range(len(texts))]

    return translate


def _ctranslate2(model: Path, scratch: Path, workers: int, threads: int, precision: str = "float32") -> Translate:
    import ctranslate2

    folder, _ = _folder(model)
    export_ctranslate2(folder, scratch / "model", precision)
    engine = ctranslate2.Translator(
        str(scratch / "model"), compute_type=precision, inter_threads=workers, intra_threads=threads
    )
    config = folder.model.config
    pieces = ctranslate2_vocabulary(folder.sides.source, config.source_vocab_size)
    said = ctranslate2_vocabulary(folder.sides.target, config.target_vocab_size)
    numbers = {piece: number for number, piece in enumerate(said)}

    def translate(texts: Sequence[str]) -> list[str]:
        encodings = folder.sides.source.encode_batch(texts, offsets=False)
        found = engine.translate_batch(
            [[pieces[number] for number in encoding.ids[1:-1]] for encoding in encodings],
            beam_size=BEAM,
            length_penalty=1.0,
            max_batch_size=CT2_TOKENS,
            batch_type="tokens",
            max_decoding_length=min(MOST_SYMBOLS, folder.max_length),
        )
        return [folder.sides.target.decode([numbers[piece] for piece in one.hypotheses[0]]) for one in found]

    return translate


def _folder(model: Path) -> tuple[TranslationFolder, Symbols]:
    folder = load_translation(model_path(model))
    return folder, Symbols.of(folder.sides.target)
