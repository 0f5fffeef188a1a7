"""Vectors of texts from a model folder: `heedful.load(folder).embed(texts)`.

Texts are read in chunks. While the workers compute one chunk, the next is tokenized; a chunk's texts are sorted by
length and cut into flat batches, and its vectors come out in the order of the texts. Memory does not grow with the
number of texts.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from typing import Any

import numpy as np
import torch
from torch import nn

from heedful.checkpoints.encoder_folder import load_encoder
from heedful.checkpoints.folder import ModelFolder
from heedful.checkpoints.int8_scheme import Int8Scheme
from heedful.checkpoints.sentence_transformers import SentenceSettings
from heedful.data.batching import TOKENS_PER_BATCH, cut_by_tokens, flat_batch
from heedful.errors import HeedfulError, TextWarning
from heedful.inference.attention_maps import AttentionMaps, attention_input, attention_weights
from heedful.inference.both_directions import TwoWayLm, two_way_lm_of
from heedful.inference.engine_choice import onnx_session, runs_on_onnx
from heedful.inference.features import Features, Pieces, Vectors, features_of
from heedful.inference.fill_mask import Blank, fill_mask
from heedful.inference.generator import TextGenerator, writing_of
from heedful.inference.int8 import computes_in_int8, encoder_in_int8, head_in_int8
from heedful.inference.language_models import unpacked_language_model
from heedful.inference.masked_lm import MaskedLm, load_mlm_head
from heedful.inference.onnx_engine import OnnxEncoder
from heedful.inference.onnx_export import Comparison
from heedful.inference.predictor import Predictor
from heedful.inference.smaller_batches import in_halves
from heedful.inference.workers import worker_pool
from heedful.models.encoder import Encoder, check_room
from heedful.models.language_model import LanguageModel
from heedful.nn.packed_linear import can_pack, pack_int8
from heedful.text.tokenizer import was_truncated

# Sentences are small, so many can be sorted together; the words or tokens of a text need a lot more room.
TEXTS_PER_CHUNK = {"sentence": 1024, "word": 64, "token": 64}


class TruncationWarning(TextWarning):
    """Some texts were longer than the model and lost their right part."""


@dataclass(frozen=True)
class Work:
    """Consecutive texts, tokenized and cut into batches of text numbers."""

    texts: list[str]
    pieces: list[Pieces]
    batches: list[list[int]]


@dataclass(frozen=True)
class Chunk:
    """Consecutive texts with their vectors, in order."""

    texts: list[str]
    pieces: list[Pieces]
    vectors: list[Vectors]  # (width,) for a sentence, (units, width) for words and tokens

    @property
    def tokens(self) -> int:
        """How many tokens were computed."""
        return sum(len(p.ids) for p in self.pieces)

    @property
    def cut(self) -> list[bool]:
        """Of each text, whether it was longer than the limit."""
        return [p.truncated for p in self.pieces]

    @property
    def truncated(self) -> int:
        """How many texts were longer than the limit."""
        return sum(self.cut)


class Embedder:
    """An encoder with its tokenizer, ready to turn texts into vectors.

    In the precision int8, or where the folder is stored so, `int8` tells what that costs; `texts` are some of the
    user's own, on which it is found out. The `engine` is one of `heedful.inference.engine_choice`.
    """

    def __init__(
        self,
        folder: ModelFolder,
        device: str = "cpu",
        precision: str = "auto",
        force: bool = False,
        texts: Iterable[str] = (),
        engine: str = "auto",
    ) -> None:
        self.folder = folder
        self.tokenizer = folder.require_tokenizer()
        self.int8: Int8Scheme | None = None
        self.exported: Comparison | None = None  # how ONNX Runtime differs, where the model was exported for now
        if runs_on_onnx(folder, engine):
            self.device = "cpu"
            session, self.exported = onnx_session(folder, precision)
            self.encoder: Encoder = OnnxEncoder(folder.model_config, session)
            return
        self.device = device
        self.encoder = load_encoder(folder).to(device)
        if computes_in_int8(precision, device, folder.int8 is not None, force):
            self.int8 = encoder_in_int8(folder, self.encoder, texts)
        if device == "cpu" and can_pack():
            self.encoder.pack()
            pack_int8(self.encoder)

    def embed(
        self,
        texts: Sequence[str],
        layers: Sequence[int] = (-1,),
        combine: str = "concat",
        pooling: str | None = None,
        unit: str = "sentence",
        normalize: bool = False,
        max_length: int | None = None,
        prompt: str | None = None,
    ) -> Vectors | list[Vectors]:
        """Vectors of texts: an array (texts, width); for words and tokens a list of arrays (units, width).

        layers      hidden layers, 0 = embeddings, -1 = last; nothing above the highest one is computed
        combine     how several layers are joined: concat, sum, mean
        pooling     cls, mean, max, mean-max, weighted-mean, last; None: as the folder says, or else its family
        unit        sentence, word, or token ([CLS] and [SEP] included)
        normalize   scale vectors to length 1
        max_length  the limit in tokens, None for the folder's own; what is cut is told by a TruncationWarning
        prompt      the name of a prompt of the folder, such as query, to be put before each text
        """
        wanted = self.features(layers, combine, pooling, unit, normalize, prompt)
        vectors = list(self._vectors(texts, wanted, max_length))
        if unit != "sentence":
            return vectors
        if len(vectors) == 1:
            return vectors[0][None]
        return np.stack(vectors) if vectors else np.empty((0, wanted.width(self.encoder.config)), np.float32)

    def embed_stream(
        self,
        texts: Iterable[str],
        layers: Sequence[int] = (-1,),
        combine: str = "concat",
        pooling: str | None = None,
        unit: str = "sentence",
        normalize: bool = False,
        max_length: int | None = None,
        prompt: str | None = None,
    ) -> Iterator[Vectors]:
        """As `embed`, but the vectors of each text come as they are ready: any number of texts in constant memory."""
        wanted = self.features(layers, combine, pooling, unit, normalize, prompt)
        yield from self._vectors(texts, wanted, max_length)

    def similarity(
        self,
        texts: Sequence[str],
        layers: Sequence[int] = (-1,),
        pooling: str | None = None,
        prompt: str | None = None,
    ) -> Vectors:
        """The cosines of all pairs of texts, (texts, texts); options as of `embed`."""
        vectors = np.asarray(self.embed(texts, layers=layers, pooling=pooling, normalize=True, prompt=prompt))
        return vectors @ vectors.T

    @cached_property
    def masked_lm(self) -> MaskedLm:
        """The model with its MLM head, which is read when it is first needed."""
        return MaskedLm(self.encoder, load_mlm_head(self.folder).to(self.device), self.tokenizer)

    def fill(self, text: str, top: int = 5, pair: str | None = None) -> list[Blank]:
        """The likeliest pieces for every [MASK] in `text` (and `pair`), with their probabilities."""
        return fill_mask(self.masked_lm, text, pair, top)

    def attention(self, texts: Sequence[str | tuple[str, str]], max_length: int | None = None) -> list[AttentionMaps]:
        """The attention weights of each text or pair of texts, by layer and head, with the tokens they are between."""
        _refuse_single(texts)
        limit, found = self.limit(max_length), list[AttentionMaps]()
        for text in texts:
            ids, segments, tokens = attention_input(self.tokenizer, text, limit)
            (weights,) = attention_weights(self.encoder, [(ids, segments)], self.device)
            found.append(AttentionMaps(tokens, segments, weights))
        return found

    @cached_property
    def language_model(self) -> LanguageModel:
        """The model with the head that says what comes next, which is read when it is first needed."""
        model = unpacked_language_model(self.folder, self.encoder).to(self.device)
        head_in_int8(model, self.int8)
        if self.device == "cpu" and can_pack():
            model.pack_head()
        return model

    @cached_property
    def two_way_lm(self) -> TwoWayLm:
        """The model with the softmax by which it says words forwards and backwards, read when it is first needed."""
        return two_way_lm_of(self.folder, self.encoder, self.tokenizer, self.device)

    @cached_property
    def generator(self) -> TextGenerator:
        """The language model, ready to go on from prompts."""
        return TextGenerator(self.language_model, self.tokenizer, self.device, self.folder.path)

    def generate(self, prompts: str | Sequence[str], **options: Any) -> Any:
        """How a prompt goes on, or each of several: its text, or a list where several are asked for.

        sample              draw at random, by temperature, top_k, top_p, count and seed; else greedy search, or a beam
        max_tokens          the most that each may have, 100 if nothing is said
        stop                a string, or several, before which a text ends
        repetition_penalty  above 1 it says less often what it has said before
        when_full           "stop", or "slide": a model without room goes on from the newer half of its text
        """
        writing = writing_of(**options)
        given = [prompts] if isinstance(prompts, str) else list(prompts)
        found: list[Any] = [[one.text for one in texts] for texts in self.generator.generate(given, writing)]
        texts = [some[0] for some in found] if writing.samples == 1 else found
        return texts[0] if isinstance(prompts, str) else texts

    def write(self, prompt: str | None = None, **options: Any) -> Iterator[str]:
        """The pieces of a text after a prompt (None: from nothing) as they are written; options as of `generate`."""
        return self.generator.pieces(prompt, writing_of(**options))

    @cached_property
    def predictor(self) -> Predictor:
        """The model with the head it was fine-tuned with, which is read when it is first needed."""
        return Predictor(self.folder, self.device, self.encoder)

    def predict(self, inputs: Sequence[Any]) -> list[dict[str, Any]]:
        """What a fine-tuned model says of each input: texts, pairs, or mappings such as {"question", "context"}."""
        return self.predictor.predict(inputs)

    def features(
        self,
        layers: Sequence[int],
        combine: str,
        pooling: str | None,
        unit: str,
        normalize: bool,
        prompt: str | None = None,
    ) -> Features:
        """What is asked for, checked; pooling None becomes the folder's own, with the linear layers that follow it."""
        if isinstance(layers, int):
            raise HeedfulError(f"layers is {layers}", remedy=f"give a list of layers, such as [{layers}]")
        numbers = [self.encoder.layer_number(layer) for layer in layers]
        sentence = self.folder.sentence or SentenceSettings(self.folder.family.pooling)
        own = pooling in (None, sentence.pooling) and numbers == [self.encoder.layer_count] and unit == "sentence"
        dense = sentence.dense[-1].outputs if sentence.dense and own else 0
        before = "" if prompt is None else sentence.prompt(prompt)
        return Features(tuple(layers), combine, pooling or sentence.pooling, unit, normalize, before, dense)

    @cached_property
    def dense(self) -> nn.Module | None:
        """The linear layers that a folder of sentence-transformers has after its pooling."""
        layers = self.folder.sentence.dense_layers() if self.folder.sentence else None
        return layers.to(self.device) if layers is not None else None

    def limit(self, max_length: int | None) -> int:
        """The greatest number of tokens of a text: the folder's own, or what is asked for if the model has room."""
        if max_length is None:
            return self.folder.max_length
        check_room(f"max_length {max_length} is", max_length, self.encoder.max_length)
        return max_length

    def pieces_of(self, texts: Sequence[str], wanted: Features, limit: int) -> list[Pieces]:
        """Texts as the model sees them, each cut to `limit` tokens."""
        words = wanted.unit == "word"
        framed = [wanted.prompt + text for text in texts] if wanted.prompt else texts
        encodings = self.tokenizer.encode_batch(framed, limit, offsets=words)
        read = [(self.tokenizer.frame.some(e.ids), e.word_ids or [None], was_truncated(e)) for e in encodings]
        return [Pieces(ids, numbers if words else [], truncated) for ids, numbers, truncated in read]

    def vectors_of(self, pieces: Sequence[Pieces], wanted: Features) -> list[Vectors]:
        """The vectors of texts in one batch; equally long ones should be neighbours."""
        ends = self.tokenizer.frame.single.after.segments  # XLNet's summary token has a segment of its own
        segments = [[0] * (len(p.ids) - len(ends)) + list(ends) for p in pieces] if any(ends) else None
        with torch.inference_mode():
            flat = flat_batch([p.ids for p in pieces], segments).to(self.device)
            return features_of(self.encoder, flat, pieces, wanted, self.dense)

    def chunks(
        self, texts: Iterable[str], wanted: Features, max_length: int | None = None, shortcut: bool = True
    ) -> Iterator[Chunk]:
        """Chunks of consecutive texts with their vectors; where one ends depends on nothing but the texts' number.

        Without the `shortcut` for few texts, a chunk's bits do not depend on what came before it either.
        """
        source = self._works(texts, wanted, self.limit(max_length))
        first = next(source, None)
        if first is None:
            return
        if shortcut and len(first.batches) == 1 and len(first.texts) < TEXTS_PER_CHUNK[wanted.unit]:
            # A query or two: one batch on all cores, without the cost of starting workers.
            yield _chunk(first, [self._compute(first, first.batches[0], wanted)])
            return
        with worker_pool() as pool:
            running: deque[tuple[Work, list[Future[list[Vectors]]]]] = deque()
            for work in chain([first], source):
                running.append((work, [pool.submit(self._compute, work, batch, wanted) for batch in work.batches]))
                if len(running) > 1:
                    yield _finished(*running.popleft())
            while running:
                yield _finished(*running.popleft())

    def _vectors(self, texts: Iterable[str], wanted: Features, max_length: int | None) -> Iterator[Vectors]:
        """The vectors of each text, and at the end a warning if some were cut."""
        _refuse_single(texts)
        count = truncated = 0
        for chunk in self.chunks(texts, wanted, max_length):
            yield from chunk.vectors
            count += len(chunk.texts)
            truncated += chunk.truncated
        if truncated:
            message = f"{truncated} of {count} texts were longer than {self.limit(max_length)} tokens and were cut"
            warnings.warn(message, TruncationWarning, stacklevel=3)  # the line that called embed or embed_stream

    def _works(self, texts: Iterable[str], wanted: Features, limit: int) -> Iterator[Work]:
        source = iter(texts)
        while chunk := list(islice(source, TEXTS_PER_CHUNK[wanted.unit])):
            pieces = self.pieces_of(chunk, wanted, limit)
            yield Work(chunk, pieces, cut_by_tokens([len(p.ids) for p in pieces], TOKENS_PER_BATCH))

    def _compute(self, work: Work, batch: list[int], wanted: Features) -> list[Vectors]:
        def compute(some: list[int]) -> list[Vectors]:
            return self.vectors_of([work.pieces[i] for i in some], wanted)

        return in_halves(compute, batch, [len(p.ids) for p in work.pieces])


def _finished(work: Work, futures: Sequence[Future[list[Vectors]]]) -> Chunk:
    return _chunk(work, [future.result() for future in futures])


def _chunk(work: Work, results: Sequence[list[Vectors]]) -> Chunk:
    """Put the vectors of sorted batches back into the order of the texts."""
    by_text = dict(zip(chain.from_iterable(work.batches), chain.from_iterable(results), strict=True))
    return Chunk(work.texts, work.pieces, [by_text[i] for i in range(len(work.texts))])


def _refuse_single(texts: object) -> None:
    """Refuse a string where texts are wanted: each of its characters would be taken for one."""
    if isinstance(texts, str):
        raise HeedfulError("texts is a single string", remedy="give a list of texts, such as [text]")
