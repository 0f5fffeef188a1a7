"""Hugging Face's names for the variables of Google's checkpoints.

A table lists modules and single tensors: TensorFlow's on the left, Hugging Face's on the right; `{}` stands for the
number of a layer or a group. A kernel is stored the other way round (in, out) and has to be transposed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

LEAVES: Mapping[str, str] = {"kernel": "weight", "bias": "bias", "gamma": "weight", "beta": "bias"}
_NUMBER = re.compile(r"(?<=layer_)\d+|(?<=group_)\d+")
# What an optimiser keeps beside the variables: two moments for each of them, and counters.
_OF_OPTIMISER = re.compile(
    r".*/(adam_m|adam_v|lamb_m|lamb_v|Adam(_1)?|\w*Optimizer(_1)?)|(.*/)?(global_step|beta[12]_power)"
)


@dataclass(frozen=True)
class TensorflowNames:
    """The names of one family of models."""

    modules: Mapping[str, str]
    tensors: Mapping[str, str]

    def spelled(self, variable: str) -> tuple[str, bool]:
        """Hugging Face's name of a variable, and whether it has to be transposed; unknown ones only get dots."""
        pattern, numbers = _NUMBER.sub("{}", variable), _NUMBER.findall(variable)
        module, _, leaf = pattern.rpartition("/")
        if pattern in self.tensors:
            return self.tensors[pattern].format(*numbers), False
        if module in self.modules and leaf in LEAVES:
            return f"{self.modules[module].format(*numbers)}.{LEAVES[leaf]}", leaf == "kernel"
        return variable.replace("/", "."), False


def of_optimiser(variable: str) -> bool:
    """Whether a variable is of the optimiser and not of the model."""
    return _OF_OPTIMISER.fullmatch(variable) is not None


def names_for(variables: Collection[str]) -> TensorflowNames:
    """The table that a checkpoint with these variables needs."""
    if any("/inner_group_" in variable for variable in variables):
        return ALBERT
    return FACTORISED if f"{_MAPPING}/kernel" in variables else BERT


_MAPPING = "bert/encoder/embedding_hidden_mapping_in"
_LAYER, _HF_LAYER = "bert/encoder/layer_{}", "bert.encoder.layer.{}"
_GROUP = "bert/encoder/transformer/group_{}/inner_group_{}"
_HF_GROUP = "albert.encoder.albert_layer_groups.{}.albert_layers.{}"
_HF_OWN_GROUP = "albert.encoder.albert_layer_groups.{}.albert_layers.0"  # a layer of its own: a group of one

# Google's BERT, and all that were trained with its program: BERT-wwm, RoBERTa-wwm-ext, …
BERT = TensorflowNames(
    modules={
        "bert/embeddings/LayerNorm": "bert.embeddings.LayerNorm",
        f"{_LAYER}/attention/self/query": f"{_HF_LAYER}.attention.self.query",
        f"{_LAYER}/attention/self/key": f"{_HF_LAYER}.attention.self.key",
        f"{_LAYER}/attention/self/value": f"{_HF_LAYER}.attention.self.value",
        f"{_LAYER}/attention/output/dense": f"{_HF_LAYER}.attention.output.dense",
        f"{_LAYER}/attention/output/LayerNorm": f"{_HF_LAYER}.attention.output.LayerNorm",
        f"{_LAYER}/intermediate/dense": f"{_HF_LAYER}.intermediate.dense",
        f"{_LAYER}/output/dense": f"{_HF_LAYER}.output.dense",
        f"{_LAYER}/output/LayerNorm": f"{_HF_LAYER}.output.LayerNorm",
        "bert/pooler/dense": "bert.pooler.dense",
        "cls/predictions/transform/dense": "cls.predictions.transform.dense",
        "cls/predictions/transform/LayerNorm": "cls.predictions.transform.LayerNorm",
    },
    tensors={
        "bert/embeddings/word_embeddings": "bert.embeddings.word_embeddings.weight",
        "bert/embeddings/token_type_embeddings": "bert.embeddings.token_type_embeddings.weight",
        "bert/embeddings/position_embeddings": "bert.embeddings.position_embeddings.weight",
        "cls/predictions/output_bias": "cls.predictions.bias",
        "cls/seq_relationship/output_weights": "cls.seq_relationship.weight",
        "cls/seq_relationship/output_bias": "cls.seq_relationship.bias",
        # of run_classifier.py and run_squad.py
        "output_weights": "classifier.weight",
        "output_bias": "classifier.bias",
        "cls/squad/output_weights": "qa_outputs.weight",
        "cls/squad/output_bias": "qa_outputs.bias",
    },
)

_ALBERT_MODULES = {
    "bert/embeddings/LayerNorm": "albert.embeddings.LayerNorm",
    _MAPPING: "albert.encoder.embedding_hidden_mapping_in",
    "bert/pooler/dense": "albert.pooler",
    "cls/predictions/transform/dense": "predictions.dense",
    "cls/predictions/transform/LayerNorm": "predictions.LayerNorm",
}
_ALBERT_TENSORS = {
    "bert/embeddings/word_embeddings": "albert.embeddings.word_embeddings.weight",
    "bert/embeddings/token_type_embeddings": "albert.embeddings.token_type_embeddings.weight",
    "bert/embeddings/position_embeddings": "albert.embeddings.position_embeddings.weight",
    "cls/predictions/output_bias": "predictions.bias",
    "cls/seq_relationship/output_weights": "sop_classifier.classifier.weight",
    "cls/seq_relationship/output_bias": "sop_classifier.classifier.bias",
    "output_weights": "classifier.weight",
    "output_bias": "classifier.bias",
    "cls/squad/output_weights": "qa_outputs.weight",
    "cls/squad/output_bias": "qa_outputs.bias",
}

# BERT's layers after a narrow embedding (SimBERT-tiny): in Hugging Face an ALBERT with as many groups as layers.
FACTORISED = TensorflowNames(
    modules={
        **_ALBERT_MODULES,
        f"{_LAYER}/attention/self/query": f"{_HF_OWN_GROUP}.attention.query",
        f"{_LAYER}/attention/self/key": f"{_HF_OWN_GROUP}.attention.key",
        f"{_LAYER}/attention/self/value": f"{_HF_OWN_GROUP}.attention.value",
        f"{_LAYER}/attention/output/dense": f"{_HF_OWN_GROUP}.attention.dense",
        f"{_LAYER}/attention/output/LayerNorm": f"{_HF_OWN_GROUP}.attention.LayerNorm",
        f"{_LAYER}/intermediate/dense": f"{_HF_OWN_GROUP}.ffn",
        f"{_LAYER}/output/dense": f"{_HF_OWN_GROUP}.ffn_output",
        f"{_LAYER}/output/LayerNorm": f"{_HF_OWN_GROUP}.full_layer_layer_norm",
    },
    tensors=_ALBERT_TENSORS,
)

# Google's ALBERT: one group of layers, used again and again.
ALBERT = TensorflowNames(
    modules={
        **_ALBERT_MODULES,
        f"{_GROUP}/attention_1/self/query": f"{_HF_GROUP}.attention.query",
        f"{_GROUP}/attention_1/self/key": f"{_HF_GROUP}.attention.key",
        f"{_GROUP}/attention_1/self/value": f"{_HF_GROUP}.attention.value",
        f"{_GROUP}/attention_1/output/dense": f"{_HF_GROUP}.attention.dense",
        f"{_GROUP}/LayerNorm": f"{_HF_GROUP}.attention.LayerNorm",
        f"{_GROUP}/ffn_1/intermediate/dense": f"{_HF_GROUP}.ffn",
        f"{_GROUP}/ffn_1/intermediate/output/dense": f"{_HF_GROUP}.ffn_output",
        f"{_GROUP}/LayerNorm_1": f"{_HF_GROUP}.full_layer_layer_norm",
    },
    tensors=_ALBERT_TENSORS,
)
