"""Engines in float32 and int8 beside each other, for vectors and for translations; each in a process of its own."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import engines
import numpy as np
import translate_engines
from engine_process import Build
from engines import Embed
from translate_engines import Translate


def heedful_vectors(model: Path, scratch: Path) -> Embed:
    """This project in int8, forced where the processor has no dot product of bytes."""
    from heedful.inference.load import load_embedder

    loaded = load_embedder(model, "cpu", force=True, precision="int8")
    return lambda texts: np.asarray(loaded.embed(texts, pooling="mean", normalize=True, max_length=engines.MAX_LENGTH))


def onnxruntime_vectors(model: Path, scratch: Path) -> Embed:
    """ONNX Runtime with weights in int8 for each channel and inputs rounded as they come."""
    import onnxruntime
    from onnxruntime.quantization import QuantType, quantize_dynamic

    small = str(scratch / "int8.onnx")
    quantize_dynamic(engines._onnx(model, scratch), small, per_channel=True, weight_type=QuantType.QInt8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = engines.CORES
    session = onnxruntime.InferenceSession(small, options, providers=["CPUExecutionProvider"])
    return engines._padded(lambda encodings: session.run(None, dict(encodings))[0], model)


def openvino_vectors(model: Path, scratch: Path) -> Embed:
    """OpenVINO with weights in int8 for each channel, as its own tool makes them; inputs are rounded as they come."""
    import nncf
    import openvino

    core = openvino.Core()
    exact = core.read_model(engines._onnx(model, scratch))
    small = nncf.compress_weights(exact, mode=nncf.CompressWeightsMode.INT8_SYM)
    settings = {"INFERENCE_NUM_THREADS": engines.CORES, "INFERENCE_PRECISION_HINT": "f32"}
    settings["DYNAMIC_QUANTIZATION_GROUP_SIZE"] = 2**16  # a whole token
    compiled = core.compile_model(small, "CPU", settings)
    return engines._padded(lambda encodings: compiled(dict(encodings))[0], model)


def heedful_translations(model: Path, scratch: Path) -> Translate:
    """Our own search in int8."""
    from heedful.inference.load import load_translator

    translator = load_translator(model, "cpu", "heedful", "int8", force=True)
    return lambda texts: translator.translate(texts, beam=translate_engines.BEAM)


def ctranslate2_translations(model: Path, scratch: Path) -> Translate:
    """CTranslate2 in int8 with a worker on each core."""
    return translate_engines._ctranslate2(model, scratch, translate_engines.CORES, 1, "int8")


VECTORS: dict[str, Build] = {
    "sentence_transformers": engines.sentence_transformers,
    "heedful": engines.heedful,
    "heedful (int8)": heedful_vectors,
    "onnxruntime (int8)": onnxruntime_vectors,
    "ctranslate2 (int8)": partial(engines.ctranslate2, precision="int8"),
    "openvino (int8)": openvino_vectors,
}
TRANSLATIONS: dict[str, Build] = {
    "heedful": translate_engines.heedful,
    "heedful (int8)": heedful_translations,
    "ctranslate2": translate_engines.ctranslate2_workers,
    "ctranslate2 (int8)": ctranslate2_translations,
}
