"""heedful: attention models on your own text.

    import heedful
    model = heedful.load("path/to/model-folder")
    vectors = model.embed(["one text", "another"])
    run = heedful.finetune("classify", model="MODEL", train="train.tsv", dev="dev.tsv", output="run")

Importing the package imports neither torch nor anything else that is slow; that happens on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from heedful.calls import build_corpus as build_corpus
    from heedful.calls import distil as distil
    from heedful.calls import evaluate as evaluate
    from heedful.calls import evaluate_translator as evaluate_translator
    from heedful.calls import finetune as finetune
    from heedful.calls import ladder as ladder
    from heedful.calls import pretrain as pretrain
    from heedful.calls import train_tokenizer as train_tokenizer
    from heedful.calls import train_translator as train_translator
    from heedful.calls import whiten as whiten
    from heedful.errors import HeedfulError as HeedfulError
    from heedful.inference.load import load as load
    from heedful.runs.run import Run as Run

_HOMES = {
    "HeedfulError": "heedful.errors",
    "Run": "heedful.runs.run",
    "build_corpus": "heedful.calls",
    "distil": "heedful.calls",
    "evaluate": "heedful.calls",
    "evaluate_translator": "heedful.calls",
    "finetune": "heedful.calls",
    "ladder": "heedful.calls",
    "load": "heedful.inference.load",
    "pretrain": "heedful.calls",
    "train_tokenizer": "heedful.calls",
    "train_translator": "heedful.calls",
    "whiten": "heedful.calls",
}
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'heedful' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*_HOMES, "__version__"])
