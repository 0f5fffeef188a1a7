"""Texts in, translations out: order, batches, limits, scores and alignments."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

import heedful
from heedful.data.batching import cut_by_tokens
from heedful.data.bitext.pairs import lay_out
from heedful.decoding import Beam, Sampling
from heedful.errors import HeedfulError
from heedful.inference import translator as module
from heedful.inference.embedder import TruncationWarning
from heedful.inference.load import load_embedder, load_translator
from heedful.inference.translator import Translator, equal_share, tokens_at_once
from heedful.models.transformer import Transformer, sized

pytestmark = pytest.mark.processor

KINDS = ("transformer", "pre-norm", "attention", "rnn")


@pytest.fixture(scope="module", params=KINDS)
def any_translator(request: pytest.FixtureRequest, tiny_translators: dict[str, Path]) -> Translator:
    """Each kind of model, loaded as users load it."""
    found = heedful.load(tiny_translators[request.param], "cpu")
    assert isinstance(found, Translator)
    return found


@pytest.fixture(scope="module")
def one(tiny_translators: dict[str, Path]) -> Translator:
    """A Transformer."""
    return load_translator(tiny_translators["transformer"], "cpu")


def some_texts(count: int) -> list[str]:
    rng = random.Random(count)
    words = ["the", "cat", "sees", "love", "dog", "中国", "我爱", "北京。", "zebra!"]
    return [" ".join(rng.choices(words, k=rng.randint(1, 7))) for _ in range(count)]


@pytest.mark.parametrize("beam", [1, 4])
def test_a_text_is_translated_alike_alone_and_among_others(
    any_translator: Translator, beam: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = some_texts(23)
    monkeypatch.setattr(module, "TOKENS_PER_BATCH", 40)  # several batches, on several workers
    together = any_translator.hypotheses(texts, Beam(beam, 0.6), 12)
    for text, found in zip(texts, together, strict=True):
        ((alone,),) = any_translator.hypotheses([text], Beam(beam, 0.6), 12)
        assert alone.text == found[0].text
        assert alone.log_probability == pytest.approx(found[0].log_probability, abs=1e-4)


def test_workers_get_equal_shares_and_large_models_smaller_batches(one: Translator) -> None:
    lengths = [10 + number % 13 for number in range(1000)]
    share = equal_share(lengths, most=4096, workers=2)
    cut = cut_by_tokens(lengths, share)
    sizes = [sum(lengths[number] for number in numbers) for numbers in cut]
    assert len(cut) == 4 and max(sizes) - min(sizes) <= 4 * max(lengths)
    assert equal_share([5, 4], most=4096, workers=8) >= 9  # too little to be shared
    assert tokens_at_once(one.folder.model) == module.TOKENS_PER_BATCH
    assert tokens_at_once(Transformer(sized("medium", 50, 50))) == module.LEAST_TOKENS


def test_probabilities_are_those_of_teacher_forcing(any_translator: Translator) -> None:
    """What the search adds up step by step is what the model says of the whole, whatever was banned."""
    sides, symbols = any_translator.folder.sides, any_translator.symbols
    model = any_translator.folder.model
    source = sides.source.encode("the cat sees 中国").ids
    for how in (Beam(1), Beam(4, 1.0, 4), Sampling(count=4)):
        decoded = any_translator._search([source], [9], how, torch.Generator())[0]
        for found in decoded:
            said = [symbols.start, *found.ids, symbols.end]
            bitext = lay_out([source], [said])
            with torch.inference_mode():
                steps = model.logits(model(bitext)).log_softmax(-1).gather(1, bitext.labels[:, None])[:, 0]
            total = steps.sum() if found.finished else steps[:-1].sum()
            assert found.log_probability == pytest.approx(float(total), abs=1e-4)


def test_scores_are_log_probabilities_of_the_pairs(any_translator: Translator) -> None:
    rng = random.Random(0)
    texts = some_texts(30)
    pairs = [(text, rng.choice(texts)) for text in texts]
    model, (left, right) = any_translator.folder.model, any_translator.folder.sides
    for (source, target), score in zip(pairs, any_translator.pair_scores(pairs), strict=True):
        bitext = lay_out([left.encode(source).ids], [right.encode(target).ids])
        with torch.inference_mode():
            table = model.logits(model(bitext)).log_softmax(-1)
        expected = float(table[torch.arange(len(table)), bitext.labels].sum())
        assert score.log_probability == pytest.approx(expected, abs=1e-4)
        assert score.symbols == len(table) and not score.truncated
    assert any_translator.score(pairs) == [one.log_probability for one in any_translator.pair_scores(pairs)]


def test_translate_gives_the_best_text(one: Translator) -> None:
    texts = some_texts(5)
    assert one.translate(texts, beam=3, length_penalty=0.5, max_length=8) == [
        found[0].text for found in one.hypotheses(texts, Beam(3, 0.5, 3), 8)
    ]


def test_order_and_empty_texts(one: Translator) -> None:
    texts = ["", "the cat", "  ", "中国", "\t"]
    found = one.translate(texts, beam=2, max_length=6)
    assert [found[0], found[2], found[4]] == ["", "", ""]
    assert [found[1], found[3]] == one.translate(["the cat", "中国"], beam=2, max_length=6)
    assert one.translate([]) == []


def test_any_number_of_texts_in_chunks(one: Translator) -> None:
    texts, told = [*some_texts(20), ""], list[int]()
    whole = list(one.stream(texts, Beam(2), 5))
    pulled = list[str]()

    def source() -> object:
        for text in texts:
            pulled.append(text)
            yield text

    stream = one.stream(source(), Beam(2), 5, at_once=4, advance=told.append)  # type: ignore[arg-type]
    first = next(stream)
    assert len(pulled) == 4 and first.text == whole[0].text
    (alone,), (among_others,) = first.translations, whole[0].translations
    assert alone.log_probability == pytest.approx(
        among_others.log_probability, abs=1e-5
    )  # other shapes, other rounding
    assert [found.best for found in [first, *stream]] == [found.best for found in whole]
    assert sum(told) == len(texts)


def test_a_chunk_of_one_answers_before_it_asks_again(one: Translator) -> None:
    asked = list[str]()

    def source() -> object:
        for text in ("the cat", "the dog"):
            asked.append(text)
            yield text

    stream = one.stream(source(), Beam(1), 4, at_once=1)  # type: ignore[arg-type]
    assert next(stream).text == "the cat" and asked == ["the cat"]


def test_no_translation_is_longer_than_asked(any_translator: Translator) -> None:
    for limit in (1, 3):
        for how in (Beam(1), Beam(3), Sampling(count=2)):
            found = any_translator._search([[2, 7, 8, 3]], [limit], how, torch.Generator())
            assert all(len(said.ids) + said.finished <= limit for said in found[0])
    with pytest.raises(HeedfulError, match="at most 100000"):
        any_translator.translate(["the cat"], max_length=100000)
    with pytest.raises(HeedfulError, match="at most 0 tokens"):
        any_translator.translate(["the cat"], max_length=0)


def test_a_text_longer_than_the_model_is_cut_and_told(one: Translator) -> None:
    long = "the cat " * 100
    with pytest.warns(TruncationWarning, match="1 of 2 texts were longer than 64 tokens"):
        one.translate([long, "the dog"], beam=1, max_length=4)
    with pytest.warns(TruncationWarning, match="1 of 1 texts"):
        one.score([("the cat", long)])
    assert one.pair_scores([("the cat", long)])[0].truncated
    assert [found.truncated for found in one.stream(["the dog", long], Beam(1), 4)] == [False, True]


def test_characters_never_seen_are_translated_too(any_translator: Translator) -> None:
    assert len(any_translator.translate(["饕餮 🙂 ŁÓDŹ"], beam=2, max_length=5)) == 1


def test_samples_are_repeated_by_the_seed_alone(one: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TOKENS_PER_BATCH", 40)
    texts, how = some_texts(20), Sampling(count=2)
    first, again, other = (one.hypotheses(texts, how, 8, seed) for seed in (1, 1, 2))
    assert first == again != other
    assert all(len(found) == 2 for found in first)
    assert len({found[0].text for found in one.hypotheses(["the cat"] * 12, Sampling(), 8)}) > 1


@pytest.mark.parametrize("kind", ["transformer", "pre-norm", "attention"])
def test_alignments_are_rows_of_weights_over_the_source(kind: str, tiny_translators: dict[str, Path]) -> None:
    translator = load_translator(tiny_translators[kind], "cpu")
    texts, said = ["the cat", "unaffordable 中国 love"], ["我爱北京", "dog"]
    first, second = translator.alignments(texts, said)
    assert first.source == ["[CLS]", "the", "cat", "[SEP]"]
    assert first.target == ["我", "爱", "北", "京", "[SEP]"]
    assert second.source[1:4] == ["un", "##afford", "##able"] and second.target == ["dog", "[SEP]"]
    for alignment in (first, second):
        assert alignment.weights.shape == (len(alignment.target), len(alignment.source))
        np.testing.assert_allclose(alignment.weights.sum(1), 1.0, atol=1e-5)
    assert len(translator.alignments(["the cat"])) == 1


def test_heads_and_layers_of_alignments(one: Translator) -> None:
    asked = (["the cat"], ["我爱"])
    mean = one.alignments(*asked, layer=1)[0].weights
    heads = [one.alignments(*asked, layer=1, head=head)[0].weights for head in range(4)]
    np.testing.assert_allclose(np.mean(heads, axis=0), mean, atol=1e-6)
    assert not np.allclose(heads[0], heads[1])
    np.testing.assert_array_equal(
        one.alignments(*asked, layer=-1)[0].weights, one.alignments(*asked, layer=2)[0].weights
    )
    for name, number in {"layer": 3, "head": 4}.items():
        with pytest.raises(HeedfulError, match=f"{name} {number}"):
            one.alignments(*asked, **{name: number})


def test_a_model_without_attention_has_no_alignments(tiny_translators: dict[str, Path]) -> None:
    with pytest.raises(HeedfulError, match="no attention to show"):
        load_translator(tiny_translators["rnn"], "cpu").alignments(["the cat"])


def test_the_folder_tells_what_is_loaded(tiny_translators: dict[str, Path], tiny_folder: Path) -> None:
    assert type(heedful.load(tiny_folder)).__name__ == "Embedder"
    with pytest.raises(HeedfulError, match="heedful-transformer"):
        load_embedder(tiny_translators["transformer"])
    with pytest.raises(HeedfulError, match="none that translates"):
        load_translator(tiny_folder)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda it: it.translate("one text"), "single string"),
        (lambda it: it.translate(["a"], beam=0), "beam of 0"),
        (lambda it: it.translate([None]), "NoneType"),
    ],
)
def test_bad_input_is_refused(one: Translator, call: Callable[[Translator], object], said: str) -> None:
    with pytest.raises(HeedfulError, match=said):
        call(one)


def test_engines_have_names(tiny_translators: dict[str, Path]) -> None:
    with pytest.raises(HeedfulError, match="heedful or ctranslate2"):
        load_translator(tiny_translators["transformer"], "cpu", "fairseq")


def test_auto_takes_the_faster_engine_for_texts_alone(
    tiny_translators: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def searches(translator: Translator) -> list[str]:
        asked = ["the cat", "我爱北京"]
        calls: list[str] = []
        own = translator._search
        monkeypatch.setattr(translator, "_search", lambda *a: (calls.append("own"), own(*a))[1])
        translator.translate(asked, max_length=8)
        translator.hypotheses(asked, max_length=8)
        translator.hypotheses(asked, Sampling(), 8)
        return calls

    transformer, rnn = (load_translator(tiny_translators[kind], "cpu") for kind in ("transformer", "rnn"))
    assert searches(transformer) == ["own", "own"]
    assert searches(rnn) == ["own", "own", "own"]
    theirs = load_translator(tiny_translators["transformer"], "cpu", "ctranslate2")
    assert transformer.translate(["the cat"], max_length=8) == theirs.translate(["the cat"], max_length=8)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert searches(load_translator(tiny_translators["transformer"], "cpu")) == ["own", "own", "own"]
