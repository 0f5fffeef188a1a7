"""Perplexity from left to right is Hugging Face's loss, and per word it counts the ends of lines.

XLNet's and ELMo's are those of one prediction after the other.
"""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import pytest
import torch
from transformers import GPT2LMHeadModel, XLNetLMHeadModel

from heedful.checkpoints.encoder_folder import save_model
from heedful.data.batching import flat_batch
from heedful.decoding import Beam, beam_search
from heedful.errors import HeedfulError
from heedful.inference.generator import writing_of
from heedful.inference.load import load_embedder
from heedful.inference.scoring import LineScore, kind_of_score, score_lines, score_told
from heedful.models.elmo import ElmoForPretraining, initialise, sized
from heedful.models.xlnet import XlnetConfig
from heedful.models.xlnet_lm import XlnetForPretraining
from heedful.text.elmo_pipeline import character_tokenizer, word_ids
from heedful.text.tokenizer import Tokenizer
from heedful.text.xlnet_pipeline import framed_at_the_end
from tests.gpt_folder import byte_level_tokenizer, random_gpt

TEXTS = ["the cat on the cat", "", "A", "one <unk> in the text"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path, tokenizer = tmp_path_factory.mktemp("scoring") / "gpt", byte_level_tokenizer()
    save_model(random_gpt(tokenizer.vocab_size, n_embd=32, n_layer=2, n_head=4, n_positions=48), path, tokenizer)
    return path


def test_the_loss_is_hugging_faces_with_both_ends(folder: Path) -> None:
    ours, theirs = load_embedder(folder, "cpu"), GPT2LMHeadModel.from_pretrained(folder).eval()
    end = ours.tokenizer.id_of("<|endoftext|>")
    assert kind_of_score(ours) == "left-to-right"
    found = list(score_lines(ours, TEXTS))
    for text, line in zip(TEXTS, found, strict=True):
        pieces = ours.tokenizer.pieces([text])[0].ids
        if not pieces:
            assert line.score.empty == 1 and line.words == 0 and line.score.tokens == 0
            continue
        ids = torch.tensor([[end, *pieces, end]])
        with torch.no_grad():
            mean = float(theirs(ids, labels=ids).loss)
        assert line.score.tokens == len(pieces) + 1
        assert line.score.loss == pytest.approx(mean, rel=1e-4)
        assert line.per_word == pytest.approx(math.exp(mean * (len(pieces) + 1) / len(text.split())), rel=1e-3)
    whole = sum(found, LineScore())
    assert (whole.words, whole.marks, whole.score.texts, whole.score.empty) == (11, 1, 4, 1)


def test_a_text_that_is_too_long_is_read_in_windows_and_every_token_is_scored_once(folder: Path) -> None:
    ours, theirs = load_embedder(folder, "cpu"), GPT2LMHeadModel.from_pretrained(folder).eval()
    end, text = ours.tokenizer.id_of("<|endoftext|>"), "x y " * 40
    ids = [end, *ours.tokenizer.pieces([text])[0].ids, end]
    expected = 0.0
    for place in range(1, len(ids)):  # windows of 48 that move on by 24, the last one back from the end
        starts = [*range(0, len(ids) - 1 - 48, 24), len(ids) - 1 - 48]
        first = next(start for start in starts if place <= start + 48)
        with torch.no_grad():
            logits = theirs(torch.tensor([ids[first:place]])).logits[0, -1]
        expected -= float(logits.log_softmax(-1)[ids[place]])
    line, short = score_lines(ours, [text, "x"])
    assert (line.score.windowed, line.score.tokens, short.score.windowed) == (1, len(ids) - 1, 0)
    assert line.score.loss_sum == pytest.approx(expected, rel=1e-5)
    (other,) = score_lines(ours, [text], max_length=10)
    assert other.score.tokens == len(ids) - 1 and other.score.loss_sum != line.score.loss_sum
    with pytest.raises(HeedfulError, match="max_length 49 is more than the model's 48 positions"):
        next(score_lines(ours, [text], max_length=49))


@pytest.fixture(scope="module")
def xlnet(tiny_tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path, tokenizer = tmp_path_factory.mktemp("scoring") / "xlnet", framed_at_the_end(tiny_tokenizer)
    model = XlnetForPretraining(
        XlnetConfig(vocab_size=tokenizer.vocab_size, d_model=16, n_layer=3, n_head=2, d_inner=24)
    )
    rng = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.normal_(float(name.endswith("norm.weight")), 0.3, generator=rng)
    save_model(model, path, tokenizer)
    return path


@torch.no_grad()
def next_by_hugging_face(theirs: XLNetLMHeadModel, read: list[int]) -> torch.Tensor:
    """log p of what comes after tokens: a place more, which nobody sees, is asked; no token sees a later one."""
    length = len(read) + 1
    hidden = torch.ones(1, length, length).triu()  # i does not see j ≥ i; contents see themselves all the same
    asked = torch.zeros(1, 1, length)
    asked[0, 0, -1] = 1
    logits = theirs(torch.tensor([[*read, 0]]), perm_mask=hidden, target_mapping=asked).logits
    return logits[0, 0].log_softmax(-1)


def test_xlnet_from_left_to_right_is_one_prediction_of_hugging_faces_after_the_other(xlnet: Path) -> None:
    ours, theirs = load_embedder(xlnet, "cpu"), XLNetLMHeadModel.from_pretrained(xlnet).eval()
    assert kind_of_score(ours) == "left-to-right"
    texts = ["the cat sees the dog", "", "a", "love [UNK] !"]
    for text, line in zip(texts, score_lines(ours, texts), strict=True):
        pieces = ours.tokenizer.pieces([text])[0].ids
        ids = [ours.tokenizer.sep_id, *pieces, ours.tokenizer.sep_id] if pieces else []
        expected = [-float(next_by_hugging_face(theirs, ids[:t])[ids[t]]) for t in range(1, len(ids))]
        assert line.score.tokens == len(expected)
        assert line.score.loss_sum == pytest.approx(sum(expected), rel=1e-5, abs=1e-5)


def test_xlnet_writes_what_hugging_face_would(xlnet: Path) -> None:
    """The cache of keys and values against reading everything again for every token."""
    ours, theirs = load_embedder(xlnet, "cpu"), XLNetLMHeadModel.from_pretrained(xlnet).eval()
    generator = ours.generator
    prompts = ["the cat sees", "a", "dog loves the cat , the"]
    for prompt, (found,) in zip(prompts, generator.generate(prompts, writing_of(max_tokens=7)), strict=True):
        ids, total = ours.tokenizer.pieces([prompt])[0].ids, 0.0
        first = len(ids)
        for _ in range(7):
            likely = next_by_hugging_face(theirs, ids)
            likely[generator._banned] = -math.inf
            total += float(likely.max())
            ids = [*ids, int(likely.argmax())]
            if ids[-1] == ours.tokenizer.sep_id:
                break
        assert found.log_probability == pytest.approx(total, rel=1e-5)
        assert ours.tokenizer.decode(ids).endswith(found.text)
        assert found.tokens == len(ids) - first - (found.reason == "end")


def test_what_a_beam_says_of_itself_is_what_reading_it_says(xlnet: Path) -> None:
    """Hypotheses share the slots of one cache, prompts of unlike length too."""
    ours, theirs = load_embedder(xlnet, "cpu"), XLNetLMHeadModel.from_pretrained(xlnet).eval()
    prompts = [encoding.ids for encoding in ours.tokenizer.pieces(["the cat sees", "a", "dog loves the cat , the"])]
    model, end = ours.language_model, ours.tokenizer.sep_id
    with torch.inference_mode():
        state = model.start(flat_batch([ids[:-1] for ids in prompts]), 4, 6)
        last = torch.tensor([ids[-1] for ids in prompts])
        found = beam_search(model.step, state, [6, 5, 6], last, end, Beam(size=4, n_best=3))
    for ids, hypotheses in zip(prompts, found, strict=True):
        for one in hypotheses:
            whole = [*ids, *one.ids, *([end] if one.finished else [])]
            total = sum(float(next_by_hugging_face(theirs, whole[:t])[whole[t]]) for t in range(len(ids), len(whole)))
            assert one.log_probability == pytest.approx(total, rel=1e-5)


def test_an_xlnet_without_its_head_says_no_words(xlnet: Path, tmp_path: Path) -> None:
    loaded = load_embedder(xlnet, "cpu")
    save_model(loaded.encoder, tmp_path / "alone", loaded.tokenizer)
    with pytest.raises(HeedfulError, match="has no language model head, so it says no words"):
        next(score_lines(load_embedder(tmp_path / "alone", "cpu"), ["a"]))


WORDS = ["<UNK>", "<S>", "</S>", "the", "cat", "sees", "北"]


@pytest.fixture(scope="module")
def elmo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path, config = tmp_path_factory.mktemp("scoring") / "elmo", sized("nano", len(WORDS))
    model = ElmoForPretraining(config)
    initialise(model, config, seed=0)
    with torch.no_grad():
        model.softmax.weight.mul_(9)
    save_model(model, path, character_tokenizer())
    (path / "words.txt").write_text("".join(f"{word}\n" for word in WORDS), encoding="utf-8")
    return path


@torch.no_grad()
def test_elmo_is_asked_in_both_directions_word_by_word(elmo: Path) -> None:
    ours = load_embedder(elmo, "cpu")
    lm = ours.two_way_lm.model
    assert kind_of_score(ours) == "both directions"
    texts = ["the cat sees", "", "the wolf!", "北京 <unk> cat"]
    spelled = [["the", "cat", "sees"], [], ["the", "wolf", "!"], ["北", "京", "[UNK]", "cat"]]
    lines = list(score_lines(ours, texts))
    for words, line in zip(spelled, lines, strict=True):
        rows = [1, *(WORDS.index(word) if word in WORDS else 0 for word in words), 2]
        ids = [[2], *([1] if word == "[UNK]" else word_ids(word) for word in words), [3]]
        losses = {"forward": 0.0, "backward": 0.0}
        for place in range(len(ids) if words else 0):
            for name, read, half in (("forward", ids[:place], 0), ("backward", ids[place + 1 :], 1)):
                if read:  # nothing is seen but what was read
                    states = lm.encoder(flat_batch([[number for word in read for number in word]])).last
                    state = states[0 if half else -1].chunk(2)[half]
                    losses[name] -= float(lm.softmax(state).log_softmax(-1)[rows[place]])
        assert dict(line.ways) == pytest.approx(losses, rel=1e-4)
        assert line.score.loss_sum == pytest.approx(sum(losses.values()) / 2, rel=1e-4)
        assert line.score.tokens == (len(words) + 1 if words else 0)
    assert [line.score.unknown for line in lines] == [0, 0, 2, 2]
    told = score_told(sum(lines, LineScore()), "both directions")
    assert told["perplexity"] == pytest.approx(math.sqrt(told["forward_perplexity"] * told["backward_perplexity"]))
    assert (told["tokens"], told["words"], told["unknown"], told["marks"]) == (13, 8, 4, 1)


def test_an_elmo_that_cannot_be_scored_says_why(elmo: Path, tmp_path: Path) -> None:
    with pytest.raises(HeedfulError, match="`max_length` has no effect on a model of the type elmo"):
        next(score_lines(load_embedder(elmo, "cpu"), ["a"], max_length=10))
    shutil.copytree(elmo, tmp_path / "m")
    (tmp_path / "m" / "words.txt").write_text("<UNK>\n", encoding="utf-8")
    with pytest.raises(HeedfulError, match=r"1 words for a softmax of 7(.|\n)*words\.txt"):
        next(score_lines(load_embedder(tmp_path / "m", "cpu"), ["a"]))
    (tmp_path / "m" / "words.txt").unlink()
    with pytest.raises(HeedfulError, match=r"words\.txt, the words of the softmax, is missing"):
        next(score_lines(load_embedder(tmp_path / "m", "cpu"), ["a"]))
    with pytest.raises(HeedfulError, match=r"elmo does not say what comes next(.|\n)*`heedful score`"):
        load_embedder(elmo, "cpu").generate("a")


def test_a_masked_model_has_another_quantity(tiny_folder: Path) -> None:
    model = load_embedder(tiny_folder, "cpu")
    (line,) = score_lines(model, ["the <unk> sees"])
    assert kind_of_score(model) == "pseudo" and (line.words, line.marks) == (3, 1)
    assert line.score.tokens == 3 and line.score.unknown == 1  # <unk> is the tokenizer's own [UNK]
    told = score_told(line, "pseudo")
    assert told["pseudo_perplexity"] == line.score.perplexity and "perplexity" not in told
