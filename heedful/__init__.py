"""heedful: attention models on your own text.

    import heedful
    model = heedful.load("path/to/model-folder")
    vectors = model.embed(["one text", "another"])

Importing the package imports neither torch nor anything else that is slow; that happens on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["HeedfulError", "load"]

if TYPE_CHECKING:
    from heedful.errors import HeedfulError
    from heedful.inference.load import load

_HOMES = {"HeedfulError": "heedful.errors", "load": "heedful.inference.load"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'heedful' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
