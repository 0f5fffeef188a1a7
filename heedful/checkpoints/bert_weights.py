"""The weights of a BERT folder: opened with all names understood, and what is unusual about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from heedful.checkpoints.bert_names import BERT_NAMES, LAYERS
from heedful.checkpoints.tensors import open_tensors
from heedful.checkpoints.weights import Source, source
from heedful.errors import HeedfulError
from heedful.models.bert import BertConfig

PRETRAINING_PARTS: Mapping[str, str] = {"encoder.pooler": "pooler", "mlm": "MLM head", "nsp": "NSP head"}


@contextmanager
def open_bert(folder: Path, config: BertConfig) -> Iterator[Source]:
    """Open the weights of a folder for the time of a `with` block, after a check of the names and of their layers."""
    with open_tensors(folder) as tensors:
        found = source(tensors, BERT_NAMES)
        layers = {match[1] for match in map(LAYERS.match, found.spelled) if match}
        if len(layers) != config.num_hidden_layers:
            what = f"config.json asks for {config.num_hidden_layers} layers, the weights hold {len(layers)}"
            raise HeedfulError(what, where=folder, remedy="use the config.json that belongs to these weights")
        yield found


def bert_weight_notes(folder: Path, config: BertConfig) -> list[str]:
    """What is accepted in the weights although it is unusual: absent parts, repetitions, old names, other precision."""
    with open_bert(folder, config) as found:
        absent = [name for part, name in PRETRAINING_PARTS.items() if not found.holds(part)]
        notes = [*found.notes(), *([f"absent: {', '.join(absent)}"] if absent else [])]
        notes += [f"{copy} repeats {of}" for copy, of in BERT_NAMES.copies.items() if copy in found.spelled]
        notes += [f"{name} only counts and is not needed" for name in BERT_NAMES.counters if name in found.spelled]
        old = sum(name.endswith((".gamma", ".beta")) for name in found.tensors)
        notes += [f"old names: {old} tensors of norms are called gamma or beta"] if old else []
        kinds = sorted({found.tensors.dtype(name) for name in found.tensors} & {"F16", "BF16", "F64"})
        notes += [f"stored as {' and '.join(kinds)}, computed in F32"] if kinds else []
    return notes
