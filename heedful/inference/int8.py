"""A model in int8 for its answers: whether it pays here, and which of its products bear it.

All products are rounded and the answers for a few texts compared with those in float32. If they differ by more than
the bounds, the products that lose most go back to float32: the worst, the two worst, the four worst …
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from itertools import islice
from typing import Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heedful.checkpoints.folder import ModelFolder
from heedful.checkpoints.int8_scheme import Int8Scheme
from heedful.checkpoints.task_folder import is_for_task
from heedful.checkpoints.translation_folder import TranslationFolder
from heedful.data.batching import flat_batch
from heedful.data.bitext.pairs import lay_out
from heedful.errors import HeedfulError, PrecisionWarning
from heedful.inference.language_models import unpacked_language_model
from heedful.models.encoder import Encoder
from heedful.models.int8_parts import ENCODER, Place, check_suited, places, put_in_int8
from heedful.models.language_model import TiedLanguageModel
from heedful.models.transformer import Transformer
from heedful.nn.int8 import Int8Linear
from heedful.nn.packed_int8 import int8_instructions, int8_levels

AskedPrecision = Literal["auto", "float32", "int8"]
# The answers of each text must point where those in float32 do.
LEAST_MEAN, LEAST_COSINE = 0.995, 0.98
MOST_TEXTS, MOST_TOKENS = 32, 256
SENTENCES = (
    "The miller had a grey dog that slept beside the door.",
    "How far is it from the station to the harbour, and can I walk?",
    "Prices rose by 3.2 % in 2019, the fastest since the survey began.",
    "Yes.",
    "The committee, which had met twice before, could not agree on who should pay for the repairs to the old bridge.",
    "Der Zug nach Köln fährt um 17:45 Uhr von Gleis 9.",
    "Elle a vendu la maison de sa grand-mère à un jeune couple.",
    "昨天的会议上，大家讨论了新的计划。",
    "这本书的作者是谁？我想买一本送给朋友。",
    "Water boils at a lower temperature on a mountain because the air presses less.",
    "I would not recommend this hotel: the room was cold and nobody answered the telephone.",
    "def area(width, height): return width * height",
)

Answers = Callable[[], list[Tensor]]  # a tensor for each text


def computes_in_int8(asked: str, device: str, stored: bool, force: bool) -> bool:
    """Whether to compute in int8; `auto` does where the weights are `stored` so and the processor has a dot product.

    Where it has none, float32 is used and said, unless int8 is asked for with `force`.
    """
    if asked not in get_args(AskedPrecision):
        raise HeedfulError(f"no precision {asked!r}", remedy=f"choose one of {', '.join(get_args(AskedPrecision))}")
    if asked == "float32" or (asked == "auto" and not stored):
        return False
    if torch.device(device).type != "cpu":
        if asked == "auto":
            return False
        raise HeedfulError(f"int8 is for a CPU, and the device is {device}", remedy="use the device cpu, or float32")
    found = int8_instructions()
    if found.there or (force and asked == "int8"):
        return True
    told = f"{found.reason}, so int8 would hardly pay: float32 is used; precision int8 with `force` computes in int8"
    warnings.warn(told, PrecisionWarning, stacklevel=4)
    return False


def int8_told() -> str:
    """What `heedful doctor` says of int8."""
    found = int8_instructions()
    return f"{found.reason}: {'faster than float32' if found.there else 'float32 is used unless int8 is forced'}"


@torch.inference_mode()
def encoder_in_int8(folder: ModelFolder, encoder: Encoder, texts: Iterable[str] = ()) -> Int8Scheme:
    """Put the encoder of a folder in int8, as the folder has it or else as a check on texts decides."""
    if folder.int8 is not None:
        put_in_int8(encoder, _without_prefix(folder.int8.float32), int8_levels())
        return folder.int8
    check_suited(encoder)
    encodings = folder.require_tokenizer().encode_batch(_chosen(texts), min(folder.max_length, MOST_TOKENS))
    batches = [flat_batch([one.ids], [one.type_ids]) for one in encodings]
    model: nn.Module = encoder
    build = folder.family.language_model
    if isinstance(build, type) and issubclass(build, TiedLanguageModel) and not is_for_task(folder):
        model = unpacked_language_model(folder, encoder)

    def answers() -> list[Tensor]:
        states = [encoder(batch).last for batch in batches]
        return [_centred(model.logits(one)) for one in states] if isinstance(model, TiedLanguageModel) else states

    found = decided(model, answers)
    return found if model is not encoder else _prefixed(found)


@torch.inference_mode()
def translator_in_int8(folder: TranslationFolder, texts: Iterable[str] = ()) -> Int8Scheme:
    """Put a translation model in int8; for the check it is asked how probable each text is as its own translation."""
    model = folder.model
    check_suited(model)
    assert isinstance(model, Transformer)
    if folder.int8 is not None:
        put_in_int8(model, folder.int8.float32, int8_levels())
        return folder.int8
    limit, chosen = min(folder.max_length, MOST_TOKENS), _chosen(texts)
    sources, targets = ([one.ids for one in side.encode_batch(chosen, limit)] for side in folder.sides)
    pairs = [lay_out([source], [target]) for source, target in zip(sources, targets, strict=True)]
    return decided(model, lambda: [_centred(model.logits(model(pair))) for pair in pairs])


def head_in_int8(model: nn.Module, scheme: Int8Scheme | None) -> None:
    """Put the head of a language model in int8 if the scheme has it so; its encoder is already."""
    if scheme is not None and isinstance(model, TiedLanguageModel) and "tied_head" not in scheme.float32:
        place = places(model)["tied_head"]
        place.put(Int8Linear(place.in_float32(), int8_levels()))


def decided(model: nn.Module, answers: Answers) -> Int8Scheme:
    """Put a model in int8 as far as its answers bear it."""
    found, exact = places(model), answers()
    put_in_int8(model, (), int8_levels())
    kept: list[str] = []
    cosines = _cosines(exact, answers())
    if not _good(cosines):
        worst = _worst_first(found, answers)
        while not _good(cosines) and len(kept) < len(worst):
            kept = worst[: max(1, 2 * len(kept))]
            for name, place in found.items():
                place.put(place.linear if name in kept else Int8Linear(place.in_float32(), int8_levels()))
            cosines = _cosines(exact, answers())
    mean, least = float(cosines.mean()), float(cosines.min())
    return Int8Scheme(len(found), tuple(sorted(kept)), len(exact), round(mean, 6), round(least, 6))


def _worst_first(found: dict[str, Place], answers: Answers) -> list[str]:
    """The products by what int8 costs each of them alone, as a share of its result, on the inputs that it gets."""
    lost: dict[str, list[float]] = {name: [] for name in found}

    def watching(name: str, layer: Int8Linear, exact: nn.Module) -> Callable[..., Tensor]:
        def compare(_: nn.Module, given: tuple[Tensor], __: Tensor) -> Tensor:
            right: Tensor = exact(given[0])
            lost[name].append(float((layer.forward(given[0]) - right).norm() / right.norm().clamp_min(1e-30)))
            return right

        return compare

    for name, place in found.items():
        layer = getattr(place.owner, place.name)
        layer.register_forward_hook(watching(name, layer, place.in_float32()))
    answers()
    return sorted(found, key=lambda name: -sum(lost[name]) / max(1, len(lost[name])))


def _chosen(texts: Iterable[str]) -> list[str]:
    """A few of the user's texts, or ours if there are none with a word in them."""
    given = list(islice((text for text in texts if text.strip()), MOST_TEXTS))
    return given or list(SENTENCES)


def _cosines(exact: Sequence[Tensor], found: Sequence[Tensor]) -> Tensor:
    return torch.stack(
        [F.cosine_similarity(a.flatten(), b.flatten(), dim=0) for a, b in zip(exact, found, strict=True)]
    )


def _good(cosines: Tensor) -> bool:
    return bool(cosines.mean() >= LEAST_MEAN and cosines.min() >= LEAST_COSINE)


def _centred(logits: Tensor) -> Tensor:
    """What is the same for all symbols changes no probability."""
    return logits - logits.mean(-1, keepdim=True)


def _without_prefix(names: Collection[str]) -> set[str]:
    return {name.removeprefix(f"{ENCODER}.") for name in names}


def _prefixed(found: Int8Scheme) -> Int8Scheme:
    return replace(found, float32=tuple(f"{ENCODER}.{name}" for name in found.float32))
