"""One ONNX file from a model over padded texts, with any batch and length, in float32 or int8."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType

import torch

from heedful.errors import HeedfulError
from heedful.export.padded import PaddedEncoder, PaddedHead

INPUTS = ("input_ids", "attention_mask", "token_type_ids")
PRECISIONS = ("float32", "int8")


def optional_module(name: str) -> ModuleType:
    """A module of the extra `onnx`."""
    try:
        return import_module(name)
    except ImportError as error:
        raise HeedfulError(f"{name} is not installed", remedy="pip install 'heedful[onnx]'") from error


def write_onnx(model: PaddedEncoder | PaddedHead, path: Path, precision: str = "float32") -> None:
    """Write the model; in int8 the weights of matmuls are stored per channel, and inputs rounded as they come."""
    if precision not in PRECISIONS:
        raise HeedfulError(f"no precision {precision!r}", remedy=f"choose one of {', '.join(PRECISIONS)}")
    optional_module("onnxscript")
    # Sizes other than 0 and 1, which would be taken as fixed; three tensors, for one given twice is taken as one input.
    ids, mask, segments = (torch.full((2, 5), value) for value in (1, 1, 0))
    sizes = {name: {0: "batch", 1: "sequence"} for name in INPUTS}
    with _quiet(), torch.no_grad():
        try:
            program = torch.onnx.export(
                model.eval(),
                (ids, mask, segments),
                dynamo=True,
                verbose=False,
                input_names=INPUTS,
                output_names=model.outputs,
                dynamic_shapes=sizes,
            )
        except Exception as error:  # the exporter has many, for each thing it cannot express
            what = "torch cannot express this kind of model as ONNX"
            raise HeedfulError(what, remedy="use the folder itself") from error
        assert program is not None
        whole = path if precision == "float32" else path.with_suffix(".float32.onnx")
        program.save(str(whole), external_data=False)
    if precision == "int8":
        _quantize(whole, path)
        whole.unlink()


def _quantize(whole: Path, path: Path) -> None:
    onnx, quantization = optional_module("onnx"), optional_module("onnxruntime.quantization")
    graph = onnx.load(str(whole))
    del graph.graph.value_info[:]  # torch notes shapes of weights before it transposes them, which are refused
    onnx.save(graph, str(whole))
    with _quiet():
        quantization.quantize_dynamic(
            whole,
            path,
            per_channel=True,
            op_types_to_quantize=["MatMul", "Gemm"],
            weight_type=quantization.QuantType.QInt8,
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """torch tells of parts of its exporter that are not needed here, and onnxruntime of passes that it recommends."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
