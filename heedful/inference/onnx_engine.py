"""Exported models answered by ONNX Runtime: an encoder and a head that look like ours and compute there."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from heedful.errors import HeedfulError
from heedful.export.onnx_file import optional_module
from heedful.export.padded import CRF, INPUTS, LOGITS, STATES, WORDS
from heedful.models.encoder import Encoder, EncoderConfig, check_lengths
from heedful.nn.crf import Crf
from heedful.schema import Batch, Encoded, Selection


class Session:
    """An ONNX file that takes flat batches: they are padded on the way in."""

    def __init__(self, path: Path) -> None:
        onnxruntime = optional_module("onnxruntime")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # there is a worker for each core
        try:
            self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # the library has an exception of its own for each thing that may be wrong
            what = f"ONNX Runtime cannot load the file: {str(error).splitlines()[0]}"
            raise HeedfulError(what, where=path, remedy="export the model again") from error
        self._path = path
        self._inputs = {one.name for one in self._session.get_inputs()}
        if unknown := self._inputs - {*INPUTS, WORDS}:
            what = f"the model asks for {', '.join(sorted(unknown))}, of which nothing is known here"
            raise HeedfulError(what, where=path, remedy="export the model by `heedful export`")
        self.outputs = [one.name for one in self._session.get_outputs()]

    def __call__(self, batch: Batch, output: str, rows: Tensor | None = None) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """An output for the sequences of a batch, and which of the padded cells hold a token, (B, T).

        `rows` (R,) are the flat places of the words, for a model that reads words; None takes each token for one.
        """
        if output not in self.outputs:
            what = f"the model has no output {output}; its outputs are {', '.join(self.outputs)}"
            raise HeedfulError(what, where=self._path, remedy="export the model again, by `heedful export`")
        lengths = np.array(batch.lengths)
        real = np.arange(lengths.max(initial=1))[None, :] < lengths[:, None]
        given = {"attention_mask": real.astype(np.int64)}
        words = torch.ones_like(batch.ids) if rows is None else torch.zeros_like(batch.ids).index_fill(0, rows, 1)
        for name, flat in (("input_ids", batch.ids), ("token_type_ids", batch.segments), (WORDS, words)):
            given[name] = np.zeros(real.shape, np.int64)
            given[name][real] = flat.numpy()
        return self._run(given, output), real

    def constant(self, output: str) -> NDArray[Any]:
        """An output that is the same for all inputs."""
        return self._run(dict.fromkeys(self._inputs, np.ones((1, 1), np.int64)), output)

    def _run(self, given: Mapping[str, NDArray[np.int64]], output: str) -> NDArray[Any]:
        try:
            (said,) = self._session.run([output], {name: x for name, x in given.items() if name in self._inputs})
        except Exception as error:  # as above
            what = f"ONNX Runtime cannot compute the model: {str(error).splitlines()[0]}"
            raise HeedfulError(what, where=self._path, remedy="export the model again") from error
        return said  # type: ignore[no-any-return]


class OnnxEncoder(Encoder):
    """The last layer's states, by ONNX Runtime."""

    has_attention = False

    def __init__(self, config: EncoderConfig, session: Session) -> None:
        super().__init__()
        self.config, self.session = config, session

    def forward(
        self,
        batch: Batch,
        hidden: Collection[int] = (-1,),
        attention: Collection[int] = (),
        memory: tuple[Tensor, ...] | None = None,
    ) -> Encoded:
        """The states of the last layer; an exported model has no others."""
        wanted, _ = self.asked_layers(hidden, attention)
        if wanted - {self.layer_count}:
            what = "an exported model gives its last layer only"
            raise HeedfulError(what, remedy="ask for layer -1, or use the folder it was exported from")
        check_lengths(batch, self.max_length)
        states, real = self.session(batch, STATES)
        return Encoded({self.layer_count: torch.from_numpy(states[real])}, {})

    @property
    def token_matrix(self) -> Tensor:
        """It lies inside the graph."""
        raise HeedfulError("an exported model has no word matrix", remedy="use the folder it was exported from")


class OnnxHead(nn.Module):
    """What a head says at the rows of a selection, (R, K), by ONNX Runtime."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.place = nn.Parameter(torch.empty(0), requires_grad=False)  # tells that inputs belong on the CPU
        self._session = session
        self.crf = Crf.of_table(torch.from_numpy(session.constant(CRF))) if CRF in session.outputs else None

    def forward(self, selection: Selection) -> Tensor:
        """The logits of tokens, or of the sequences in which the rows lie."""
        logits, real = self._session(selection.batch, LOGITS, selection.rows)
        if logits.ndim == 3:
            return torch.from_numpy(logits[real])[selection.rows]
        ends = torch.tensor(selection.batch.lengths).cumsum(0)
        return torch.from_numpy(logits)[torch.searchsorted(ends, selection.rows, right=True)]
