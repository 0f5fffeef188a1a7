"""The files by which sentence-transformers turns an encoder into a maker of sentence vectors.

The files, all optional:

    modules.json                         Transformer, Pooling, perhaps Dense and Normalize, each with its folder
    1_Pooling/config.json                which pooling
    2_Dense/config.json, its weights     a linear layer on the vectors
    sentence_bert_config.json            the longest input
    config_sentence_transformers.json    prompts, which stand before texts for one purpose or another
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.checkpoints.sentence_dense import Dense, read_dense
from heedful.errors import HeedfulError
from heedful.json_files import read_json, read_json_value, write_json

if TYPE_CHECKING:
    from torch import nn

MODULES = "modules.json"
LIMITS = "sentence_bert_config.json"
PROMPTS = "config_sentence_transformers.json"
_NORMALIZED = "the folder scales its vectors to length 1: ask for it with normalize"

# Our name of a pooling -> the modes of sentence-transformers whose vectors lie side by side in it.
POOLINGS: Mapping[str, tuple[str, ...]] = {
    "mean": ("mean",),
    "cls": ("cls",),
    "max": ("max",),
    "weighted-mean": ("weightedmean",),
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
    prompts: Mapping[str, str] = field(default_factory=dict)  # what to put before texts, by its name
    dense: tuple[Dense, ...] = ()  # linear layers on the vectors, one after the other

    def dense_layers(self) -> nn.Module | None:
        """The linear layers with their weights, None where there are none; torch is needed from here on."""
        from torch import nn

        return nn.Sequential(*(layer.load() for layer in self.dense)) if self.dense else None

    def prompt(self, name: str) -> str:
        """The prompt of a name."""
        if name not in self.prompts:
            known = ", ".join(self.prompts)
            remedy = f"its prompts are {known}" if known else "leave it out, and put what you want before the texts"
            raise HeedfulError(f"the folder has no prompt {name!r}", remedy=remedy)
        return self.prompts[name]


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
    encoder, pooling, dense, normalize = _modules(folder)
    prompts, default = _prompts(folder)
    settings = SentenceSettings(_pooling(pooling / "config.json", prompts), normalize, prompts, dense)
    notes = (*((_NORMALIZED,) if normalize else ()), *_prompt_notes(prompts, default))
    return SentenceLayout(encoder, settings, *_limits(encoder), notes)


def write_layout(folder: Path, settings: SentenceSettings, max_length: int | None, width: int) -> None:
    """Write the files of sentence-transformers beside an encoder, readable by its old and new versions."""
    kinds = ["Transformer", "Pooling", *("Dense" for _ in settings.dense), *["Normalize"] * settings.normalize]
    paths = ["", *(f"{i}_{kind}" for i, kind in enumerate(kinds[1:], start=1))]
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (kind, path) in enumerate(zip(kinds, paths, strict=True))
    ]
    write_json(folder / MODULES, modules)
    for path in paths[1:]:
        (folder / path).mkdir()
    write_json(folder / paths[1] / "config.json", _pooling_json(settings.pooling, width))
    for dense, path in zip(settings.dense, paths[2:], strict=False):
        dense.copy_to(folder / path)
    write_json(folder / LIMITS, {"max_seq_length": max_length, "do_lower_case": False})
    if settings.prompts:
        write_json(folder / PROMPTS, {"prompts": dict(settings.prompts), "default_prompt_name": None})


def _modules(folder: Path) -> tuple[Path, Path, tuple[Dense, ...], bool]:
    """The encoder's folder, the pooling's folder, linear layers, and whether vectors are brought to length one."""
    where = folder / MODULES
    modules = read_json_value(where)
    if not isinstance(modules, list) or not all(isinstance(module, dict) for module in modules):
        raise HeedfulError("the file is not a list of modules", where=where, remedy="fetch the file again")
    kinds = [str(module.get("type")).rpartition(".")[2] for module in modules]
    further = kinds[2:-1] if kinds[2:] and kinds[-1] == "Normalize" else kinds[2:]
    if kinds[:2] != ["Transformer", "Pooling"] or set(further) - {"Dense"}:
        raise HeedfulError(
            f"the modules are {', '.join(kinds) or 'none'}; Transformer, Pooling, Dense and Normalize are supported, "
            "in this order",
            where=where,
            remedy="use a model without further modules; to use the encoder alone, load a copy without modules.json",
        )
    encoder, pooling, *others = (_inside(folder, module.get("path"), where) for module in modules)
    dense = tuple(read_dense(path) for path in others[: len(further)])
    return encoder, pooling, dense, kinds[-1] == "Normalize"


def _inside(folder: Path, path: Any, where: Path) -> Path:
    if not isinstance(path, str) or Path(path).is_absolute() or ".." in Path(path).parts:
        what = f"the module path {path!r} is not inside the folder"
        raise HeedfulError(what, where=where, remedy="do not use a folder you cannot trust")
    return folder / path


def _pooling(where: Path, prompts: Mapping[str, str]) -> str:
    config = read_json(where)
    if prompts and config.get("include_prompt") is False:
        what = "include_prompt is false: the pooling leaves out the tokens of prompts, which is not supported"
        raise HeedfulError(what, where=where, remedy="use a model that pools over its prompts too, as E5 and BGE do")
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


def _prompts(folder: Path) -> tuple[dict[str, str], str | None]:
    """The prompts that are not empty, by name, and the name of the default one."""
    where = folder / PROMPTS
    config = read_json(where) if where.is_file() else {}
    prompts = config.get("prompts") or {}
    if not isinstance(prompts, dict) or not all(isinstance(prompt, str) for prompt in prompts.values()):
        raise HeedfulError("prompts is not an object of texts", where=where, remedy="fix the file, or leave it out")
    default = config.get("default_prompt_name")
    return {name: prompt for name, prompt in prompts.items() if prompt}, default if default in prompts else None


def _prompt_notes(prompts: Mapping[str, str], default: str | None) -> tuple[str, ...]:
    named = [f"{name} ({prompt!r})" for name, prompt in prompts.items()]
    told = [f"prompts, put before texts where they are asked for by name: {', '.join(named)}"] if named else []
    return (*told, *([f"its default prompt is {default}: ask for it"] if default in prompts else []))
