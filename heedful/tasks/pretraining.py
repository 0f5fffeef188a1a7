"""Masked language modelling: predict the masked tokens (MLM) and, as BERT, whether B follows A. Loss = MLM + NSP."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heedful.data.corpus.examples import Examples, split_examples
from heedful.data.corpus.source import PretrainingMicroBatch, as_micro_batch
from heedful.models.encoder import Encoder
from heedful.nn.cross_entropy import summed_cross_entropy
from heedful.text.tokenizer import Tokenizer


class MaskedModel(Protocol):
    """What this needs of a model, which is an `nn.Module`; the second head only where pairs are judged."""

    @property
    def encoder(self) -> Encoder: ...

    @property
    def device(self) -> torch.device: ...

    def mlm_logits(self, states: Tensor) -> Tensor:
        """(M, D) -> (M, V)."""
        ...

    def nsp_logits(self, summary: Tensor) -> Tensor:
        """(B, D) -> (B, 2)."""
        ...


@dataclass(frozen=True)
class Guesses:
    """What the heads say: logits over the vocabulary for M masked tokens, and over is-next / is-not for B pairs."""

    mlm: Tensor  # (M, V)
    nsp: Tensor | None  # (B, 2)


def guess(model: MaskedModel, micro_batch: PretrainingMicroBatch) -> Guesses:
    """Run the encoder and both heads, computing the last layer and the logits only where a head looks."""
    rows = micro_batch.masked
    if micro_batch.nsp is None:
        return Guesses(model.mlm_logits(model.encoder.states_at(micro_batch.batch, rows)), None)
    summary = model.encoder.summary_rows(micro_batch.batch.lengths).to(rows.device)
    states = model.encoder.states_at(micro_batch.batch, torch.cat([rows, summary]))
    return Guesses(model.mlm_logits(states[: len(rows)]), model.nsp_logits(states[len(rows) :]))


def pretraining_losses(model: nn.Module, micro_batch: PretrainingMicroBatch) -> dict[str, Tensor]:
    """The sums of the cross-entropies of both objectives."""
    masked = cast(MaskedModel, model)
    guesses = guess(masked, micro_batch)
    losses = {"mlm": summed_cross_entropy(guesses.mlm, micro_batch.labels)}
    if guesses.nsp is not None and micro_batch.nsp is not None:
        losses["nsp"] = summed_cross_entropy(guesses.nsp, micro_batch.nsp)
    return losses


def filled_in(
    model: nn.Module, examples: Examples, tokenizer: Tokenizer, around: int = 12, top: int = 3
) -> list[dict[str, Any]]:
    """For each example one masked token in its surroundings: what stood there, and the likeliest guesses."""
    masked_model = cast(MaskedModel, model)
    shown = []
    for example in split_examples(examples):
        hidden = example.masked[example.ids[example.masked] == tokenizer.mask_id]
        if not len(hidden):
            continue
        place = int(hidden[len(hidden) // 2])
        micro_batch = as_micro_batch(example).to(str(masked_model.device))
        rows = torch.tensor([place], device=masked_model.device)
        states = masked_model.encoder.states_at(micro_batch.batch, rows)
        pieces = tokenizer.vocabulary
        # A model may have more rows than there are pieces.
        values, ids = masked_model.mlm_logits(states)[0].softmax(-1)[: len(pieces)].topk(top)
        left, right = example.ids[max(1, place - around) : place], example.ids[place + 1 : place + around + 1]
        shown.append(
            {
                "text": " ".join([*(pieces[i] for i in left), "[___]", *(pieces[i] for i in right)]).replace(" ##", ""),
                "truth": pieces[example.originals[place]],
                "guesses": [
                    [pieces[i], round(value, 4)] for i, value in zip(ids.tolist(), values.tolist(), strict=True)
                ],
            }
        )
    return shown


def evaluate(model: nn.Module, micro_batches: Iterable[PretrainingMicroBatch]) -> dict[str, float]:
    """Mean loss and share of right guesses of both objectives."""
    masked = cast(MaskedModel, model)
    sums: dict[str, float] = {}
    counts: dict[str, int] = {}
    for micro_batch in micro_batches:
        micro_batch = micro_batch.to(str(masked.device))
        guesses = guess(masked, micro_batch)
        answers = {"mlm": (guesses.mlm, micro_batch.labels), "nsp": (guesses.nsp, micro_batch.nsp)}
        for name, (logits, truth) in answers.items():
            if logits is None or truth is None:
                continue
            loss = float(F.cross_entropy(logits, truth, reduction="sum"))
            right = int((logits.argmax(-1) == truth).sum())
            for key, value in ((f"{name}_loss", loss), (f"{name}_accuracy", right)):
                sums[key] = sums.get(key, 0.0) + value
                counts[key] = counts.get(key, 0) + len(truth)
    means = {key: total / counts[key] for key, total in sums.items()}
    return {**means, "mlm_perplexity": math.exp(means["mlm_loss"])}
