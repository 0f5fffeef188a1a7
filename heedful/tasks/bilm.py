"""ELMo's objective: forwards the next word, backwards the one before, with one softmax; the two losses are added."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import torch
from torch import Tensor, nn

from heedful.atomic import atomic_file
from heedful.checkpoints.encoder_folder import load_encoder, load_head, save_model
from heedful.checkpoints.folder import ModelFolder
from heedful.data.corpus.corpus import Corpus
from heedful.data.corpus.whole_words import check_whole_words
from heedful.data.corpus.word_windows import BilmMicroBatch, BilmRecipe, WordWindows, softmax_vocabulary
from heedful.errors import HeedfulError
from heedful.models.elmo import ElmoConfig, ElmoForPretraining
from heedful.models.encoder import EncoderConfig
from heedful.nn.cross_entropy import summed_cross_entropy
from heedful.tasks.pretraining_objective import PretrainingObjective, Tell
from heedful.text.elmo_pipeline import character_tokenizer

WORDS = "words.txt"  # in the model's folder: the words of its softmax, a line each
EXAMPLES_SHOWN = 4


class BilmObjective(PretrainingObjective):
    """Two language models that share the words they read and the words they say."""

    name = "bilm"
    recipe = BilmRecipe
    settings: ClassVar[Mapping[str, str]] = {"softmax_words": "softmax_words"}
    use = (
        "    heedful embed FOLDER lines.txt -o vectors.npy\n    heedful score FOLDER lines.txt\n"
        "    heedful finetune tag --model FOLDER … --features 0,1,2 --combine mix"
    )

    def check(self, corpus: Corpus) -> None:
        check_whole_words(corpus)

    def pieces(self, corpus: Corpus, recipe: BilmRecipe) -> int:
        return len(softmax_vocabulary(corpus, recipe.softmax_words))

    def config_from(self, folder: ModelFolder, corpus: Corpus, recipe: BilmRecipe) -> EncoderConfig:
        assert isinstance(folder.model_config, ElmoConfig)
        return replace(folder.model_config, words=self.pieces(corpus, recipe))

    def model_from(
        self, folder: ModelFolder, config: EncoderConfig, corpus: Corpus, recipe: BilmRecipe, seed: int, tell: Tell
    ) -> ElmoForPretraining:
        assert isinstance(config, ElmoConfig)
        model = ElmoForPretraining(config)
        folder.family.initialise(model, config, seed)
        model.encoder.load_state_dict(load_encoder(folder).state_dict())
        words = softmax_vocabulary(corpus, recipe.softmax_words)
        known = _softmax_rows(model, folder, words) if (folder.weights / WORDS).is_file() else 0
        tell(f"{known:,} of the {len(words):,} words to be predicted are the folder's, and the others start afresh")
        return model

    def batches(self, corpus: Corpus, recipe: BilmRecipe) -> WordWindows:
        words = softmax_vocabulary(corpus, recipe.softmax_words)
        return WordWindows(corpus, words, recipe.max_length, recipe.seed)

    def losses(self, model: nn.Module, micro_batch: BilmMicroBatch) -> dict[str, Tensor]:
        found = said(model, micro_batch)
        return {name: summed_cross_entropy(logits, labels) for name, (logits, labels) in found.items()}

    def examination(
        self, corpus: Corpus, recipe: BilmRecipe, batch_size: int, most: int, tell: Callable[[str], object]
    ) -> BilmExamination:
        return BilmExamination(corpus, recipe, batch_size, most)

    def described(self, recipe: BilmRecipe) -> str:
        return f"two language models, forwards and backwards, over {recipe.softmax_words:,} words at most ({WORDS})"

    def save(self, model: nn.Module, folder: Path, corpus: Corpus, recipe: BilmRecipe) -> None:
        save_model(model, folder, character_tokenizer(), overwrite=True)
        words = softmax_vocabulary(corpus, recipe.softmax_words)
        with atomic_file(folder / WORDS) as file:
            file.write("".join(f"{word}\n" for word in words))


def read_words(folder: ModelFolder) -> list[str]:
    """The words of a folder's softmax, as many as it has rows."""
    file, config = folder.weights / WORDS, folder.model_config
    if not file.is_file():
        remedy = "copy it from the folder that `heedful pretrain` has written"
        raise HeedfulError(f"{WORDS}, the words of the softmax, is missing", where=folder.weights, remedy=remedy)
    words = file.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    if len(words) != getattr(config, "words", 0):
        what = f"there are {len(words)} words for a softmax of {getattr(config, 'words', 0)}"
        raise HeedfulError(what, where=file, remedy="use the file that was written with the model")
    return words


def _softmax_rows(model: ElmoForPretraining, folder: ModelFolder, words: Sequence[str]) -> int:
    """Give the words that a folder's softmax has its rows; how many these are."""
    there = {word: row for row, word in enumerate(read_words(folder))}
    old = load_head(folder, "softmax", lambda config: nn.Linear(config.projection, config.words))
    pairs = [(row, there[word]) for row, word in enumerate(words) if word in there]
    ours, theirs = (list(rows) for rows in zip(*pairs, strict=True))
    with torch.no_grad():
        for mine, its in zip(model.softmax.parameters(), old.parameters(), strict=True):
            mine[ours] = its[theirs]
    return len(pairs)


def said(model: nn.Module, micro_batch: BilmMicroBatch) -> dict[str, tuple[Tensor, Tensor]]:
    """What each direction expects, (M, V), and what stands there, (M,)."""
    elmo, labels = cast(ElmoForPretraining, model), micro_batch.labels
    words = elmo.encoder.words_of(micro_batch.batch)
    states, _ = elmo.encoder.word_states(words, elmo.encoder.layer_count)
    forward, backward = (half.view(*labels.shape, -1) for half in states[-1])
    return {
        "forward": (elmo.softmax(forward[:, :-1].flatten(0, 1)), labels[:, 1:].flatten()),
        "backward": (elmo.softmax(backward[:, 1:].flatten(0, 1)), labels[:, :-1].flatten()),
    }


class BilmExamination:
    """Both directions on held-out stretches, beside what the frequency of words alone reaches on the same ones."""

    def __init__(self, corpus: Corpus, recipe: BilmRecipe, batch_size: int, most: int) -> None:
        self.words = softmax_vocabulary(corpus, recipe.softmax_words)
        self.windows = WordWindows(corpus, self.words, recipe.max_length, recipe.seed, "held_out")
        self.size, self.most = batch_size, min(most, len(self.windows))
        train = WordWindows(corpus, self.words, recipe.max_length, recipe.seed)
        some = train.numbered(np.arange(min(len(train), 2000))).labels
        counts = torch.bincount(some.flatten(), minlength=len(self.words)) + 1.0
        self.unigram = (counts / counts.sum()).log()

    def scores(self, model: nn.Module) -> dict[str, float]:
        """Mean loss of both directions, the perplexity of each, and the share of words that the softmax lacks."""
        sums = {"forward": 0.0, "backward": 0.0}
        unigram, unknown, count = 0.0, 0, 0
        for start in range(0, self.most, self.size):
            one = self.windows.numbered(np.arange(start, min(start + self.size, self.most)))
            for name, (logits, labels) in said(model, one.to(_device(model))).items():
                sums[name] += float(nn.functional.cross_entropy(logits, labels, reduction="sum"))
            right = one.labels[:, 1:].flatten()
            unigram -= float(self.unigram[right].sum())
            unknown += int((right == 0).sum())
            count += len(right)
        forward, backward = (total / max(count, 1) for total in sums.values())
        return {
            "bilm_loss": (forward + backward) / 2,
            "forward_perplexity": math.exp(forward),
            "backward_perplexity": math.exp(backward),
            "unigram_loss": unigram / max(count, 1),
            "unknown_words": unknown / max(count, 1),
        }

    def shown(self, model: nn.Module, around: int = 10, top: int = 3) -> list[dict[str, Any]]:
        """A word of a few held-out stretches, and what comes to mind forwards."""
        shown = []
        for number in range(min(EXAMPLES_SHOWN, self.most)):
            one = self.windows.numbered(np.array([number]))
            place = one.labels.shape[1] // 2
            logits, _ = said(model, one.to(_device(model)))["forward"]
            values, ids = logits[place - 1].softmax(-1).topk(min(top, len(self.words)))
            text = " ".join(self.words[i] for i in one.labels[0, max(0, place - around) : place].tolist())
            guesses = [[self.words[i], round(p, 4)] for i, p in zip(ids.tolist(), values.tolist(), strict=True)]
            shown.append({"text": f"{text} [___]", "truth": self.words[int(one.labels[0, place])], "guesses": guesses})
        return shown


def _device(model: nn.Module) -> str:
    return str(cast(ElmoForPretraining, model).device)
