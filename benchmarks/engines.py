"""Engines that turn texts into unit vectors with the same weights, each in a process of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
from engine_process import EngineProcess, processes
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
Embed = Callable[[Sequence[str]], Vectors]

MAX_LENGTH = 256
CORES = len(os.sched_getaffinity(0))


def heedful(model: Path, scratch: Path) -> Embed:
    """This project."""
    from heedful.inference.load import load_embedder

    loaded = load_embedder(model, "cpu")
    return lambda texts: np.asarray(loaded.embed(texts, pooling="mean", normalize=True, max_length=MAX_LENGTH))


def sentence_transformers(model: Path, scratch: Path) -> Embed:
    """sentence-transformers as its manual uses it."""
    from sentence_transformers import SentenceTransformer

    loaded = SentenceTransformer(str(model), device="cpu")
    loaded.max_seq_length = MAX_LENGTH
    return lambda texts: np.asarray(loaded.encode(list(texts), show_progress_bar=False, normalize_embeddings=True))


def ctranslate2(model: Path, scratch: Path, precision: str = "float32") -> Embed:
    """CTranslate2, in fp32 or another precision, which pads inside and cuts padding out again."""
    import ctranslate2

    folder = scratch / "ctranslate2"
    ctranslate2.converters.TransformersConverter(str(model)).convert(str(folder), quantization=precision)
    encoder = ctranslate2.Encoder(str(folder), device="cpu", intra_threads=CORES, compute_type=precision)

    def states(encodings: dict[str, Any]) -> Vectors:
        ids = [
            row[:n] for row, n in zip(encodings["input_ids"].tolist(), encodings["attention_mask"].sum(1), strict=True)
        ]
        return np.asarray(encoder.forward_batch(ids).last_hidden_state)

    return _padded(states, model, batch_size=64)


def onnxruntime(model: Path, scratch: Path) -> Embed:
    """ONNX Runtime in fp32 with its default graph optimisations."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = CORES
    session = onnxruntime.InferenceSession(_onnx(model, scratch), options, providers=["CPUExecutionProvider"])
    return _padded(lambda encodings: session.run(None, dict(encodings))[0], model)


def openvino(model: Path, scratch: Path) -> Embed:
    """OpenVINO on the same ONNX file."""
    import openvino

    core = openvino.Core()
    settings = {"INFERENCE_NUM_THREADS": CORES, "INFERENCE_PRECISION_HINT": "f32"}
    compiled = core.compile_model(core.read_model(_onnx(model, scratch)), "CPU", settings)
    return _padded(lambda encodings: compiled(dict(encodings))[0], model)


ENGINES = {f.__name__: f for f in (heedful, sentence_transformers, ctranslate2, onnxruntime, openvino)}


def engines(names: Sequence[str], model: Path) -> AbstractContextManager[dict[str, EngineProcess]]:
    """Engines by name, ready to be asked for the unit vectors of texts, for the time of a `with` block."""
    return processes({name: ENGINES[name] for name in names}, model, ["warming up"])


def _padded(states: Callable[[dict[str, Any]], Vectors], model: Path, batch_size: int = 32) -> Embed:
    """The usual loop around an engine that gives hidden states: sorted by length, padded in each batch, averaged."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model)

    def embed(texts: Sequence[str]) -> Vectors:
        order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
        rows: dict[int, Vectors] = {}
        for start in range(0, len(order), batch_size):
            chosen = order[start : start + batch_size]
            encodings = tokenizer(
                [texts[i] for i in chosen], padding=True, truncation=True, max_length=MAX_LENGTH, return_tensors="np"
            )
            mask = encodings["attention_mask"][..., None].astype(np.float32)
            means = (states(encodings) * mask).sum(1) / mask.sum(1)
            rows.update(zip(chosen, means / np.linalg.norm(means, axis=1, keepdims=True), strict=True))
        return np.stack([rows[i] for i in range(len(texts))])

    return embed


def _onnx(model: Path, scratch: Path) -> str:
    """The encoder as an ONNX file whose batch and length are free."""
    import torch
    from transformers import AutoModel

    class LastHidden(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder = AutoModel.from_pretrained(model, attn_implementation="eager").eval()

        def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
            states: torch.Tensor = self.encoder(**dict(zip(names, inputs, strict=True))).last_hidden_state
            return states

    names = ["input_ids", "token_type_ids", "attention_mask"]
    example = tuple(torch.ones(2, 9, dtype=torch.long) * (name != "token_type_ids") for name in names)
    file = str(scratch / "model.onnx")
    free = {name: {0: "batch", 1: "length"} for name in [*names, "states"]}
    torch.onnx.export(
        LastHidden(), example, file, input_names=names, output_names=["states"], dynamic_axes=free, dynamo=False
    )  # fmt: skip
    return file
