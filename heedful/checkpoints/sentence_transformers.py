"""The files by which sentence-transformers turns an encoder into a maker of sentence vectors.

The files, all optional:

    modules.json                 Transformer, Pooling and perhaps Normalize, each with its folder
    1_Pooling/config.json        which pooling
    sentence_bert_config.json    the longest input
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.errors import HeedfulError
from heedful.json_files import read_json, read_json_value, write_json

MODULES = "modules.json"
LIMITS = "sentence_bert_config.json"
PROMPTS = "config_sentence_transformers.json"
_NORMALIZED = "the folder scales its vectors to length 1: ask for it with normalize"

# Our name of a pooling -> the modes of sentence-transformers whose vectors lie side by side in it.
POOLINGS: Mapping[str, tuple[str, ...]] = {
    "mean": ("mean",),
    "cls": ("cls",),
    "max": ("max",),
    "last": ("lasttoken",),
    "mean-max": ("mean", "max"),
}

# Before version 6 a pooling was a row of switches; this is the order in which those side by side were laid.
SWITCHES: Mapping[str, str] = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}


@dataclass(frozen=True)
class SentenceSettings:
    """How a folder wants its sentence vectors made."""

    pooling: str = "mean"  # one of POOLINGS
    normalize: bool = False


@dataclass(frozen=True)
class SentenceLayout:
    """What sentence-transformers' files say about a folder."""

    encoder: Path  # where the encoder lies: the folder itself, or one inside it
    settings: SentenceSettings | None  # None without modules.json
    max_length: int | None
    lower_case: bool  # texts are lower-cased before the tokenizer sees them
    notes: tuple[str, ...]


def read_layout(folder: Path) -> SentenceLayout:
    """Read what sentence-transformers has to say about a folder; the folder may be a plain one."""
    if not (folder / MODULES).is_file():
        return SentenceLayout(folder, None, *_limits(folder), notes=())
    encoder, pooling, normalize = _modules(folder)
    settings = SentenceSettings(_pooling(pooling / "config.json"), normalize)
    notes = (*((_NORMALIZED,) if normalize else ()), *_prompt_notes(folder))
    return SentenceLayout(encoder, settings, *_limits(encoder), notes)


def write_layout(folder: Path, settings: SentenceSettings, max_length: int | None, width: int) -> None:
    """Write the files of sentence-transformers beside an encoder, readable by its old and new versions."""
    kinds = ["Transformer", "Pooling", *(["Normalize"] if settings.normalize else [])]
    paths = ["", *(f"{i}_{kind}" for i, kind in enumerate(kinds[1:], start=1))]
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (kind, path) in enumerate(zip(kinds, paths, strict=True))
    ]
    write_json(folder / MODULES, modules)
    for path in paths[1:]:
        (folder / path).mkdir()
    write_json(folder / paths[1] / "config.json", _pooling_json(settings.pooling, width))
    write_json(folder / LIMITS, {"max_seq_length": max_length, "do_lower_case": False})


def _modules(folder: Path) -> tuple[Path, Path, bool]:
    """The encoder's folder, the pooling's folder, and whether vectors are brought to length one."""
    where = folder / MODULES
    modules = read_json_value(where)
    if not isinstance(modules, list) or not all(isinstance(module, dict) for module in modules):
        raise HeedfulError("the file is not a list of modules", where=where, remedy="fetch the file again")
    kinds = [str(module.get("type")).rpartition(".")[2] for module in modules]
    if kinds not in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]):
        raise HeedfulError(
            f"the modules are {', '.join(kinds) or 'none'}; Transformer, Pooling and perhaps Normalize are supported",
            where=where,
            remedy="use a model without further modules; to use the encoder alone, load a copy without modules.json",
        )
    encoder, pooling = (_inside(folder, module.get("path"), where) for module in modules[:2])
    return encoder, pooling, len(kinds) == 3


def _inside(folder: Path, path: Any, where: Path) -> Path:
    if not isinstance(path, str) or Path(path).is_absolute() or ".." in Path(path).parts:
        what = f"the module path {path!r} is not inside the folder"
        raise HeedfulError(what, where=where, remedy="do not use a folder you cannot trust")
    return folder / path


def _pooling(where: Path) -> str:
    config = read_json(where)
    mode = config.get("pooling_mode")
    if mode is None:
        mode = [name for switch, name in SWITCHES.items() if config.get(switch)] or ["mean"]
    modes = tuple([mode] if isinstance(mode, str) else mode) if isinstance(mode, str | list) else (mode,)
    for name, parts in POOLINGS.items():
        if modes == parts:
            return name
    raise HeedfulError(
        f"the pooling {' beside '.join(map(str, modes))} is not supported",
        where=where,
        remedy=f"use a model with one of {', '.join(POOLINGS)} (mean-max: mean first)",
    )


def _pooling_json(pooling: str, width: int) -> dict[str, Any]:
    if pooling not in POOLINGS:
        raise HeedfulError(f"no pooling is called {pooling!r}", remedy=f"choose one of {', '.join(POOLINGS)}")
    modes = POOLINGS[pooling]
    if len(modes) > 1:  # only the newer form can say which comes first
        return {"embedding_dimension": width, "pooling_mode": list(modes), "include_prompt": True}
    return {"word_embedding_dimension": width, **{switch: name == modes[0] for switch, name in SWITCHES.items()}}


def _limits(encoder: Path) -> tuple[int | None, bool]:
    where = encoder / LIMITS
    if not where.is_file():
        return None, False
    config = read_json(where)
    limit = config.get("max_seq_length")
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 1):
        raise HeedfulError(f"max_seq_length is {limit!r}", where=where, remedy="give a number above zero, or null")
    return limit, bool(config.get("do_lower_case"))


def _prompt_notes(folder: Path) -> tuple[str, ...]:
    config = read_json(folder / PROMPTS) if (folder / PROMPTS).is_file() else {}
    name = config.get("default_prompt_name")
    prompts = config.get("prompts")
    prompt = prompts.get(name) if isinstance(prompts, dict) else None
    return (f"the default prompt {prompt!r} ({name}) is not put before texts; do so yourself",) if prompt else ()
