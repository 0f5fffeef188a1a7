"""ELMo against its formula, written out word by word; the published one's numbers are in tests/checkpoints."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from heedful.data.batching import flat_batch
from heedful.errors import HeedfulError
from heedful.models.elmo import Elmo, ElmoConfig, initialise, sized
from heedful.nn.projected_lstm import TwoWayLstm
from heedful.text.elmo_pipeline import BEGIN, END, FIRST_BYTES, OTHER_BYTES, character_tokenizer, word_ids

CONFIG = ElmoConfig(
    character_width=3, filters=((1, 4), (2, 5), (3, 6)), characters_per_word=12, projection=4, lstm_width=6, clip=0.4
)
SENTENCES = [["The", "cat", "sees", "a", "fantastically-long-word"], ["中国", "cat"], ["."]]


@pytest.fixture
def model() -> Elmo:
    model = Elmo(CONFIG)
    initialise(model, CONFIG, seed=0)
    rng = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():  # biases too, and large enough for clipping to matter
            parameter.add_(torch.empty_like(parameter).normal_(0.0, 0.4, generator=rng))
    return model.eval()


def ids_of(words: list[str]) -> list[int]:
    return [BEGIN, *(number for word in words for number in word_ids(word)), END]


def characters_of(word: str | None, begins: bool = False) -> list[int]:
    """Twelve characters: word's begin, at most ten bytes, word's end, filling; the ends of a sentence are words too."""
    inner = [257 if begins else 258] if word is None else [byte + 1 for byte in word.encode()[:10]]
    return ([259, *inner, 260] + [261] * 12)[:12]


def word_vector(model: Elmo, characters: list[int]) -> Tensor:
    cnn = model.embeddings
    rows = cnn.character.weight[torch.tensor(characters)]  # (12, d)
    found = []
    for conv in cnn.filters:
        count, _, width = conv.weight.shape
        answers = [
            [(conv.weight[f] * rows[start : start + width].T).sum() + conv.bias[f] for start in range(13 - width)]
            for f in range(count)
        ]
        found += [torch.stack(some).max().clamp(min=0) for some in answers]
    x = torch.stack(found)
    for highway in cnn.highways:
        gate = torch.sigmoid(highway.gate(x))
        x = gate * highway.transform(x).clamp(min=0) + (1 - gate) * x
    return cnn.projection(x)


def direction(layer: TwoWayLstm, xs: list[Tensor], which: int) -> list[Tensor]:
    h, c, out = torch.zeros(4), torch.zeros(6), []
    for x in xs:
        gates = x @ layer.input[which] + h @ layer.recurrent[which] + layer.bias[which]
        i, f, o, new = gates[:6].sigmoid(), gates[6:12].sigmoid(), gates[12:18].sigmoid(), gates[18:].tanh()
        c = (f * c + i * new).clamp(-0.4, 0.4)
        h = ((o * c.tanh()) @ layer.projection[which]).clamp(-0.4, 0.4)
        out.append(h)
    return out


def written_out(model: Elmo, words: list[str]) -> list[Tensor]:
    """The states of all words, the ends included, layer by layer."""
    inputs = [characters_of(None, True), *(characters_of(word) for word in words), characters_of(None)]
    forward = backward = [word_vector(model, characters) for characters in inputs]
    layers = [torch.stack([torch.cat(pair) for pair in zip(forward, backward, strict=True)])]
    for number, layer in enumerate(model.layers):
        outs = direction(layer, forward, 0), direction(layer, backward[::-1], 1)[::-1]
        if number:  # skip connections
            outs = tuple(
                [y + x for y, x in zip(*pair, strict=True)] for pair in zip(outs, (forward, backward), strict=True)
            )
        forward, backward = outs
        layers.append(torch.stack([torch.cat(pair) for pair in zip(forward, backward, strict=True)]))
    return layers


@torch.no_grad()
def test_every_layer_is_the_formula(model: Elmo) -> None:
    ids = [ids_of(words) for words in SENTENCES]
    batch = flat_batch(ids)
    found = model(batch, hidden=(0, 1, 2)).hidden
    start = 0
    for words, tokens in zip(SENTENCES, ids, strict=True):
        expected = written_out(model, words)
        begins = torch.tensor([i for i, token in enumerate(tokens) if token < OTHER_BYTES]) + start
        sizes = [1, *(len(word.encode()) for word in words), 1]
        for layer in range(3):
            torch.testing.assert_close(found[layer][begins], expected[layer], rtol=1e-5, atol=1e-6)
            whole = expected[layer].repeat_interleave(torch.tensor(sizes), dim=0)  # every byte has its word's state
            torch.testing.assert_close(found[layer][start : start + len(tokens)], whole, rtol=1e-5, atol=1e-6)
        start += len(tokens)
    assert (found[1].abs() == 0.4).any()  # clipping was at work
    rows = torch.tensor([start - 1, 3])
    assert torch.equal(model.states_at(batch, rows), found[2][rows])


@torch.no_grad()
def test_a_state_goes_on_from_batch_to_batch(model: Elmo) -> None:
    whole, first, second = (flat_batch(i) for i in ([[6, 7, 8, 9], [9, 8, 7]], [[6, 7], [9]], [[8, 9], [8, 7]]))
    before = model(first)
    after = model(second, memory=before.memory).last
    torch.testing.assert_close(after[:, :4], model(whole).last[[2, 3, 5, 6], :4])  # forwards
    begin = model(second)
    backwards = model(first, memory=begin.memory).last
    torch.testing.assert_close(backwards[:, 4:], model(whole).last[[0, 1, 4], 4:])


def test_forwards_sees_no_later_word_and_backwards_no_earlier_one(model: Elmo) -> None:
    """By gradient: on which words' vectors does each half of each state depend?"""
    batch = flat_batch([ids_of(["b", "c", "d", "e"]), ids_of(["f"])])
    words = model.words_of(batch)
    x = model.embeddings(words.characters)[words.distinct].detach().requires_grad_()

    class Given(torch.nn.Module):
        def forward(self, characters: Tensor) -> Tensor:
            return x

    model.embeddings = Given()  # type: ignore[assignment]
    states, _ = model.word_states(words._replace(distinct=torch.arange(len(words.distinct))), 2)
    for layer in (1, 2):
        for place in range(6):
            for half, seen in ((0, range(place + 1)), (1, range(place, 6))):
                (gradient,) = torch.autograd.grad(states[layer][half, place].sum(), x, retain_graph=True)
                assert set(gradient.abs().sum(1).nonzero()[:, 0].tolist()) <= set(seen)
                assert gradient[place].any()


def test_texts_become_words_of_bytes() -> None:
    tokenizer = character_tokenizer()
    one = tokenizer.encode("A cat's naïve, 中国!")
    words: list[bytes] = []
    for number in one.ids:
        if FIRST_BYTES <= number < OTHER_BYTES:
            words.append(bytes([number - FIRST_BYTES]))
        elif number >= OTHER_BYTES:
            words[-1] += bytes([number - OTHER_BYTES])
    assert [word.decode() for word in words] == ["A", "cat's", "naïve", ",", "中", "国", "!"]
    assert one.ids == ids_of(["A", "cat's", "naïve", ",", "中", "国", "!"])
    assert (one.ids[0], one.ids[-1]) == (BEGIN, END) and tokenizer.unk_id not in one.ids
    assert one.offsets[1] == (0, 1) and one.offsets[2] == (2, 3)
    apart = character_tokenizer(split_signs=False)
    assert apart.encode("U.S. cat's").ids == ids_of(["U.S.", "cat's"])
    assert apart.encode_words([["U.S.", "x"]])[0].word_ids == [0, 0, 0, 0, 1]
    every = [word_ids(chr(number))[0] for number in range(0x21, 0x7F)]
    assert [tokenizer.id_of(chr(number)) for number in range(0x21, 0x7F)] == every


def test_sizes_and_refusals() -> None:
    assert sized("base", 0) == ElmoConfig() and sized("nano", 7).words == 7
    with pytest.raises(HeedfulError, match=r"'huge'(.|\n)*nano, tiny"):
        sized("huge", 1)
    for wrong in ({"activation": "gelu"}, {"vocab_size": 3}, {"characters_per_word": 2}):
        with pytest.raises(HeedfulError):
            ElmoConfig(**wrong)  # type: ignore[arg-type]
