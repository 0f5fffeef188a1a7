"""What a translation run works with: its pairs, read and encoded, the tokenizers of both sides, and perhaps a BERT."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from heedful.checkpoints.folder import ModelFolder, read_folder
from heedful.checkpoints.translation_folder import check_frame
from heedful.cli.translate_plan import Plan
from heedful.data.bitext import EncodedPairs, encode_pairs
from heedful.data.labelled import Dataset
from heedful.data.parallel import SentencePair, read_pairs
from heedful.inference.load import model_path
from heedful.text.sides import Sides, learn_sides
from heedful.text.tokenizer import Tokenizer
from heedful.text.tokenizer_training import train as learn_tokenizer


@dataclass(frozen=True)
class Material:
    """The training pairs as tokens, and the dev pairs as texts and as tokens."""

    sides: Sides
    train: EncodedPairs
    dev: Sequence[SentencePair]
    dev_encoded: EncodedPairs | None  # without those that are hopeless
    bert: ModelFolder | None

    @classmethod
    def of(cls, plan: Plan, note: Callable[[str], object]) -> Material:
        """Read, learn and encode all of it; `note` hears what was odd and what takes a while."""
        bert = read_bert(plan.encoder)
        train = read_pairs(plan.train, *plan.names)
        if plan.limit:
            train = replace(train, examples=train.examples[: plan.limit])
        dev: Dataset[SentencePair] = read_pairs(plan.dev, *plan.names) if plan.dev else Dataset(())
        sides = _sides(plan, train.examples, bert, note)
        encoded, left_out = encode_pairs(train.examples, sides, plan.limits)
        dev_encoded, dev_left_out = encode_pairs(dev.examples, sides, plan.limits) if dev.examples else (None, ())
        for name, remarks in (("train", train.remarks + left_out), ("dev", dev.remarks + dev_left_out)):
            for remark in remarks:
                note(f"{name}: {remark}")
        return cls(sides, encoded, dev.examples, dev_encoded, bert)


def read_bert(folder: str | None) -> ModelFolder | None:
    """The folder of the BERT that an encoder starts as, if one is named."""
    if folder is None:
        return None
    bert = read_folder(model_path(folder))
    bert.require_tokenizer()
    return bert


def _sides(plan: Plan, pairs: Sequence[SentencePair], bert: ModelFolder | None, note: Callable[[str], object]) -> Sides:
    given = [_loaded(folder) for folder in plan.tokenizer]
    if bert is not None and bert.tokenizer is not None:
        return Sides(bert.tokenizer, given[0] if given else _target_alone(plan, pairs, note))
    if given:
        return Sides(given[0], given[-1])
    kind = "two vocabularies" if plan.separate else "a vocabulary for both sides"
    note(f"learning {kind} of {plan.vocab_size:,} pieces from {len(pairs):,} pairs")
    sources, targets = (pair.source for pair in pairs), (pair.target for pair in pairs)
    return learn_sides(sources, targets, plan.vocab_size, separate=plan.separate)


def _target_alone(plan: Plan, pairs: Sequence[SentencePair], note: Callable[[str], object]) -> Tokenizer:
    note(f"learning a vocabulary of {plan.vocab_size:,} pieces for the target side")
    return learn_tokenizer((pair.target for pair in pairs), "bpe", plan.vocab_size, cased=True)


def _loaded(folder: str) -> Tokenizer:
    tokenizer = Tokenizer.load(folder)
    check_frame(tokenizer, folder)
    return tokenizer
