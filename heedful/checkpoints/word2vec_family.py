"""word2vec as a family: a folder with a vector for each word of its tokenizer."""

from __future__ import annotations

from heedful.checkpoints.config_json import ConfigFormat
from heedful.checkpoints.family import Family
from heedful.checkpoints.names import own_names
from heedful.models.word2vec import Word2VecConfig, Word2VecForPretraining, initialise, sized

WORD2VEC = Family(
    config=ConfigFormat(Word2VecConfig, "word2vec"),
    initialise=initialise,
    names=own_names("output"),
    sized=sized,
    pretraining=Word2VecForPretraining,
    objectives=("word2vec",),
    parts={"output": "output vectors"},
    per_piece=("encoder.embeddings.weight", "output.weight"),
)
