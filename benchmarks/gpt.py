"""Speed of GPT beside transformers' GPT2LMHeadModel: training, and 32 prompts gone on with by sampling.

    python benchmarks/gpt.py
    python benchmarks/gpt.py --layers 1 --width 32 --vocabularies 500 --rounds 1 --steps 2 --tokens 8 -o tiny.json

Both have 4 layers of width 256, the same random batches, AdamW without weight decay and the same precision. Rounds
alternate; the figure is the median over rounds of the ratio. Run it on an idle machine.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from results_file import RESULTS, Table, write_results
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel

from heedful.data.batching import flat_batch
from heedful.decoding import Sampling, sample
from heedful.models.gpt import GptConfig, GptForPretraining, initialise
from heedful.nn.packed_linear import can_pack

PROMPT = 16


class Pair:
    """The same shape twice: ours and theirs."""

    def __init__(self, a: argparse.Namespace, vocabulary: int) -> None:
        shape = {"n_embd": a.width, "n_layer": a.layers, "n_head": max(1, a.width // 64), "vocab_size": vocabulary}
        config = GptConfig(**shape)
        self.ours = GptForPretraining(config)
        initialise(self.ours, config, seed=0)
        self.theirs = GPT2LMHeadModel(GPT2Config(**shape))
        self.a, self.vocabulary = a, vocabulary
        self.rng = torch.Generator().manual_seed(0)

    def batch(self, count: int, length: int) -> torch.Tensor:
        """Random tokens, (count, length)."""
        return torch.randint(self.vocabulary, (count, length), generator=self.rng)

    def train_ours(self, batches: list[torch.Tensor]) -> None:
        """Steps of our model."""
        self._train(self.ours, batches, self._our_loss)

    def train_theirs(self, batches: list[torch.Tensor]) -> None:
        """Steps of theirs on the same batches."""
        self._train(self.theirs, batches, lambda ids: self.theirs(ids, labels=ids).loss)

    def _our_loss(self, ids: torch.Tensor) -> torch.Tensor:
        batch = flat_batch(ids[:, :-1].tolist())
        return self.ours.loss(self.ours.encoder(batch).last, ids[:, 1:].flatten()) / ids[:, 1:].numel()

    def _train(self, model: nn.Module, batches: list[torch.Tensor], loss_of: Callable[[torch.Tensor], Any]) -> None:
        optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.0, fused=True)
        model.train()
        for ids in batches:
            with torch.autocast("cpu", torch.bfloat16, enabled=self.a.precision == "bfloat16"):
                loss = loss_of(ids)
            loss.backward()
            optimiser.step()
            optimiser.zero_grad()

    @torch.inference_mode()
    def write_ours(self, prompts: torch.Tensor) -> None:
        """Go on with prompts by our search."""
        state = self.ours.start(flat_batch(prompts[:, :-1].tolist()), 1, self.a.tokens)
        longest, how = [self.a.tokens] * len(prompts), Sampling(top_k=50)
        rng = torch.Generator().manual_seed(0)
        sample(self.ours.step, state, longest, prompts[:, -1], self.vocabulary, how, rng)

    @torch.inference_mode()
    def write_theirs(self, prompts: torch.Tensor) -> None:
        """Go on with them by `generate`."""
        options = {"do_sample": True, "top_k": 50, "max_new_tokens": self.a.tokens, "min_new_tokens": self.a.tokens}
        self.theirs.generate(prompts, attention_mask=torch.ones_like(prompts), pad_token_id=0, **options)


def race(rounds: int, ours: Callable[[], None], theirs: Callable[[], None]) -> tuple[float, float, float]:
    """Seconds of both in the median, and the median of their ratio; the first round only warms up."""
    found: list[tuple[float, float]] = []
    for number in range(rounds + 1):
        times = [_seconds(one) for one in (ours, theirs)]
        if number:
            found.append((times[0], times[1]))
    first, second = (statistics.median(column) for column in zip(*found, strict=True))
    return first, second, statistics.median(b / a for a, b in found)


def _seconds(call: Callable[[], None]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def measured(a: argparse.Namespace, vocabulary: int) -> tuple[list[str], list[str]]:
    """A row of the table of training, and one of that of generation."""
    pair = Pair(a, vocabulary)
    batches = [pair.batch(a.batch_size, a.length) for _ in range(a.steps)]
    tokens = a.steps * a.batch_size * (a.length - 1)
    ours, theirs, ratio = race(a.rounds, lambda: pair.train_ours(batches), lambda: pair.train_theirs(batches))
    training = [f"{vocabulary:,}", f"{tokens / ours:,.0f}", f"{tokens / theirs:,.0f}", f"{ratio:.2f}"]
    prompts, written = pair.batch(a.prompts, PROMPT), a.prompts * a.tokens
    pair.ours.eval()
    pair.theirs.eval()
    if can_pack():
        pair.ours.pack()
    ours, theirs, ratio = race(a.rounds, lambda: pair.write_ours(prompts), lambda: pair.write_theirs(prompts))
    return training, [f"{vocabulary:,}", f"{written / ours:,.0f}", f"{written / theirs:,.0f}", f"{ratio:.2f}"]


def main() -> None:
    """Measure both and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--vocabularies", type=int, nargs="+", default=[8000, 30522])
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--steps", type=int, default=5, help="a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--prompts", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=64, help="new ones of each prompt")
    parser.add_argument("--precision", choices=["float32", "bfloat16"], default="float32")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "gpt.json")
    a = parser.parse_args()
    rows = [measured(a, vocabulary) for vocabulary in a.vocabularies]
    columns = ["vocabulary", "heedful, tokens/s", "transformers, tokens/s", "ratio"]
    tables = [
        Table([f"{what}: {columns[0]}", *columns[1:]], [row[i] for row in rows])
        for i, what in enumerate(("training", "generation"))
    ]
    write_results(
        a.output,
        title="GPT beside transformers",
        what=f"{a.layers} layers, width {a.width}, {a.precision}, the same batches; {a.prompts} prompts by sampling",
        tables=tables,
    )


if __name__ == "__main__":
    main()
