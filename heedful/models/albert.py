"""ALBERT: Lan et al., "ALBERT: A Lite BERT for Self-supervised Learning of Language Representations", 2020.

BERT with narrow embeddings and few layers that are applied again and again. The layers form groups, and each group
serves a run of the model's layers; with as many groups as layers each has weights of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from heedful.models.bert import BertConfig
from heedful.models.bert_layers import BertLayer, BertShape, BertStack
from heedful.nn.attention import Places
from heedful.schema import Batch


@dataclass(frozen=True)
class AlbertConfig(BertConfig):
    """The shape of an ALBERT; the defaults are the largest one, as in Hugging Face."""

    model_type: ClassVar[str] = "albert"

    vocab_size: int = 30000
    embedding_size: int = 128
    hidden_size: int = 4096
    num_hidden_groups: int = 1
    num_attention_heads: int = 64
    intermediate_size: int = 16384
    inner_group_num: int = 1
    hidden_act: str = "gelu_new"
    hidden_dropout_prob: float = 0.0
    attention_probs_dropout_prob: float = 0.0

    @property
    def embedding_width(self) -> int:
        """Much less than D."""
        return self.embedding_size

    @property
    def projects(self) -> bool:
        """Always, even where the widths are equal."""
        return True

    @property
    def stored_layers(self) -> int:
        """One a group."""
        return self.num_hidden_groups

    def group_of(self, layer: int) -> int:
        """The group that serves layer 0 … L - 1."""
        return int(layer / (self.num_hidden_layers / self.num_hidden_groups))

    def build(self) -> BertStack:
        """With a pooler."""
        return Albert(self)


class AlbertGroup(nn.ModuleList):
    """Layers that are applied one after the other and count as one."""

    def __init__(self, config: AlbertConfig) -> None:
        super().__init__(BertLayer(config) for _ in range(config.inner_group_num))

    def forward(
        self, x: Tensor, batch: Batch, rows: Tensor | None = None, places: Sequence[Places] | None = None
    ) -> Tensor:
        """As `BertLayer.forward`."""
        *below, last = self
        for layer in below:
            x = layer(x, batch, None, places)
        return last(x, batch, rows, places)  # type: ignore[no-any-return]

    def weights(self, x: Tensor, batch: Batch, places: Sequence[Places] | None = None) -> tuple[Tensor, ...]:
        """The attention maps of its last layer."""
        *below, last = self
        for layer in below:
            x = layer(x, batch, None, places)
        return last.weights(x, batch, places)  # type: ignore[no-any-return, operator]

    def pack(self) -> None:
        """Every layer."""
        for layer in self:
            layer.pack()  # type: ignore[operator]


class Albert(BertStack):
    """The encoder."""

    def __init__(self, config: AlbertConfig, pooler: bool = True) -> None:
        self.groups = [config.group_of(layer) for layer in range(config.num_hidden_layers)]  # of each layer
        super().__init__(config, pooler)

    def layer_of(self, config: BertShape) -> nn.Module:
        """A group."""
        assert isinstance(config, AlbertConfig)
        return AlbertGroup(config)

    def stack(self) -> Sequence[nn.Module]:
        """Each group as often as it is used."""
        return [self.layers[group] for group in self.groups]

    def depth(self, parameter: str) -> int:
        """A group lies as high as the first layer it serves."""
        depth = super().depth(parameter)
        return self.groups.index(depth - 1) + 1 if parameter.startswith("layers.") else depth
