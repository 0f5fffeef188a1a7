"""One ONNX file from a model over padded texts, with any batch and length, in float32 or int8."""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from heedful.errors import HeedfulError
from heedful.export.padded import PaddedEncoder, PaddedHead
from heedful.models.encoder import Encoder
from heedful.models.int8_parts import check_suited

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
    if precision == "int8":
        check_suited(_encoder(model))
    optional_module("onnxscript")
    # Sizes other than 0 and 1, which would be taken as fixed; a tensor each, for one given twice is taken as one input.
    given = tuple(torch.full((2, 5), int(name != "token_type_ids")) for name in model.inputs)
    sizes = {name: {0: "batch", 1: "sequence"} for name in model.inputs}
    with _quiet(), torch.no_grad():
        try:
            program = torch.onnx.export(
                model.eval(),
                given,
                dynamo=True,
                verbose=False,
                input_names=model.inputs,
                output_names=model.outputs,
                dynamic_shapes=sizes,
            )
        except Exception as error:  # the exporter has many, for each thing it cannot express
            what = f"torch cannot express a model of the type {_encoder(model).config.model_type} as ONNX"
            raise HeedfulError(what, remedy="use the folder itself: every verb takes it") from error
        assert program is not None
        whole = path if precision == "float32" else path.with_suffix(".float32.onnx")
        program.save(str(whole), external_data=False)
    if precision == "int8":
        _quantize(whole, path)
        whole.unlink()


def _encoder(model: PaddedEncoder | PaddedHead) -> Encoder:
    return model.encoder if isinstance(model, PaddedEncoder) else model.model.encoder


def _quantize(whole: Path, path: Path) -> None:
    onnx, quantization = optional_module("onnx"), optional_module("onnxruntime.quantization")
    graph = onnx.load(str(whole))
    del graph.graph.value_info[:]  # torch notes shapes of weights before it transposes them, which are refused
    _transpose_once(graph.graph, optional_module("onnx.numpy_helper"))
    onnx.save(graph, str(whole))
    with _quiet():
        quantization.quantize_dynamic(
            whole,
            path,
            per_channel=True,
            op_types_to_quantize=["MatMul", "Gemm"],
            weight_type=quantization.QuantType.QInt8,
        )


def _transpose_once(graph: Any, arrays: ModuleType) -> None:
    """Lay weights as products take them; the quantizer would transpose one that several share once for each of them."""
    weights = {one.name: one for one in graph.initializer}
    uses: dict[str, list[Any]] = {}
    for node in graph.node:
        for name in node.input:
            uses.setdefault(name, []).append(_transposing(node) if node.op_type == "Gemm" else None)
    for name, flags in uses.items():
        if name in weights and len(weights[name].dims) == 2 and all(flags):
            turned = arrays.to_array(weights[name]).T.copy()
            weights[name].CopyFrom(arrays.from_array(turned, name))
            for flag in flags:
                flag.i = 0


def _transposing(gemm: Any) -> Any:
    """The attribute of a product that says its weights lie transposed; None if they do not."""
    return next((one for one in gemm.attribute if one.name == "transB" and one.i), None)


@contextmanager
def _quiet() -> Iterator[None]:
    """torch tells of parts of its exporter that are not needed here, and prints the graph of what it cannot express;
    onnxruntime tells of passes that it recommends.
    """
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)  # what fails comes as an exception, and is told by us
    try:
        with warnings.catch_warnings(), redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
