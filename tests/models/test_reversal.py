"""A little training on reversals, enough to see that all parts work together; benchmarks/reversal.py has the rest."""

from __future__ import annotations

import random

import pytest
import torch
import torch.nn.functional as F

from heedful.data.batching import flat_batch
from heedful.decoding import greedy
from heedful.models.seq2seq import Seq2Seq, Seq2SeqConfig, initialise_seq2seq
from heedful.schema import Bitext

START, END = 2, 3
WORDS = range(4, 9)


def reversals(count: int) -> tuple[list[list[int]], list[list[int]]]:
    rng = random.Random(0)
    said = sorted(([rng.choice(WORDS) for _ in range(rng.randint(2, 3))] for _ in range(count)), key=len, reverse=True)
    return [[START, *words, END] for words in said], [[START, *words[::-1], END] for words in said]


@pytest.mark.parametrize("decoder", ["2", "attention"])
def test_a_few_reversals_are_learned(decoder: str) -> None:
    sources, targets = reversals(16)
    labels = torch.tensor([label for ids in targets for label in ids[1:]])
    bitext = Bitext(flat_batch(sources), flat_batch([ids[:-1] for ids in targets]), labels)
    model = Seq2Seq(
        Seq2SeqConfig(9, 9, share=True, embedding_size=16, hidden_size=32, decoder=decoder, dropout=0.0)  # type: ignore[arg-type]
    ).train()
    initialise_seq2seq(model, 0)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(300):
        optimizer.zero_grad()
        F.cross_entropy(model.logits(model(bitext)), bitext.labels).backward()
        optimizer.step()
    with torch.inference_mode():
        model.eval()
        state = model.start(model.encode(bitext.source), 1, 6)
        found = greedy(model.step, state, [6] * len(sources), START, END)
    assert [[START, *one.ids, END] for one in found] == targets and all(one.finished for one in found)
