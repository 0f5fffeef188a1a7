"""The LSTM language model as a family: only we have it, so names on disk are ours."""

from __future__ import annotations

from heedful.checkpoints.config_json import ConfigFormat
from heedful.checkpoints.family import Family
from heedful.models.lstm_lm import LstmConfig, LstmForPretraining, initialise, sized

LSTM = Family(
    config=ConfigFormat(LstmConfig, "LSTM"),
    initialise=initialise,
    aliases=("lstm",),
    sized=sized,
    pretraining=LstmForPretraining,
    objectives=("bptt",),
    language_model=LstmForPretraining,
    per_piece=("encoder.embeddings.token.weight",),
)
