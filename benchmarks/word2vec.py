"""word2vec beside gensim: words a second and agreement with human judgements, on the same words of the same text.

    python benchmarks/word2vec.py [--language en] [--epochs 3] [--workers 2] [--documents 0] [--architecture skip-gram]
    python benchmarks/word2vec.py --language zh --work words    # cuts the text once: kept in the folder `words`

Both train vectors of the same width over the same vocabulary and sentences, with the same window, negatives, thinning
out and epochs, in the same run, one after the other. English is judged on WS-353 and MEN, Chinese, cut by jieba, on
ZH-240; pairs with a word that has no vector are left out and counted. The clock is that of training alone.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gensim.models import Word2Vec
from materials import wikipedia, word_pairs
from results_file import RESULTS, Table, write_results

from heedful.checkpoints.vector_files import NamedVectors
from heedful.data.corpus.build import ReadingSettings, build_corpus
from heedful.data.corpus.corpus import Corpus
from heedful.data.corpus.phases import Phase, PretrainingSource
from heedful.data.corpus.running_words import RunningWords, Word2VecRecipe, running_words
from heedful.data.corpus.tokens import TokenSettings
from heedful.data.corpus.windows import WindowBatches
from heedful.inference.judged_pairs import agreement, read_pairs
from heedful.inference.nearest import WordVectors
from heedful.models.encoder import encoder_of
from heedful.models.word2vec import Word2VecConfig, Word2VecForPretraining, initialise
from heedful.tasks.objectives import WORD2VEC
from heedful.text.documents import read_lines
from heedful.text.word_tokenizer import UNKNOWN, word_tokenizer
from heedful.training.trainer import Trainer
from heedful.training.training_config import TrainingConfig

RATE, STEP = 0.025, 100  # stretches of a thousand words a step


def corpus_of(language: str, documents: int, folder: Path, workers: int) -> Corpus:
    """The Wikipedia text with its words; only they are wanted, so a tokenizer that knows none will do.

    A corpus that is in `folder` already is taken as it is.
    """
    source, folder = wikipedia(language), folder / f"{language}-{documents or 'all'}"
    folder.mkdir(parents=True, exist_ok=True)
    if documents:
        few = folder / "few.jsonl"
        few.write_text("\n".join(islice(read_lines(source), documents)), encoding="utf-8")
        source = few
    tokenizer = word_tokenizer([UNKNOWN], lowercase=True)
    settings, reading = TokenSettings(words=True, drop_headings=True), ReadingSettings(held_out_share=0.0)
    return build_corpus([str(source)], folder / "corpus", tokenizer, settings, reading, workers)


def ours(
    text: RunningWords, recipe: Word2VecRecipe, width: int, epochs: int, folder: Path
) -> tuple[float, NamedVectors]:
    """The seconds of heedful, and its vectors."""
    config = Word2VecConfig(len(text.vocabulary), width)
    model = Word2VecForPretraining(config)
    initialise(model, config, seed=1)
    steps = max(1, round(epochs * len(text) / STEP))
    training = TrainingConfig(steps=steps, learning_rate=RATE, warmup=0.0, checkpoint_every=0)
    source = PretrainingSource([Phase(WindowBatches(text, recipe), steps, min(STEP, len(text)))])
    began = time.perf_counter()
    Trainer(model, WORD2VEC.in_run(model, STEP, recipe), source, training, folder / "run").run()
    seconds = time.perf_counter() - began
    return seconds, NamedVectors(list(text.vocabulary), encoder_of(model).token_matrix.numpy())


def theirs(text: RunningWords, recipe: Word2VecRecipe, width: int, epochs: int) -> tuple[float, NamedVectors]:
    """The seconds of gensim, and its vectors."""
    words = np.array(text.vocabulary, dtype=object)
    sentences = []
    for number in range(len(text)):
        stretch = text.stretch(number)
        cuts = np.flatnonzero(np.diff(stretch.sentences)) + 1
        sentences += [words[part].tolist() for part in np.split(stretch.ids, cuts)]
    model: Any = Word2Vec(
        vector_size=width, window=recipe.window, negative=recipe.negatives, sample=recipe.subsample, alpha=RATE,
        sg=int(recipe.architecture == "skip-gram"), min_count=recipe.min_count, workers=recipe.workers, seed=1,
    )  # fmt: skip
    model.build_vocab(sentences)
    began = time.perf_counter()
    model.train(sentences, total_examples=len(sentences), epochs=epochs)
    return time.perf_counter() - began, NamedVectors(model.wv.index_to_key, model.wv.vectors)


def judged(vectors: NamedVectors, language: str) -> dict[str, str]:
    """Spearman's correlation with each set of judgements."""
    known = WordVectors(vectors)
    found = {}
    for name, file in word_pairs(language).items():
        told = agreement(read_pairs(file), lambda texts: [known.vector(text.lower()) for text in texts])
        found[name] = f"{told.spearman:.4f} ({told.left_out} left out)"
    return found


def main() -> None:
    """Race and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--language", choices=["en", "zh"], default="en")
    parser.add_argument("--architecture", choices=["skip-gram", "cbow"], default="skip-gram")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--width", type=int, default=100)
    parser.add_argument("--documents", type=int, default=0, help="only the first so many; 0 for all")
    parser.add_argument("--work", type=Path, help="where the words of the text are kept for the next run")
    parser.add_argument("--no-save", action="store_true", help="print only")
    a = parser.parse_args()
    torch.set_num_threads(1)
    recipe = Word2VecRecipe(max_length=1000, architecture=a.architecture, workers=a.workers)
    with tempfile.TemporaryDirectory() as place:
        text = running_words(corpus_of(a.language, a.documents, a.work or Path(place), a.workers), recipe)
        sides = {
            "heedful": ours(text, recipe, a.width, a.epochs, Path(place)),
            "gensim": theirs(text, recipe, a.width, a.epochs),
        }
    kept = int(text.counts.sum())
    speeds = {name: kept * a.epochs / seconds for name, (seconds, _) in sides.items()}
    scores = {name: judged(vectors, a.language) for name, (_, vectors) in sides.items()}
    rows = [
        [name, round(speeds[name]), f"{speeds[name] / speeds['gensim']:.2f}×", *scores[name].values()] for name in sides
    ]
    print(*rows, sep="\n")
    if not a.no_save:
        write_results(
            RESULTS / f"word2vec_{a.language}_{a.architecture}.json",
            title=f"word2vec, {a.architecture}, {'English' if a.language == 'en' else 'Chinese'}",
            what=f"{kept:,} running words, {a.epochs} epochs, width {a.width}, {a.workers} workers",
            tables=[Table(["", "words/s", "of gensim", *scores["heedful"]], rows)],
        )


if __name__ == "__main__":
    main()
