"""Our flat batches as `transformers` wants them: padded, with labels of -100 where nothing is predicted."""

from __future__ import annotations

import torch
from torch.nn.utils.rnn import pad_sequence

from heedful.data.source import PretrainingPortion


def padded(portion: PretrainingPortion) -> dict[str, torch.Tensor]:
    """The arguments of BertForPreTraining for a portion."""
    labels = torch.full_like(portion.batch.ids, -100)
    labels[portion.masked] = portion.labels
    columns = {
        "input_ids": (portion.batch.ids, 0),
        "token_type_ids": (portion.batch.segments, 0),
        "attention_mask": (torch.ones_like(labels), 0),
        "labels": (labels, -100),
    }
    block = {
        name: pad_sequence(list(torch.split(flat, list(portion.batch.lengths))), batch_first=True, padding_value=value)
        for name, (flat, value) in columns.items()
    }
    return block if portion.nsp is None else {**block, "next_sentence_label": portion.nsp}
