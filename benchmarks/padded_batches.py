"""Our flat batches as `transformers` wants them: padded, with labels of -100 where nothing is predicted."""

from __future__ import annotations

import torch
from torch.nn.utils.rnn import pad_sequence

from heedful.data.corpus.source import PretrainingMicroBatch


def padded(micro_batch: PretrainingMicroBatch) -> dict[str, torch.Tensor]:
    """The arguments of BertForPreTraining for a micro-batch."""
    labels = torch.full_like(micro_batch.batch.ids, -100)
    labels[micro_batch.masked] = micro_batch.labels
    columns = {
        "input_ids": (micro_batch.batch.ids, 0),
        "token_type_ids": (micro_batch.batch.segments, 0),
        "attention_mask": (torch.ones_like(labels), 0),
        "labels": (labels, -100),
    }
    block = {
        name: pad_sequence(
            list(torch.split(flat, list(micro_batch.batch.lengths))), batch_first=True, padding_value=value
        )
        for name, (flat, value) in columns.items()
    }
    return block if micro_batch.nsp is None else {**block, "next_sentence_label": micro_batch.nsp}
