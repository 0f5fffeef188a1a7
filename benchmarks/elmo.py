"""ELMo's states of 1,000 sentences: the batched path against the formula, written out word by word in float64.

    python benchmarks/elmo.py [--sentences 1000]

The weights are those of the published fixture. The formula here is numpy's and reads the HDF5 file by itself, with
nothing of the package: characters, filters, highways, two directions with clipped cells and outputs. Beside it, the
thirty sentences whose states were published with the weights, the LSTM's state going on from sentence to sentence.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch
from materials import elmo_fixture, short_lines
from numpy.typing import NDArray
from results_file import RESULTS, Table, write_results

from heedful.data.batching import flat_batch
from heedful.inference.load import load_embedder
from heedful.text.elmo_pipeline import OTHER_BYTES

Array = NDArray[np.float64]
# Characters beside the bytes, in the file's own numbers: ends of a sentence, ends of a word, and what fills up.
SENTENCE_BEGIN, SENTENCE_END, WORD_BEGIN, WORD_END, FILLING = range(256, 261)


class Formula:
    """The published model in float64, one word after the other."""

    def __init__(self, folder: Path) -> None:
        self.options = json.loads((folder / "options.json").read_text())
        self.arrays: dict[str, Array] = {}
        with h5py.File(folder / "lm_weights.hdf5") as file:
            file.visititems(self._keep)
        self.words: dict[tuple[int, ...], Array] = {}

    def _keep(self, name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):
            self.arrays[name] = item[()].astype(np.float64)

    def layers(self, words: list[str]) -> list[Array]:
        """The states of a sentence's words, without its ends, in layers 0, 1, 2: (words, 2 P) each."""
        inner = [list(word.encode()) for word in words]
        spelled = [[SENTENCE_BEGIN], *inner, [SENTENCE_END]]
        forward = backward = np.stack([self.word(tuple(self._characters(one))) for one in spelled])
        found = [np.concatenate([forward, backward], -1)]
        for layer in range(self.options["lstm"]["n_layers"]):
            ahead, back = self.lstm(forward, 0, layer), self.lstm(backward[::-1], 1, layer)[::-1]
            if layer and self.options["lstm"]["use_skip_connections"]:
                ahead, back = ahead + forward, back + backward
            forward, backward = ahead, back
            found.append(np.concatenate([forward, backward], -1))
        return [states[1:-1] for states in found]

    def _characters(self, inner: list[int]) -> list[int]:
        size = self.options["char_cnn"]["max_characters_per_token"]
        return ([WORD_BEGIN, *inner[: size - 2], WORD_END] + [FILLING] * size)[:size]

    def word(self, characters: tuple[int, ...]) -> Array:
        """The vector of a word by itself: filters, their greatest answers, highways, projection."""
        if characters in self.words:
            return self.words[characters]
        rows = self.arrays["char_embed"][list(characters)]
        answers = []
        for number, (width, _) in enumerate(self.options["char_cnn"]["filters"]):
            kernel = self.arrays[f"CNN/W_cnn_{number}"][0]  # (width, in, out)
            windows = np.stack([rows[start : start + width] for start in range(len(rows) - width + 1)])
            answers.append(np.einsum("nwi,wio->no", windows, kernel).max(0) + self.arrays[f"CNN/b_cnn_{number}"])
        x = np.maximum(np.concatenate(answers), 0)
        for number in range(self.options["char_cnn"]["n_highway"]):
            part = f"CNN_high_{number}"
            gate = sigmoid(x @ self.arrays[f"{part}/W_carry"] + self.arrays[f"{part}/b_carry"])
            new = np.maximum(x @ self.arrays[f"{part}/W_transform"] + self.arrays[f"{part}/b_transform"], 0)
            x = gate * new + (1 - gate) * x
        self.words[characters] = x @ self.arrays["CNN_proj/W_proj"] + self.arrays["CNN_proj/b_proj"]
        return self.words[characters]

    def lstm(self, xs: Array, direction: int, layer: int) -> Array:
        """One direction of a layer over a sentence, from a state of zeros."""
        cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
        weight, bias, projection = (self.arrays[f"{cell}/{name}"] for name in ("W_0", "B", "W_P_0"))
        clip, (width, projected) = self.options["lstm"]["cell_clip"], projection.shape
        h, c, outputs = np.zeros(projected), np.zeros(width), []
        for x in xs:
            i, new, f, o = np.split(np.concatenate([x, h]) @ weight + bias, 4)
            c = np.clip(sigmoid(f + 1) * c + sigmoid(i) * np.tanh(new), -clip, clip)
            h = np.clip((sigmoid(o) * np.tanh(c)) @ projection, -clip, clip)
            outputs.append(h)
        return np.stack(outputs)


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x))."""
    return 1 / (1 + np.exp(-x))


def published(folder: Path) -> float:
    """The greatest difference to the states that were published: top layer, three lanes of ten sentences."""
    model = load_embedder(folder, "cpu")
    sentences = json.loads((folder / "lm_embeddings_sentences.json").read_text(encoding="utf-8"))
    expected = [h5py.File(folder / f"lm_embeddings_{lane}.hdf5") for lane in range(3)]
    memory, worst = None, 0.0
    for number in range(10):
        batch = flat_batch([model.tokenizer.encode(sentences[lane][number]).ids for lane in range(3)])
        with torch.no_grad():
            found = model.encoder(batch, memory=memory)
        memory, sizes = found.memory, list(batch.lengths)
        parts = zip(torch.split(batch.ids, sizes), torch.split(found.last, sizes), strict=True)
        for lane, (ids, states) in enumerate(parts):
            both = np.concatenate(list(expected[lane][str(number)]), axis=-1)
            worst = max(worst, float(np.abs(states[ids < OTHER_BYTES][1:-1].numpy() - both).max()))
    return worst


def differences(folder: Path, lines: list[str]) -> Iterator[tuple[int, float, float]]:
    """For each layer its number, and the greatest and the mean difference over all words."""
    formula, model = Formula(folder), load_embedder(folder, "cpu")
    expected = [formula.layers(line.split()) for line in lines]
    for layer in range(model.encoder.layer_count + 1):
        found = model.embed(lines, layers=(layer,), unit="word", max_length=100_000)
        apart = [np.abs(a - b[layer]) for a, b in zip(found, expected, strict=True)]
        every = np.concatenate([part.ravel() for part in apart])
        yield layer, float(every.max()), float(every.mean())


def main() -> None:
    """Compare, and write docs/results/elmo.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sentences", type=int, default=1000)
    count = parser.parse_args().sentences
    folder, lines = elmo_fixture(), short_lines(count, longest=400)
    rows = [["published states, 30 sentences, top layer", f"{published(folder):.1e}", ""]]
    for layer, worst, mean in differences(folder, lines):
        rows.append([f"the formula in float64, {count:,} sentences, layer {layer}", f"{worst:.1e}", f"{mean:.1e}"])
    words = sum(len(line.split()) for line in lines)
    what = f"The published fixture's weights. {count:,} sentences of Wikipedia, {words:,} words, through `embed` in"
    what += " batches, against the formula written out in numpy, which reads the HDF5 file by itself."
    table = Table(["compared with", "greatest difference", "mean difference"], rows)
    write_results(RESULTS / "elmo.json", "ELMo's states", what, [table], ["At most 1e-5 was asked for."])


if __name__ == "__main__":
    main()
