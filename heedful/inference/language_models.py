"""The language model of a folder: its encoder, which is loaded already, with the head that says words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from torch import nn

from heedful.checkpoints.folder import ModelFolder
from heedful.checkpoints.weights import fill_parameters, unfilled
from heedful.errors import HeedfulError
from heedful.inference.suited_verbs import suited_verbs
from heedful.models.encoder import Encoder
from heedful.models.language_model import LanguageModel

M = TypeVar("M", bound=nn.Module)


def unpacked_language_model(folder: ModelFolder, encoder: Encoder) -> LanguageModel:
    """The language model of a folder around its encoder, which is loaded and may be packed; its head is not."""
    build = folder.family.language_model
    if build is None:
        raise HeedfulError(
            f"a model of the type {folder.model_type} does not say what comes next",
            where=folder.path,
            remedy=f"{suited_verbs(folder)}, or give a language model, such as a GPT",
        )
    return with_heads(folder, encoder, build).eval()


def with_heads(folder: ModelFolder, encoder: Encoder, build: Callable[[Any], M]) -> M:
    """What `build` makes, with a loaded encoder and the heads of the folder, each of which must be there."""
    model = unfilled(lambda: build(folder.model_config), folder.weights)
    model.encoder = encoder
    with folder.open_weights() as found:
        for part, called in folder.family.parts.items():
            if part.startswith("encoder.") or not hasattr(model, part):
                continue
            if not found.holds(part):
                remedy = "use the folder as it was pretrained, with its head"
                raise HeedfulError(f"the folder has no {called}, so it says no words", where=folder.path, remedy=remedy)
            fill_parameters(model.get_submodule(part), found, prefix=f"{part}.")
    return model
