"""The one entry point from a folder on disk to an object that answers."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import torch

from heedful.checkpoints.folder import read_folder
from heedful.checkpoints.translation_folder import is_translation, load_translation, read_shape
from heedful.errors import HeedfulError
from heedful.inference.embedder import Embedder
from heedful.inference.predictor import Predictor
from heedful.inference.translator import Translator

# What a run folder has and a model folder has not.
RUN_FILES = ("config.toml", "seeds.json")


def load(
    folder: str | Path,
    device: str | None = None,
    force: bool = False,
    precision: str = "auto",
    texts: Iterable[str] = (),
    engine: str = "auto",
) -> Embedder | Translator:
    """Load a model folder, or that of a run, as what the model type in its config.json makes of it.

    `device` is cpu, cuda, cuda:1 …, None for a GPU if there is one and else the processor. `force` takes an encoder's
    tokenizer although it has far fewer pieces than the model has rows, and computes in int8 where that hardly pays.
    `precision` is float32, int8 (on a CPU), or auto: as the folder is stored. What int8 costs is found out on `texts`,
    some of your own, or else on sentences of ours. `engine` is auto, heedful, or another that can compute the model:
    onnxruntime, and for translations ctranslate2.
    """
    if is_translation(model_path(folder)):
        return load_translator(folder, device, engine, precision, force, texts)
    return load_embedder(folder, device, force, precision, texts, engine)


def check_model(folder: str | Path, force: bool = False) -> None:
    """Refuse what `load` would refuse, as far as it can be known before any weight is loaded."""
    path = model_path(folder)
    if is_translation(path):
        read_shape(path)
    else:
        read_folder(path, force)


def load_embedder(
    folder: str | Path,
    device: str | None = None,
    force: bool = False,
    precision: str = "auto",
    texts: Iterable[str] = (),
    engine: str = "auto",
) -> Embedder:
    """Load a folder with an encoder, such as BERT's; `force`, `precision`, `texts` and `engine` as in `load`."""
    on = _device(device, precision)
    return Embedder(read_folder(model_path(folder), force), on, precision, force, texts, engine)


def load_translator(
    folder: str | Path,
    device: str | None = None,
    engine: str = "auto",
    precision: str = "auto",
    force: bool = False,
    texts: Iterable[str] = (),
) -> Translator:
    """Load a translation model, to decode by our own search, by CTranslate2, or by whichever suits what is asked."""
    on = _device(device, precision)
    return Translator(load_translation(model_path(folder)), on, engine, precision, force, texts)


def predictor(
    folder: str | Path,
    device: str | None = None,
    force: bool = False,
    precision: str = "auto",
    engine: str = "auto",
) -> Predictor:
    """Load a fine-tuned folder, or the one of a run, for its answers alone; `force` and the others as in `load`."""
    on = _device(device, precision)
    return Predictor(read_folder(model_path(folder), force), on, precision=precision, force=force, engine=engine)


def model_path(folder: str | Path) -> Path:
    """The model folder of a run folder; any other folder as it is."""
    path = Path(folder)
    if (path / "config.json").exists() or not any((path / name).exists() for name in RUN_FILES):
        return path
    if not (path / "model").is_dir():
        remedy = "resume it, so that it finishes"
        raise HeedfulError("this run has not written its model yet", where=path, remedy=remedy)
    return path / "model"


def _device(asked: str | None, precision: str = "auto") -> str:
    if asked is None:
        return "cuda" if torch.cuda.is_available() and precision != "int8" else "cpu"
    try:
        torch.empty(0, device=asked).cpu()
    except (RuntimeError, AssertionError) as error:  # torch's ways to say "no such name" and "not built for it"
        what = f"the device {asked!r} is not available"
        raise HeedfulError(what, remedy="use device='cpu', or install a torch that was built for it") from error
    return asked
