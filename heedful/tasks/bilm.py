"""ELMo's objective: forwards the next word, backwards the one before, with one softmax; the two losses are added."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import torch
from torch import Tensor, nn

from heedful.atomic import atomic_file
from heedful.checkpoints.encoder_folder import save_model
from heedful.data.corpus.corpus import Corpus
from heedful.data.corpus.whole_words import check_whole_words
from heedful.data.corpus.word_windows import BilmMicroBatch, BilmRecipe, WordWindows, softmax_vocabulary
from heedful.models.elmo import ElmoForPretraining
from heedful.nn.cross_entropy import summed_cross_entropy
from heedful.tasks.pretraining_objective import PretrainingObjective
from heedful.text.elmo_pipeline import character_tokenizer

WORDS = "words.txt"  # in the model's folder: the words of its softmax, a line each
EXAMPLES_SHOWN = 4


class BilmObjective(PretrainingObjective):
    """Two language models that share the words they read and the words they say."""

    name = "bilm"
    recipe = BilmRecipe
    settings: ClassVar[Mapping[str, str]] = {"softmax_words": "softmax_words"}
    use = "    heedful embed FOLDER lines.txt -o vectors.npy\n    heedful finetune tag FOLDER … --features 0,1,2"

    def check(self, corpus: Corpus) -> None:
        check_whole_words(corpus)

    def pieces(self, corpus: Corpus, recipe: BilmRecipe) -> int:
        return len(softmax_vocabulary(corpus, recipe.softmax_words))

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
