"""What config.json says of weights in int8: which products stay in float32, and what the others cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.checkpoints.int8_tensors import STEM
from heedful.config import from_mapping
from heedful.errors import HeedfulError

# Hugging Face's key for such things.
KEY = "quantization_config"
METHOD = "heedful-int8"


@dataclass(frozen=True)
class Int8Scheme:
    """How a model was put in int8, and how near it stays to float32."""

    products: int  # that could be in int8
    float32: tuple[str, ...]  # those that are not
    texts: int  # on which it was compared with float32
    mean_cosine: float
    least_cosine: float
    quant_method: str = METHOD

    def __str__(self) -> str:
        kept = f", in float32 stay {', '.join(self.float32)}" if self.float32 else ""
        cost = f"mean {self.mean_cosine:.4f}, least {self.least_cosine:.4f}"
        of = f"{self.products - len(self.float32)} of {self.products} matrices"
        return f"int8 for {of}{kept}; cosine with float32 on {self.texts} texts: {cost}"


def read_scheme(config: Mapping[str, Any], where: Path) -> Int8Scheme | None:
    """What a config.json at `where` says of int8, None if nothing; another way to store weights is refused."""
    values = config.get(KEY)
    there = any((where.parent / f"{STEM}.safetensors{ending}").is_file() for ending in ("", ".index.json"))
    if values is None:
        if there:
            what = f"the weights are in int8, but there is no {KEY}"
            raise HeedfulError(what, where=where, remedy="use the config.json that belongs to these weights")
        return None
    method = values.get("quant_method") if isinstance(values, dict) else values
    if method != METHOD:
        what = f"{KEY}: the weights are stored by {method!r}, which is not supported"
        raise HeedfulError(what, where=where, remedy="use the weights from before they were quantised")
    scheme = from_mapping(Int8Scheme, values, f"{where}: {KEY}")
    if not there:
        remedy = f"fetch {STEM}.safetensors, or leave {KEY} out for weights in float32"
        raise HeedfulError("config.json asks for weights in int8, and there are none", where=where, remedy=remedy)
    return scheme


def refuse_training(scheme: Int8Scheme | None, where: Path) -> None:
    """Refuse to go on training from rounded weights, whose small changes would be lost."""
    if scheme is not None:
        raise HeedfulError(
            "the folder's weights are in int8, which is for answers and not for training",
            where=where,
            remedy="train from the folder it was made of; `heedful convert` without a precision writes float32 again",
        )
