"""Frames are what the tokenizers library itself puts around texts, in the ways of BERT, RoBERTa, XLNet and GPT."""

from __future__ import annotations

import pytest
import tokenizers
from tokenizers import Encoding, models, pre_tokenizers, processors

from heedful.text.frame import Frame

PIECES = ["[UNK]", "<s>", "</s>", "<sep>", "<cls>", "[CLS]", "[SEP]", "a", "b", "c"]
IDS = {piece: number for number, piece in enumerate(PIECES)}


def template(single: str, pair: str, *specials: str) -> processors.TemplateProcessing:
    return processors.TemplateProcessing(single=single, pair=pair, special_tokens=[(one, IDS[one]) for one in specials])


FRAMES = {
    "bert": template("[CLS]:0 $A:0 [SEP]:0", "[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1", "[CLS]", "[SEP]"),
    "roberta": processors.RobertaProcessing(("</s>", IDS["</s>"]), ("<s>", IDS["<s>"])),
    "xlnet": template("$A:0 <sep>:0 <cls>:2", "$A:0 <sep>:0 $B:1 <sep>:1 <cls>:2", "<sep>", "<cls>"),
    "gpt": None,
}


def tokenizer(name: str, unknown: str | None = "[UNK]") -> tokenizers.Tokenizer:
    words = {piece: number for piece, number in IDS.items() if unknown or piece != "a"}
    library = tokenizers.Tokenizer(models.WordLevel(words, unk_token=unknown))
    library.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    if FRAMES[name] is not None:
        library.post_processor = FRAMES[name]
    return library


def pieces(library: tokenizers.Tokenizer, text: str) -> list[int]:
    return list(library.encode(text, add_special_tokens=False).ids)


def seen(encoding: Encoding) -> tuple[list[int], list[int]]:
    return encoding.ids, encoding.type_ids


@pytest.mark.parametrize("name", FRAMES)
def test_pieces_are_joined_as_the_library_joins_texts(name: str) -> None:
    library = tokenizer(name)
    frame = Frame.of(library)
    first, second = pieces(library, "a b"), pieces(library, "c b a")
    assert frame.joined(first) == seen(library.encode("a b"))
    assert frame.joined(first, second) == seen(library.encode("a b", "c b a"))
    assert frame.joined([]) == (seen(library.encode("")) if frame.single.size else ([0], [0]))
    whole, _ = frame.joined(first, second)
    assert whole[frame.second_starts(len(first)) :][: len(second)] == second
    assert frame.single.size == library.num_special_tokens_to_add(is_pair=False)
    assert frame.pair.size == library.num_special_tokens_to_add(is_pair=True)


def test_a_tokenizer_that_drops_what_it_does_not_know_is_asked_with_a_word_of_its_own() -> None:
    frame = Frame.of(tokenizer("bert", unknown=None))
    assert frame.pair.between.ids == (IDS["[SEP]"],)


def test_the_row_that_sums_a_text_up() -> None:
    library = tokenizer("xlnet")
    assert Frame.of(library).summary_row(5) == 0
    assert Frame.of(library, "last").summary_row(5) == 4
