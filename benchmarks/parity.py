"""BERT here against BERT in transformers, on real weights: every layer, map and logit, and a few known answers.

    HEEDFUL_DATA=… HEEDFUL_MODELS=… python benchmarks/parity.py

Allowed is a difference of 1e-5 + 1e-5·|value| in fp32. Fails if anything is further away.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from materials import m3e, minilm, paragraphs
from results_file import RESULTS, Table, write_results
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from heedful.checkpoints.encoder_folder import load_encoder, load_for_pretraining, save_model
from heedful.checkpoints.folder import read_folder
from heedful.data.batching import flat_batch
from heedful.inference.embedder import Embedder
from heedful.inference.load import load_embedder
from heedful.models.bert import BertForPretraining
from heedful.models.encoder import Encoder
from heedful.schema import Batch

LENGTHS = (512, 1, 2, 511, 256, 256, 100, 37, 37, 37, 9, 3, 1)
SENTENCES = ["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."]
PUBLISHED = (0.6660, 0.1046, 0.1411)


class Comparison:
    """The largest difference between what should be equal, over all that was compared under one name."""

    def __init__(self, model: str, what: str) -> None:
        self.model, self.what = model, what
        self.values = 0
        self.largest = self.of_allowed = 0.0

    def add(self, ours: Tensor, theirs: Tensor) -> None:
        """Compare two tensors of the same shape."""
        assert ours.shape == theirs.shape
        difference = (ours - theirs).abs()
        self.values += ours.numel()
        self.largest = max(self.largest, difference.max().item())
        self.of_allowed = max(self.of_allowed, (difference / (1e-5 + 1e-5 * theirs.abs())).max().item())

    def row(self) -> list[Any]:
        """The result as a row of the table."""
        return [self.model, self.what, self.values, f"{self.largest:.1e}", f"{self.of_allowed:.2f}"]


def random_batch(vocab_size: int, seed: int) -> Batch:
    """Sequences of mixed lengths, the first part of each in segment 0 and the rest in segment 1."""
    rng = torch.Generator().manual_seed(seed)
    ids = [torch.randint(vocab_size, (n,), generator=rng).tolist() for n in LENGTHS]
    return flat_batch(ids, [[int(position > n // 3) for position in range(n)] for n in LENGTHS])


def loaded_there(kind: str, folder: Path) -> tuple[Any, dict[str, Any]]:
    """A folder as transformers' class `kind` loads it, in fp32, and what it says about the keys."""
    options: dict[str, Any] = {"dtype": torch.float32, "attn_implementation": "eager", "output_loading_info": True}
    model, info = getattr(transformers, kind).from_pretrained(folder, **options)
    return model.eval(), info


def expected(model: torch.nn.Module, batch: Batch) -> Any:
    """What transformers makes of the batch, padded as it wants it."""
    ids, segments = (_padded(flat, batch.lengths) for flat in (batch.ids, batch.segments))
    mask = (torch.arange(ids.shape[1]) < torch.tensor(batch.lengths)[:, None]).long()
    everything = {"output_hidden_states": True, "output_attentions": True}
    return model(input_ids=ids, token_type_ids=segments, attention_mask=mask, **everything)


def _padded(flat: Tensor, lengths: tuple[int, ...]) -> Tensor:
    return pad_sequence(list(torch.split(flat, list(lengths))), batch_first=True)


def flat(padded: Tensor) -> Tensor:
    """(B, T, …) without its padding, (N, …)."""
    return torch.cat([rows[:n] for rows, n in zip(padded, LENGTHS, strict=True)])


def firsts(states: Tensor) -> Tensor:
    """The states of the first tokens."""
    return states[[0, *accumulate(LENGTHS[:-1])]]


def compare_encoder(name: str, ours: Encoder, theirs: Any, batch: Batch) -> list[Comparison]:
    """Every hidden layer, every attention map, and the pooler."""
    layers = ours.layer_count
    wanted, found = expected(theirs, batch), ours(batch, hidden=range(layers + 1), attention=range(1, layers + 1))
    hidden = Comparison(name, f"hidden states of layers 0 … {layers}")
    maps = Comparison(name, f"attention maps of layers 1 … {layers}")
    pooler = Comparison(name, "pooler")
    for number, states in found.hidden.items():
        hidden.add(states, flat(wanted.hidden_states[number]))
    for number, tensors in found.attention.items():
        for one, padded, n in zip(tensors, wanted.attentions[number - 1], LENGTHS, strict=True):
            maps.add(one, padded[:, :n, :n])
    pooler.add(ours.pool(firsts(found.last)), wanted.pooler_output)
    return [hidden, maps, pooler]


def compare_heads(name: str, ours: torch.nn.Module, theirs: Any, batch: Batch) -> list[Comparison]:
    """The logits of both pretraining heads."""
    assert isinstance(ours, BertForPretraining)
    wanted, last = expected(theirs, batch), ours.encoder(batch).last
    mlm, nsp = Comparison(name, "MLM logits"), Comparison(name, "NSP logits")
    mlm.add(ours.mlm_logits(last), flat(wanted.prediction_logits))
    nsp.add(ours.nsp_logits(firsts(last)), wanted.seq_relationship_logits)
    return [mlm, nsp]


def compare_folder(name: str, folder: Path) -> list[Comparison]:
    """The encoder of a folder as it is for training, and as `heedful.load` makes it for speed."""
    theirs, _ = loaded_there("BertModel", folder)
    batch = random_batch(theirs.config.vocab_size, seed=0)
    plain = compare_encoder(name, load_encoder(read_folder(folder)), theirs, batch)
    fast = compare_encoder(f"{name}, as loaded for inference", load_embedder(folder, "cpu").encoder, theirs, batch)
    return plain + fast


def compare_round_trip(scratch: Path) -> tuple[list[Comparison], list[str]]:
    """MiniLM with heads: saved there and loaded here, saved here and loaded there."""
    torch.manual_seed(0)
    theirs, _ = loaded_there("BertForPreTraining", minilm())
    theirs.save_pretrained(scratch / "theirs")
    ours = load_for_pretraining(read_folder(scratch / "theirs"), seed=0)
    save_model(ours, scratch / "ours", read_folder(minilm()).tokenizer)
    back, info = loaded_there("BertForPreTraining", scratch / "ours")
    batch = random_batch(theirs.config.vocab_size, seed=1)
    comparisons = compare_heads("MiniLM + heads saved by transformers", ours, theirs, batch)
    comparisons += compare_heads("MiniLM + heads written here, loaded there", ours, back, batch)
    wrong = {kind: sorted(info[kind]) for kind in ("missing_keys", "unexpected_keys", "mismatched_keys")}
    if any(wrong.values()):
        sys.exit(f"the folder written here does not fit transformers: {wrong}")
    return comparisons, ["A folder written here loads in transformers with no missing and no unexpected key."]


def any_batch(kind: str, model: Embedder, texts: list[str]) -> list[list[str]]:
    """The largest difference between a text alone, in reverse order, and among all texts in the worker pool."""
    rows = []
    requests: list[tuple[str, dict[str, Any], float]] = [
        ("unit vectors", {"normalize": True}, 1e-6),
        ("raw token states", {"unit": "token"}, 2e-5),
    ]
    for what, options, allowed in requests:
        together = model.embed(texts, max_length=512, **options)
        alone = [model.embed([text], max_length=512, **options)[0] for text in texts]
        backwards = list(model.embed(texts[::-1], max_length=512, **options))[::-1]
        pairs = [(one, other) for others in (alone, backwards) for one, other in zip(together, others, strict=True)]
        largest = max(float(np.abs(one - other).max()) for one, other in pairs)
        if largest > allowed:
            sys.exit(f"{what} of the same text differ by {largest:.1e} between batches")
        rows.append([f"{what} of {len(texts)} texts, {kind}", f"{largest:.1e}", f"{allowed:.0e}"])
    return rows


def known_answers(english: Embedder) -> list[list[str]]:
    """Cosines that are published, and one that common sense knows."""
    cosines = english.similarity(SENTENCES)
    found = (cosines[0, 1], cosines[0, 2], cosines[1, 2])
    names = ("weather / sunny", "weather / stadium", "sunny / stadium")
    rows = [[f"MiniLM: {n}", f"{f:.4f}", f"{p:.4f}"] for n, f, p in zip(names, found, PUBLISHED, strict=True)]
    china = load_embedder(m3e(), "cpu").similarity(["中国", "美国", "苹果"])
    if any(row[1] != row[2] for row in rows) or china[0, 1] <= china[0, 2]:
        sys.exit(f"not the known answers: {rows}, {china}")
    rows.append(["m3e-small-zh: 中国 / 美国", f"{china[0, 1]:.4f}", "more than the next"])
    return [*rows, ["m3e-small-zh: 中国 / 苹果", f"{china[0, 2]:.4f}", "less"]]


def main() -> None:
    """Compare everything, write the results, and fail if something is too far away."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "parity.json")
    parser.add_argument("--texts", type=int, default=300, help="texts that are compared alone and in batches")
    arguments = parser.parse_args()
    english = load_embedder(minilm(), "cpu")
    with torch.inference_mode(), tempfile.TemporaryDirectory() as scratch:
        comparisons = compare_folder("all-MiniLM-L6-v2", minilm()) + compare_folder("m3e-small-zh", m3e())
        more, remarks = compare_round_trip(Path(scratch))
    comparisons += more
    texts = paragraphs(arguments.texts, seed=0)
    batches = any_batch("as loaded for inference", english, texts)
    plain = load_embedder(minilm(), "cpu")
    plain.encoder = load_encoder(plain.folder)
    batches += any_batch("plain encoder", plain, texts)
    write_results(
        arguments.output,
        "Equality with transformers",
        f"BERT here against transformers {transformers.__version__} in fp32, for a batch of {len(LENGTHS)} sequences "
        "of 1 to 512 random tokens in two segments. Allowed is a difference of 1e-5 + 1e-5·|value|; the last column is "
        "the largest difference as a share of what is allowed for that value.",
        [
            Table(["model", "what", "values", "largest difference", "of the allowed"], [c.row() for c in comparisons]),
            Table(["cosine", "here", "should be"], known_answers(english)),
            Table(["the same text alone and in any batch", "largest difference", "allowed"], batches),
        ],
        remarks,
    )
    if any(c.of_allowed > 1 for c in comparisons):
        sys.exit("not equal")


if __name__ == "__main__":
    main()
