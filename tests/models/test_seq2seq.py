"""The recurrent models: what each decoder sees, and one result whichever way it is computed."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from heedful.data.batching import flat_batch
from heedful.errors import HeedfulError
from heedful.models.rnn_state import RnnState
from heedful.models.seq2seq import Seq2Seq, Seq2SeqConfig, initialise_seq2seq
from heedful.models.seq2seq_config import SIZES, sized
from heedful.schema import Bitext

SOURCES = [[2, 9, 8, 5, 3], [2, 7, 6, 5, 3], [2, 4, 8, 3], [2, 6, 3]]
TARGETS = [[2, 7, 8, 3], [2, 5, 5, 9, 6, 3], [2, 3], [2, 9, 9, 9, 3]]
PLAIN = Seq2SeqConfig(12, 11, embedding_size=6, hidden_size=8, dropout=0.0)
DECODERS = {
    "1": replace(PLAIN, decoder="1"),
    "2": replace(PLAIN, decoder="2", context="transform"),
    "2, zero first state": replace(PLAIN, decoder="2", first_state="zero", cell="rnn"),
    "3": replace(PLAIN, decoder="3", cell="lstm", context="all"),
    "3, one direction": replace(PLAIN, decoder="3", bidirectional=False, layers=2),
    "attention": PLAIN,
    "attention, additive, fed": replace(PLAIN, score="additive", attention_feeds=True, cell="lstm"),
    "attention, bilinear, three queries": replace(PLAIN, score="bilinear", queries=3, first_state="learned"),
    "attention, dot, two queries, fed": replace(PLAIN, score="dot", queries=2, attention_feeds=True, layers=2),
    "hard attention": replace(PLAIN, attention="hard", share=True, source_vocab_size=11),
}
ATTENDING = [name for name in DECODERS if "attention" in name]
FED = [name for name in DECODERS if "fed" in name]  # these go step by step in any case
TAKING_WORDS = [name for name in DECODERS if name.startswith("3") or "attention" in name]


def bitext_of(sources: list[list[int]], targets: list[list[int]]) -> Bitext:
    labels = torch.tensor([label for ids in targets for label in ids[1:]])
    return Bitext(flat_batch(sources), flat_batch([ids[:-1] for ids in targets]), labels)


BITEXT = bitext_of(SOURCES, TARGETS)


def model_of(config: Seq2SeqConfig) -> Seq2Seq:
    """A model with weights so large that whatever comes in is seen in what comes out."""
    model = Seq2Seq(config).eval()
    rng = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0.0, 0.5, generator=rng)
    return model


@pytest.fixture(params=DECODERS)
def model(request: pytest.FixtureRequest) -> Seq2Seq:
    return model_of(DECODERS[request.param])


def close(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


@torch.no_grad()
def test_a_word_of_the_target_reaches_only_decoders_that_take_words(model: Seq2Seq) -> None:
    changed = [list(ids) for ids in TARGETS]
    changed[1][2] = 8
    before, after = model(BITEXT), model(bitext_of(SOURCES, changed))
    reached = (before != after).any(-1).split(list(BITEXT.target.lengths))
    assert [row.tolist() for row in (reached[0], reached[2], reached[3])] == [[False] * 3, [False], [False] * 4]
    assert reached[1].tolist() == [False, False, *[model.config.takes_words] * 3]


@torch.no_grad()
def test_every_word_of_the_source_reaches_every_word_said(model: Seq2Seq) -> None:
    # Hard attention looks at one place only, but all states and the context come from both sides.
    for place in range(1, 4):
        changed = [list(ids) for ids in SOURCES]
        changed[1][place] = 10
        reached = (model(BITEXT) != model(bitext_of(changed, TARGETS))).any(-1).split(list(BITEXT.target.lengths))
        assert [bool(row.any()) for row in reached] == [False, True, False, False]
        assert reached[1].all()


def several(model: Seq2Seq, hypotheses: int) -> RnnState:
    """The first state, of so many hypotheses a sentence."""
    return model.start(model.encode(BITEXT.source), hypotheses, 9).reorder(torch.zeros(4, hypotheses, dtype=torch.long))


@torch.no_grad()
def test_where_the_context_comes_in(model: Seq2Seq) -> None:
    memory, other = model.encode(BITEXT.source), model.encode(flat_batch([[2, 10, 3]] * 4))
    tokens = torch.full((4, 1), 2)
    state = model.start(memory, 1, 9)
    given = all(torch.equal(h[layer, :, 0], memory.context) for h in state.hidden for layer in range(len(h)))
    assert given == (model.config.begins == "given")
    own = all(torch.equal(a, b) for a, b in zip(state.hidden, model.start(other, 1, 9).hidden, strict=True))
    assert own != given
    # With the state of one and the context of the other: decoder 1 no longer hears of the source.
    crossed = model.step(tokens, RnnState(other, state.hidden))[0]
    assert torch.equal(crossed, model.step(tokens, state)[0]) == (model.config.decoder == "1")


@torch.no_grad()
def test_learned_and_zero_first_states() -> None:
    for name, learned in (("2", True), ("2, zero first state", False), ("3", True)):
        model = model_of(DECODERS[name])
        hidden = several(model, 2).hidden
        assert len(hidden) == (2 if model.config.cell == "lstm" else 1)
        assert all(h.shape == (1, 4, 2, 8) and bool(h.any()) == learned for h in hidden)
        assert ("decoder.first_state" in dict(model.named_parameters())) == learned


@torch.no_grad()
def test_the_contexts_are_what_they_are_said_to_be() -> None:
    for name, (context, two) in {"1": ("last", True), "2": ("transform", True), "3": ("all", True)}.items():
        model = model_of(DECODERS[name])
        assert (model.config.context, model.config.bidirectional) == (context, two)
        found = model.encode(BITEXT.source).context
        for ids, c in zip(SOURCES, found, strict=True):
            assert model.embedding is not None
            states, last = model.encoder(model.embedding(torch.tensor(ids)))
            last = torch.cat(list(last[0] if isinstance(last, tuple) else last))
            if context == "last":
                close(c, last)
            else:
                assert model.transform is not None
                close(c, torch.tanh(model.transform(last if context == "transform" else states.mean(0))))


@pytest.mark.parametrize("model", [name for name in DECODERS if name not in FED], indirect=True)
@torch.no_grad()
def test_all_at_once_is_step_by_step(model: Seq2Seq) -> None:
    memory = model.encode(BITEXT.source)
    at_once = model.decoder.all_at_once(memory, BITEXT.target, None)
    steps = model.decoder.step_by_step(memory, BITEXT.target, 1.0, None)
    close(at_once.outputs, steps.outputs)
    if model.config.attends:
        close(at_once.look.weights, steps.look.weights)
        close(at_once.look.context, steps.look.context)


@torch.no_grad()
def test_decoding_with_the_right_words_is_the_forward_pass(model: Seq2Seq) -> None:
    """Also with two hypotheses a sentence, of which the second goes a way of its own."""
    blocks = model.logits(model(BITEXT)).split(list(BITEXT.target.lengths))
    state = several(model, 2)
    for time in range(max(BITEXT.target.lengths)):
        words = [[ids[min(time, len(ids) - 1)], 4] for ids in TARGETS]
        logits, state = model.step(torch.tensor(words), state)
        assert logits.shape == (4, 2, model.config.target_vocab_size)
        for sentence, block in enumerate(blocks):
            if time < len(block):
                close(logits[sentence, 0], block[time])


@torch.no_grad()
def test_each_sentence_is_as_if_alone(model: Seq2Seq) -> None:
    together = model(BITEXT).split(list(BITEXT.target.lengths))
    assert [x.shape for x in together] == [(n, 6) for n in BITEXT.target.lengths]
    for source, target, found in zip(SOURCES, TARGETS, together, strict=True):
        close(found, model(bitext_of([source], [target])))


@torch.no_grad()
def test_hypotheses_are_reordered_and_sentences_kept(model: Seq2Seq) -> None:
    state = several(model, 3)
    _, state = model.step(torch.tensor([[4, 5, 6]]).expand(4, -1), state)
    parents = torch.tensor([[2, 0, 0], [0, 1, 2], [1, 1, 1], [2, 1, 0]])
    words = torch.tensor([[5, 6, 7]]).expand(4, -1)
    moved = model.step(words, state.reorder(parents))[0]
    for b, row in enumerate(parents.tolist()):
        for k, parent in enumerate(row):
            expected = model.step(torch.full((4, 3), int(words[b, k])), state)[0][b, parent]
            close(moved[b, k], expected)
    kept = torch.tensor([3, 1])
    close(model.step(words[kept], state.keep(kept))[0], model.step(words, state)[0][kept])


@torch.no_grad()
@pytest.mark.parametrize("name", ATTENDING)
def test_alignments_are_weights_over_the_source(name: str) -> None:
    model = model_of(DECODERS[name])
    found = model.alignments(BITEXT)
    assert [x.shape for x in found] == [
        (t, s) for t, s in zip(BITEXT.target.lengths, BITEXT.source.lengths, strict=True)
    ]
    for weights in found:
        close(weights.sum(-1), torch.ones(len(weights)))
        assert bool((weights >= 0).all())
        if model.config.attention == "hard":
            assert set(weights.flatten().tolist()) == {0.0, 1.0}
    heads = [model.alignments(BITEXT, head=head) for head in range(model.config.queries)]
    for weights, *each in zip(found, *heads, strict=True):
        close(weights, torch.stack(each).mean(0))
    assert model.config.queries == 1 or not torch.equal(heads[0][0], heads[1][0])


@torch.no_grad()
@pytest.mark.parametrize("feeds", [False, True])
def test_the_attention_decoder_is_its_formula(feeds: bool) -> None:
    model = model_of(replace(PLAIN, attention_feeds=feeds))
    decoder = model.decoder
    for source, target, found in zip(SOURCES, TARGETS, model(BITEXT).split(list(BITEXT.target.lengths)), strict=True):
        assert model.embedding is not None
        memory = model.encoder(model.embedding(torch.tensor(source)))[0]  # (S, D)
        state = model.encode(flat_batch([source])).context  # (1, D)
        cell = nn.GRUCell(decoder.recurrence.input_size, 8)
        cell.load_state_dict({n.removesuffix("_l0"): p for n, p in decoder.recurrence.named_parameters()})
        for word, output in zip(target, found, strict=False):
            x = decoder.embedding(torch.tensor([word]))
            if feeds:
                context = torch.softmax(state @ memory.T / 8**0.5, -1) @ memory
                state = cell(torch.cat([x, context], -1), state)
            else:
                state = cell(x, state)
                context = torch.softmax(state @ memory.T / 8**0.5, -1) @ memory
            close(output, torch.tanh(decoder.readout(torch.cat([state, context], -1)))[0])


@pytest.mark.parametrize("name", [name for name in DECODERS if name not in ATTENDING])
def test_without_attention_there_is_nothing_to_show(name: str) -> None:
    with pytest.raises(HeedfulError, match=f"decoder {DECODERS[name].decoder} has no attention"):
        Seq2Seq(DECODERS[name]).alignments(BITEXT)


@pytest.mark.parametrize(("layer", "head"), [(0, None), (2, None), (-2, None), (-1, 3), (1, -1)])
def test_an_attention_that_is_not_there_is_refused(layer: int, head: int | None) -> None:
    model = Seq2Seq(DECODERS["attention, bilinear, three queries"])
    with pytest.raises(HeedfulError, match="there is no"):
        model.alignments(BITEXT, layer, head)


@pytest.mark.parametrize("forcing", [0.0, 0.9])
def test_decoders_without_words_refuse_teacher_forcing(forcing: float) -> None:
    for name in set(DECODERS) - set(TAKING_WORDS):
        with pytest.raises(HeedfulError, match=f"decoder {DECODERS[name].decoder} takes no words"):
            Seq2Seq(DECODERS[name])(BITEXT, forcing)


@pytest.mark.parametrize("forcing", [-0.1, 1.5, float("nan")])
def test_teacher_forcing_is_a_probability(forcing: float) -> None:
    with pytest.raises(HeedfulError, match="teacher forcing of"):
        Seq2Seq(PLAIN)(BITEXT, forcing)


@torch.no_grad()
@pytest.mark.parametrize("name", TAKING_WORDS)
@pytest.mark.parametrize("forcing", [0.0, 0.5])
def test_a_step_takes_the_right_word_or_the_models_own(name: str, forcing: float) -> None:
    """Sentence by sentence and step by step, with the same chances."""
    model = model_of(DECODERS[name])
    found = model(BITEXT, forcing, torch.Generator().manual_seed(5)).split(list(BITEXT.target.lengths))
    longest_first = sorted(range(4), key=lambda b: -BITEXT.target.lengths[b])
    chances = iter(torch.rand(len(BITEXT.labels), generator=torch.Generator().manual_seed(5)).tolist())
    taken = {(b, t): next(chances) < forcing for t in range(5) for b in longest_first if t < len(found[b])}
    assert forcing == 0 or len({right for (_, t), right in taken.items() if t}) == 2
    for b, (source, target, outputs) in enumerate(zip(SOURCES, TARGETS, found, strict=True)):
        state, own = model.start(model.encode(flat_batch([source])), 1, 9), target[0]
        for t, output in enumerate(outputs):
            word = target[t] if t == 0 or taken[b, t] else own
            logits, state = model.step(torch.tensor([[word]]), state)
            close(model.logits(output), logits[0, 0])
            own = int(logits.argmax())


def test_everything_is_trained(model: Seq2Seq) -> None:
    model.train()
    nn.functional.cross_entropy(model.logits(model(BITEXT)), BITEXT.labels).backward()
    for name, parameter in model.named_parameters():
        # Nothing comes into decoder 1, so there is nothing for its matrix to learn from.
        if model.config.decoder == "1" and name == "decoder.recurrence.weight_ih_l0":
            assert parameter.grad is not None and not parameter.grad.any()
        else:
            assert parameter.grad is not None and bool(parameter.grad.any()), name


def test_dropout_acts_in_training_only() -> None:
    model = model_of(replace(PLAIN, dropout=0.5))
    assert torch.equal(model(BITEXT), model(BITEXT))
    model.train()
    assert not torch.equal(model(BITEXT), model(BITEXT))


def test_hard_attention_draws_in_training_and_not_in_prediction() -> None:
    model = model_of(DECODERS["hard attention"])
    assert torch.equal(model(BITEXT), model(BITEXT))
    model.train()
    once, again, other = (model(BITEXT, rng=torch.Generator().manual_seed(seed)) for seed in (1, 1, 2))
    assert torch.equal(once, again) and not torch.equal(once, other)


@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
def test_one_seed_gives_one_model(cell: str) -> None:
    config = replace(PLAIN, cell=cell, decoder="3", layers=2)  # type: ignore[arg-type]
    models = [Seq2Seq(config) for _ in range(3)]
    for model, seed in zip(models, (1, 1, 2), strict=True):
        initialise_seq2seq(model, seed)
    once, again, other = (dict(model.named_parameters()) for model in models)
    assert all(torch.equal(once[name], again[name]) for name in once)
    assert all(torch.equal(once[name], other[name]) == (not other[name].any() or "bias" in name) for name in once)
    for gate in once["decoder.recurrence.weight_hh_l1"].split(8):
        close(gate @ gate.T, torch.eye(8))
    if cell == "lstm":
        assert once["encoder.bias_ih_l0"].tolist() == [0] * 4 + [1] * 4 + [0] * 8


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"cell": "elman"}, "cell is 'elman'"),
        ({"decoder": "4"}, "decoder is '4'"),
        ({"first_state": "random"}, "cannot have a random first state"),
        ({"decoder": "1", "first_state": "learned"}, "decoder 1 cannot have a learned first state"),
        ({"decoder": "3", "first_state": "given"}, "decoder 3 cannot have a given first state"),
        ({"hidden_size": 7}, "cannot share hidden_size 7"),
        ({"layers": 0}, "layers is 0"),
        ({"queries": 0}, "queries is 0"),
        ({"dropout": 1.0}, "dropout is 1.0"),
        ({"share": True}, "12 and 11 cannot share"),
    ],
)
def test_choices_that_do_not_go_together_are_refused(wrong: dict[str, object], told: str) -> None:
    with pytest.raises(HeedfulError, match=told):
        replace(PLAIN, **wrong)  # type: ignore[arg-type]


def test_sizes() -> None:
    assert [sized(size, 9, 9).hidden_size for size in SIZES] == sorted(shape[1] for shape in SIZES.values())
    assert not replace(sized("tiny", 9, 9), hidden_size=7, bidirectional=False).bidirectional
    with pytest.raises(HeedfulError, match="called 'huge'"):
        sized("huge", 9, 9)
