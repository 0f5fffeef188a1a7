"""Every tensor of a TensorFlow checkpoint beside what TensorFlow's own reader gives, bit for bit.

    python benchmarks/tensorflow_parity.py --python PYTHON     the Python of an environment that has tensorflow

TensorFlow is not needed for anything else here, so it stays in an environment of its own. Compared are SimBERT-tiny
from `$HEEDFUL_MODELS`, bundles that the writer of the tests makes, and one that TensorFlow itself saves.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import torch
from fuzz_bin import bundle_writer
from results_file import RESULTS, Table, write_results

from heedful.checkpoints.tensor_bundle import read_bundle

# Tensors as bytes, because numpy knows no bfloat16.
READ = """
import sys, numpy as np, tensorflow as tf
reader = tf.train.load_checkpoint(sys.argv[1])
names = sorted(reader.get_variable_to_shape_map())
values = [reader.get_tensor(name) for name in names]
kinds = [f"{value.dtype} {list(value.shape)}" for value in map(np.asarray, values)]
raw = {f"raw{i}": np.frombuffer(np.asarray(value).tobytes(), np.uint8) for i, value in enumerate(values)}
np.savez(sys.argv[2], names=names, kinds=kinds, version=tf.__version__, **raw)
"""
SAVE = """
import sys, numpy as np, tensorflow as tf
with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    for i in range(60):
        for kind in (tf.float32, tf.float16, tf.bfloat16, tf.float64, tf.int32):
            start = tf.cast(np.random.default_rng(i).normal(size=(7, i + 1)) * 9, kind)
            tf.compat.v1.get_variable(f"bert/encoder/layer_{i}/{kind.name}", initializer=start)
    tf.compat.v1.train.get_or_create_global_step()
    session.run(tf.compat.v1.global_variables_initializer())
    tf.compat.v1.train.Saver().save(session, sys.argv[1])
"""


def in_tensorflow(python: Path, program: str, *arguments: Path) -> None:
    """Run a few lines in the other environment."""
    quiet = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [str(python), "-c", program, *map(str, arguments)]
    subprocess.run(command, env=quiet, check=True, capture_output=True)


def compared(python: Path, index: Path, folder: Path) -> tuple[int, int, str]:
    """How many tensors a checkpoint has, how many are equal in type, shape and every bit, and TensorFlow's version."""
    out = folder / "theirs.npz"
    in_tensorflow(python, READ, index.with_suffix(""), out)
    ours, theirs = read_bundle(index), np.load(out)
    equal = 0
    for number, (name, kind) in enumerate(zip(theirs["names"], theirs["kinds"], strict=True)):
        tensor = ours[str(name)].read().contiguous()
        described = f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}"
        raw = tensor.view(-1).view(torch.uint8).numpy() if tensor.numel() else np.empty(0, np.uint8)
        equal += described == kind and np.array_equal(raw, theirs[f"raw{number}"])
    if len(ours) != len(theirs["names"]):
        raise SystemExit(f"{index}: we read {len(ours)} tensors, TensorFlow {len(theirs['names'])}")
    return len(ours), equal, str(theirs["version"])


def checkpoints(python: Path, folder: Path) -> dict[str, Path]:
    """The index of each checkpoint to compare."""
    rng = torch.Generator().manual_seed(0)
    kinds = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
    tensors = {f"layer_{i}/kernel": torch.randn(3 + i, 5, generator=rng).to(kinds[i % 4]) for i in range(80)}
    tensors |= {"global_step": torch.tensor(12345), "whole": torch.arange(7, dtype=torch.int32), "none": torch.empty(0)}
    write = bundle_writer().write_bundle
    found = {
        "by the tests' writer, one shard": write(folder / "one.ckpt", tensors),
        "by the tests' writer, three shards": write(folder / "three.ckpt", tensors, shards=3),
        "by the tests' writer, highest byte first": write(folder / "big.ckpt", tensors, big_endian=True),
        "by TensorFlow": folder / "saved.ckpt.index",
    }
    in_tensorflow(python, SAVE, folder / "saved.ckpt")
    simbert = Path(os.environ.get("HEEDFUL_MODELS", "")) / "simbert-zh-tiny-tf1" / "bert_model.ckpt.index"
    return ({"SimBERT-tiny": simbert} if simbert.is_file() else {}) | found


def main() -> None:
    """Compare all and write what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", type=Path, required=True)
    parser.add_argument("--output", type=Path, default=RESULTS / "tensorflow_parity.json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = [
            [made, *compared(options.python, index, folder)]
            for made, index in checkpoints(options.python, folder).items()
        ]
    write_results(
        options.output,
        "TensorFlow checkpoints",
        "tensors of checkpoints, read here and by tf.train.load_checkpoint: equal in type, shape and every bit",
        [Table(["checkpoint", "tensors", "equal", "TensorFlow"], rows)],
        arguments="--python PYTHON",
    )


if __name__ == "__main__":
    main()
