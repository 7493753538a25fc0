"""Encoders, decoders and attention: what may depend on what, how they are trained and write."""

import copy
import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import grammar
import seq2seq
from seq2seq import (
    DIGITS,
    END,
    PAD,
    START,
    AdditiveScore,
    AttentionDecoder,
    BidirectionalEncoder,
    Decoder,
    DotScore,
    Encoder,
    Memory,
    ReversedSource,
    ScaledDotScore,
    Seq2Seq,
    Vocabulary,
    alignment_error_rate,
    alignments,
    attend,
    attention_copier,
    copied_beside,
    copier,
    copy_batches,
    digit_strings,
    exact_sequence,
    generate,
    hidden,
    influence,
    measure_copying,
    padding_mask,
    reverse,
    reversed_copier,
    teacher_forcing,
    train,
    translation_batches,
    translator,
    unmasked_copier,
    vocabulary,
)

pytestmark = pytest.mark.usefixtures("one_thread")

EMBEDDING, HIDDEN = 5, 6
SIZES = len(DIGITS), EMBEDDING, HIDDEN
CELLS = ["RNN", "GRU", "LSTM"]
SCORES = [DotScore, ScaledDotScore, AdditiveScore]
ENCODERS = {
    **{cell: lambda cell=cell: Encoder(*SIZES, cell) for cell in CELLS},
    "bidirectional": lambda: BidirectionalEncoder(*SIZES),
}


def with_attention(encoder, score):
    sides = 2 if encoder == "bidirectional" else 1
    return Seq2Seq(ENCODERS[encoder](), AttentionDecoder(*SIZES, sides * HIDDEN, score))


WITH_ATTENTION = {
    f"{encoder}, {score.__name__}": lambda encoder=encoder, score=score: with_attention(
        encoder, score
    )
    for encoder in ("GRU", "bidirectional")
    for score in SCORES
}
WITHOUT_ATTENTION = {
    **{cell: lambda cell=cell: Seq2Seq(ENCODERS[cell](), Decoder(*SIZES, cell)) for cell in CELLS},
    "bidirectional": lambda: Seq2Seq(ENCODERS["bidirectional"](), Decoder(*SIZES)),
    "reversed": lambda: ReversedSource(ENCODERS["GRU"](), Decoder(*SIZES)),
}
MODELS = WITH_ATTENTION | WITHOUT_ATTENTION


def seeded(build, seed=0):
    """An untrained module with large weights, so that it answers variously."""
    torch.manual_seed(seed)
    module = build()
    with torch.no_grad():
        for weight in module.parameters():
            weight.mul_(2)
    return module


def each_of(builders):
    """A fixture of the modules that these functions build, one a test."""

    @pytest.fixture(params=builders.values(), ids=builders)
    def built(request):
        return seeded(request.param)

    return built


model = each_of(MODELS)
attentive = each_of(WITH_ATTENTION)
plain = each_of(WITHOUT_ATTENTION)
encoder = each_of(ENCODERS)


@pytest.fixture
def source():
    return DIGITS.encode(["31415", "2", "718"])


@pytest.fixture
def labels():
    return DIGITS.encode(["27", "1828", "459"])


@pytest.fixture
def inputs(labels):
    return teacher_forcing(labels)[0]


def random_strings(count, shortest=1, longest=9, seed=0):
    return digit_strings(count, shortest, longest, torch.Generator().manual_seed(seed))


def padded(tokens, more=4):
    return F.pad(tokens, (0, more), value=PAD)


def real(row):
    """A row without its padding, as a batch of its own."""
    return row[None, padding_mask(row)]


def loss(model, source, labels):
    return train(copy.deepcopy(model), [(source, labels)], steps=1)[0]


def parts(final):
    """The tensors of a final state: two of an LSTM, else one."""
    return final if isinstance(final, tuple) else (final,)


def assert_close(some, other):
    torch.testing.assert_close(some, other, atol=1e-6, rtol=0)


def assert_same_weights(some, other):
    torch.testing.assert_close(some.state_dict(), other.state_dict(), atol=0, rtol=0)


# Words and tokens


def test_tokens_of_words_follow_pad_start_and_end():
    assert (PAD, START, END) == (0, 1, 2)
    assert Vocabulary(["le", "chat"]).tokens == {"le": 3, "chat": 4}


def test_a_vocabulary_counts_pad_start_and_end():
    assert len(Vocabulary(["le", "chat"])) == 5


def test_shorter_sentences_are_padded_at_their_end():
    french = Vocabulary(["le", "chat", "dort"])
    assert french.encode([["le", "chat", "dort"], ["dort"]]).tolist() == [[3, 4, 5], [5, PAD, PAD]]


def test_decoding_leaves_out_pad_and_start_and_stops_at_end():
    assert DIGITS.decode(torch.tensor([START, 4, 5, PAD, 12, END, 6])) == ["1", "2", "9"]


def test_decoding_takes_back_encoding():
    sentences = ["31415", "2", "0718"]
    assert ["".join(DIGITS.decode(row)) for row in DIGITS.encode(sentences)] == sentences


def test_an_empty_sentence_is_refused():
    with pytest.raises(ValueError, match="sentence 1 is empty: give it at least one word"):
        DIGITS.encode(["12", ""])


def test_no_sentence_is_refused():
    with pytest.raises(ValueError, match="there are no sentences: give at least one"):
        DIGITS.encode([])


def test_an_unknown_word_is_named_with_its_sentence():
    with pytest.raises(ValueError, match="'chien' in sentence 1 is not among the 2 words"):
        Vocabulary(["le", "chat"]).encode([["chat"], ["le", "chien", "chat"]])


# Padding


def test_the_mask_is_true_for_real_tokens(source):
    assert padding_mask(source).tolist() == [
        [True, True, True, True, True],
        [True, False, False, False, False],
        [True, True, True, False, False],
    ]


def test_padding_in_the_source_changes_no_logit(model, source, inputs):
    assert_close(model(padded(source), inputs), model(source, inputs))


def test_padding_in_the_target_changes_no_logit(model, source, inputs):
    assert_close(model(source, padded(inputs))[:, : inputs.shape[1]], model(source, inputs))


def test_padding_in_either_changes_no_loss(model, source, labels):
    before = loss(model, source, labels)
    after = [loss(model, padded(source), labels), loss(model, source, padded(labels))]
    assert after == pytest.approx([before, before], abs=1e-6)


def test_padding_changes_no_state(encoder, source):
    before = encoder(source, padding_mask(source))
    after = encoder(padded(source), padding_mask(padded(source)))
    assert_close(after.states[:, : source.shape[1]], before.states)
    assert_close(after.final, before.final)


def test_a_sentence_alone_is_read_as_beside_longer_ones(model, source, inputs):
    alone = [model(real(s), i[None]) for s, i in zip(source, inputs, strict=True)]
    assert_close(torch.cat(alone), model(source, inputs))


def test_states_on_padding_are_0(encoder, source):
    mask = padding_mask(source)
    assert encoder(source, mask).states[~mask].eq(0).all()


# The encoder


@pytest.mark.parametrize("cell", CELLS)
def test_the_final_state_is_that_of_the_last_real_token(cell, source):
    encoder = seeded(ENCODERS[cell])
    memory = encoder(source, padding_mask(source))
    last = padding_mask(source).sum(dim=1) - 1
    assert torch.equal(hidden(memory.final), memory.states[torch.arange(3), last])


def test_the_final_state_of_a_row_is_that_of_the_network_run_on_its_real_tokens(encoder, source):
    finals = encoder(source, padding_mask(source)).final
    for i, row in enumerate(source):
        _, alone = encoder.rnn(encoder.embed(real(row)))
        if isinstance(encoder, BidirectionalEncoder):
            alone = encoder.bridge(alone.transpose(0, 1).flatten(1)).tanh()[None]
        for final, expected in zip(parts(finals), parts(alone), strict=True):
            assert_close(final[:, i : i + 1], expected)


def test_an_encoder_that_reads_one_way_knows_nothing_of_what_comes(source):
    for cell in CELLS:
        encoder, edited = seeded(ENCODERS[cell]), source.clone()
        edited[0, 3] = 3
        before, after = (encoder(s, padding_mask(s)).states[0] for s in (source, edited))
        moved = (after - before).abs().amax(dim=1)
        assert moved[:3].eq(0).all()
        assert moved[3:].gt(1e-3).all()


def test_every_state_of_a_bidirectional_encoder_knows_the_whole_sentence(source):
    encoder, edited = seeded(ENCODERS["bidirectional"]), source.clone()
    edited[0, 3] = 3
    before, after = (encoder(s, padding_mask(s)).states[0] for s in (source, edited))
    assert (after - before).abs().amax(dim=1).gt(1e-3).all()


@pytest.mark.parametrize("cell", CELLS)
def test_there_is_a_state_of_h_numbers_for_each_token(cell, source):
    memory = seeded(ENCODERS[cell])(source, padding_mask(source))
    assert memory.states.shape == (3, 5, HIDDEN)
    assert {part.shape for part in parts(memory.final)} == {(1, 3, HIDDEN)}


def test_a_bidirectional_encoder_has_states_of_2_h_numbers_and_a_final_state_of_h(source):
    memory = seeded(ENCODERS["bidirectional"])(source, padding_mask(source))
    assert memory.states.shape == (3, 5, 2 * HIDDEN)
    assert memory.final.shape == (1, 3, HIDDEN)


def test_a_mask_of_another_shape_is_refused(encoder, source):
    with pytest.raises(ValueError, match=r"the mask has shape \(3, 4\), the tokens \(3, 5\)"):
        encoder(source, padding_mask(source)[:, 1:])


def test_a_sentence_of_padding_alone_is_refused(encoder, source):
    source[1] = PAD
    with pytest.raises(ValueError, match="sentence 1 has length 0: give it at least one token"):
        encoder(source, padding_mask(source))


def test_a_real_token_behind_padding_is_refused(encoder, source):
    with pytest.raises(ValueError, match="a real token behind padding: padding comes last"):
        encoder(source, padding_mask(source).flip(1))


# What the decoder looks at


def decoded(model, source, inputs, change):
    """The decoder's logits and weights with its memory as it is, and with it changed."""
    memory = model.encode(source)
    return [model.decoder(inputs, m)[::2] for m in (memory, memory._replace(**change(memory)))]


def changed_state(place):
    def change(memory):
        states = memory.states.clone()
        states[place] += torch.linspace(-1, 2, states.shape[-1])
        return {"states": states}

    return change


def test_changing_one_state_changes_the_weights_and_the_logits(attentive, source, inputs):
    before, after = decoded(attentive, source, inputs, changed_state((0, 2)))
    for one, other in zip(before, after, strict=True):
        moved = (other - one).abs().amax(dim=-1)
        assert moved[0].gt(1e-4).all()
        assert moved[1:].eq(0).all()


def test_changing_a_state_on_padding_changes_nothing(attentive, source, inputs):
    before, after = decoded(attentive, source, inputs, changed_state((1, 2)))
    assert all(torch.equal(one, other) for one, other in zip(before, after, strict=True))


def test_the_plain_decoder_does_not_see_the_states(plain, source, inputs):
    (before, _), (after, _) = decoded(plain, source, inputs, changed_state((0, 2)))
    assert torch.equal(before, after)


def test_the_plain_decoder_says_what_the_final_state_makes_it_say(plain, source, inputs):
    def change(memory):
        return {"final": tuple(p + 1 for p in memory.final)} if lstm else {"final": 1 + final}

    final = plain.encode(source).final
    lstm = isinstance(final, tuple)
    (before, _), (after, _) = decoded(plain, source, inputs, change)
    assert (after - before).abs().amax(dim=-1).gt(1e-4).all()


def test_the_plain_decoder_has_no_weights(plain, source, inputs):
    assert plain.decoder(inputs, plain.encode(source))[2] is None


def weights_of(attentive, source, inputs):
    return attentive.decoder(inputs, attentive.encode(source))[2]


def test_there_is_a_weight_for_each_pair_of_output_and_source_token(attentive, source, inputs):
    assert weights_of(attentive, source, inputs).shape == (*inputs.shape, source.shape[1])


def test_weights_sum_to_1_over_the_real_tokens(attentive, source, inputs):
    weights = weights_of(attentive, source, inputs)
    assert weights.ge(0).all()
    assert_close(weights.sum(dim=-1), torch.ones(inputs.shape))


def test_weights_are_exactly_0_on_padding(attentive, source, inputs):
    weights = weights_of(attentive, source, inputs)
    on_padding = ~padding_mask(source)[:, None].expand_as(weights)
    assert weights[on_padding].eq(0).all()


def random_memory():
    mask = torch.tensor([[True, True, True], [True, True, False]])
    return Memory(torch.randn(2, 3, 4), None, mask)


@pytest.fixture
def memory():
    torch.manual_seed(0)
    return random_memory()


def test_the_context_is_the_mean_of_the_states_with_the_weights(memory):
    context, weights = attend(torch.randn(2, 5, 3), memory)
    for b in range(2):
        for t in range(5):
            shares = zip(weights[b, t], memory.states[b], strict=True)
            assert_close(context[b, t], sum(share * state for share, state in shares))


def test_one_score_far_above_the_others_takes_all_the_weight(memory):
    _, weights = attend(torch.tensor([[[0.0, 1000, 0]], [[0.0, 1000, 2000]]]), memory)
    assert weights.tolist() == [[[0, 1, 0]], [[0, 1, 0]]]


def test_where_no_token_matches_better_all_real_tokens_share_alike(memory):
    _, weights = attend(torch.full((2, 1, 3), -50.0), memory)
    assert_close(weights, torch.tensor([[[1 / 3, 1 / 3, 1 / 3]], [[1 / 2, 1 / 2, 0]]]))


# Scores


@pytest.fixture
def query_and_keys():
    torch.manual_seed(1)
    return torch.randn(2, 3, HIDDEN), torch.randn(2, 4, 7)


def by_loops(query, keys, score):
    return torch.stack(
        [
            torch.stack([torch.stack([score(q, k) for k in ks]) for q in qs])
            for qs, ks in zip(query, keys, strict=True)
        ]
    )


def test_the_dot_score_is_the_product_of_the_query_with_the_projected_key(query_and_keys):
    module = seeded(lambda: DotScore(HIDDEN, 7))
    projection = module.project.weight
    expected = by_loops(*query_and_keys, lambda q, k: (q * (projection @ k)).sum())
    assert_close(module(*query_and_keys), expected)


def test_the_scaled_score_is_the_dot_score_over_the_root_of_h(query_and_keys):
    dot = seeded(lambda: DotScore(HIDDEN, 7))
    scaled = seeded(lambda: ScaledDotScore(HIDDEN, 7))
    assert_close(scaled(*query_and_keys), dot(*query_and_keys) / math.sqrt(HIDDEN))


def test_the_additive_score_is_that_of_a_hidden_layer_for_each_pair(query_and_keys):
    module = seeded(lambda: AdditiveScore(HIDDEN, 7))
    (w, b), u, v = module.from_query.parameters(), module.from_key.weight, module.score.weight[0]
    expected = by_loops(*query_and_keys, lambda q, k: v @ torch.tanh(w @ q + b + u @ k))
    assert_close(module(*query_and_keys), expected)


# Attention is a small change


@pytest.mark.parametrize("other", [attention_copier, reversed_copier, unmasked_copier])
def test_copiers_of_one_seed_have_encoders_of_the_same_weights_and_states(other, source):
    some, others = copier(HIDDEN, seed=3).encoder, other(HIDDEN, seed=3).encoder
    assert type(some) is type(others)
    assert_same_weights(some, others)
    mask = padding_mask(source)
    assert torch.equal(some(source, mask).states, others(source, mask).states)


@pytest.mark.parametrize("build", [copier, attention_copier, reversed_copier])
def test_copiers_of_another_seed_have_other_weights(build):
    one, other = (build(HIDDEN, seed=seed).encoder.embed.weight for seed in (3, 4))
    assert not torch.equal(one, other)


def test_both_decoders_can_share_one_encoder(source, inputs):
    encoder = seeded(ENCODERS["GRU"])
    plain = Seq2Seq(encoder, Decoder(*SIZES))
    attentive = Seq2Seq(encoder, AttentionDecoder(*SIZES, HIDDEN))
    assert plain.encoder is attentive.encoder
    assert torch.equal(plain.encode(source).states, attentive.encode(source).states)
    assert plain(source, inputs).shape == attentive(source, inputs).shape


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("build", [copier, attention_copier])
def test_a_copier_has_the_cell_it_is_asked_for_on_both_sides(build, cell, source, inputs):
    model = build(HIDDEN, seed=0, cell=cell)
    assert model(source, inputs).isfinite().all()
    assert [type(part.rnn).__name__ for part in (model.encoder, model.decoder)] == [cell, cell]


def test_without_the_mask_padding_is_looked_at_and_changes_what_is_said(source, inputs):
    model = seeded(lambda: unmasked_copier(HIDDEN, seed=0))
    assert weights_of(model, source, inputs)[~padding_mask(source)[:, None].expand(-1, 5, -1)].all()
    assert (model(padded(source), inputs) - model(source, inputs)).abs().max() > 1e-2


def test_the_unmasked_copier_is_the_attention_copier_in_all_else(inputs):
    unpadded = random_strings(3, 9, 9)
    masked, unmasked = (build(HIDDEN, seed=5) for build in (attention_copier, unmasked_copier))
    assert torch.equal(masked(unpadded, inputs), unmasked(unpadded, inputs))


# Reversal


def test_reversal_turns_each_row_round_before_its_padding(source):
    assert torch.equal(reverse(source), DIGITS.encode(["51413", "2", "817"]))


@pytest.mark.parametrize("seed", range(5))
def test_reversal_is_its_own_inverse_on_ragged_batches(seed):
    strings = random_strings(50, seed=seed)
    assert torch.equal(reverse(reverse(strings)), strings)


def test_reversal_keeps_padding_at_the_end():
    strings = random_strings(50)
    assert torch.equal(padding_mask(reverse(strings)), padding_mask(strings))


def test_the_reversed_copier_is_the_copier_given_its_source_from_the_end(source, inputs):
    forwards, backwards = (build(HIDDEN, seed=5) for build in (copier, reversed_copier))
    assert torch.equal(backwards(source, inputs), forwards(reverse(source), inputs))


# With a teacher


def test_teacher_forcing_shifts_each_row_by_one_and_ends_it_at_its_own_end():
    inputs, targets = teacher_forcing(torch.tensor([[5, 6, 7], [8, PAD, PAD], [9, 9, PAD]]))
    assert inputs.tolist() == [[START, 5, 6, 7], [START, 8, PAD, PAD], [START, 9, 9, PAD]]
    assert targets.tolist() == [[5, 6, 7, END], [8, END, PAD, PAD], [9, 9, END, PAD]]


@pytest.mark.parametrize("t", range(5))
def test_editing_a_token_leaves_earlier_logits_unchanged_and_changes_the_rest(
    model, source, inputs, t
):
    edited = inputs.clone()
    edited[:, t] = 3 + (inputs[:, t] + 1) % 10
    moved = (model(source, edited) - model(source, inputs)).abs().amax(dim=-1)
    assert moved[:, :t].eq(0).all()
    assert moved[:, t:].gt(1e-6).all()
    assert moved[:, t].gt(1e-3).all()


def test_a_decoder_run_token_by_token_says_what_it_says_in_one_pass(model, source, inputs):
    memory, state, logits = model.encode(source), None, []
    for token in inputs.split(1, dim=1):
        said, state, _ = model.decoder(token, memory, state)
        logits.append(said)
    assert_close(torch.cat(logits, dim=1), model(source, inputs))


# Training


def test_the_loss_is_the_mean_over_real_tokens_and_counts_end_but_not_padding(
    model, source, labels
):
    log_p = model(source, teacher_forcing(labels)[0]).log_softmax(dim=-1)
    expected = []
    for b, row in enumerate(labels):
        for t, token in enumerate([*real(row)[0].tolist(), END]):
            expected.append(-log_p[b, t, token].item())
    assert len(expected) == 2 + 4 + 3 + 3
    assert loss(model, source, labels) == pytest.approx(sum(expected) / len(expected), abs=1e-6)


def trained(model, steps, seed=0):
    """The model and its losses after training to copy strings of one or two digits."""
    generator = torch.Generator().manual_seed(seed)
    batches = (2 * [digit_strings(8, 1, 2, generator)] for _ in range(steps))
    return model, train(model, batches, steps, learning_rate=1e-2)


@pytest.mark.parametrize("build", [copier, reversed_copier, attention_copier])
def test_training_lowers_the_loss_of_a_small_task(build):
    _, losses = trained(build(16, seed=0), steps=40)
    assert sum(losses[-5:]) / 5 < losses[0] * 0.7


def test_training_is_repeatable_bit_for_bit(model):
    other = copy.deepcopy(model)
    assert trained(model, steps=3)[1] == trained(other, steps=3)[1]
    assert_same_weights(model, other)


def test_other_batches_give_other_losses():
    one, other = (trained(copier(HIDDEN, seed=0), steps=3, seed=seed)[1] for seed in (0, 1))
    assert one != other


def test_training_takes_a_batch_a_step_and_no_more(source, labels):
    batches = iter([(source, labels)] * 5)
    assert len(train(seeded(MODELS["GRU"]), batches, steps=3)) == 3
    assert len(list(batches)) == 2


def test_training_is_adam_on_clipped_gradients_at_a_rate_that_falls_to_0(model, source, labels):
    by_hand, rate, steps = copy.deepcopy(model), 0.1, 4
    optimiser = torch.optim.Adam(by_hand.parameters())
    inputs, targets = teacher_forcing(labels)
    for step in range(steps):
        optimiser.param_groups[0]["lr"] = rate * (1 + math.cos(math.pi * step / steps)) / 2
        optimiser.zero_grad()
        logits = by_hand(source, inputs)
        F.cross_entropy(logits[targets != PAD], targets[targets != PAD]).backward()
        gradients = [p.grad for p in by_hand.parameters() if p.grad is not None]
        norm = torch.cat([g.flatten() for g in gradients]).norm()
        for gradient in gradients:
            gradient.div_(norm.clamp(min=1.0))
        optimiser.step()
    train(model, [(source, labels)] * steps, steps, rate)
    torch.testing.assert_close(model.state_dict(), by_hand.state_dict(), atol=1e-3, rtol=0)


# Influence


def by_steps(encoder, vectors):
    """The last hidden state of one sentence (S, E), its cell stepped by hand."""
    kind = {nn.RNN: nn.RNNCell, nn.GRU: nn.GRUCell, nn.LSTM: nn.LSTMCell}[type(encoder.rnn)]
    cell = kind(EMBEDDING, HIDDEN)
    weights = encoder.rnn.state_dict().items()
    cell.load_state_dict({name.removesuffix("_l0"): weight for name, weight in weights})
    state = None
    for vector in vectors:
        state = cell(vector[None], state)
    return parts(state)[0][0]


@pytest.mark.parametrize("cell", CELLS)
def test_the_bars_of_two_tokens_are_how_far_each_negation_moves_the_final_state(cell):
    encoder = seeded(ENCODERS[cell])
    first, second = encoder.embed(torch.tensor([4, 9]))
    final = by_steps(encoder, [first, second])
    expected = [
        (by_steps(encoder, vectors) - final).pow(2).sum().sqrt()
        for vectors in ([-first, second], [first, -second])
    ]
    assert_close(influence(encoder, torch.tensor([[4, 9]])), torch.stack(expected)[None])


def test_sentences_together_have_the_bars_that_they_have_alone(encoder):
    strings = random_strings(4, 7, 7)
    alone = [influence(encoder, row[None]) for row in strings]
    assert_close(influence(encoder, strings), torch.cat(alone))


def test_measuring_influence_changes_no_weight_and_keeps_no_gradient(encoder):
    before = copy.deepcopy(encoder)
    assert not influence(encoder, random_strings(2, 5, 5)).requires_grad
    assert_same_weights(encoder, before)


# Generation


class Listener(nn.Module):
    """An encoder whose states are what a `Script` shall say: the source, as it is."""

    def forward(self, source, mask):
        return Memory(source, None, mask)


class Script(nn.Module):
    """A decoder that says the tokens of its memory in order, END after the last digit."""

    def __init__(self, confidence=50.0, attends=False):
        super().__init__()
        self.confidence, self.attends = confidence, attends
        self.heard = []

    def forward(self, inputs, memory, state=0):
        state = state or 0
        self.heard.append(inputs)
        lines = teacher_forcing(memory.states)[1][:, state : state + inputs.shape[1]]
        logits = self.confidence * F.one_hot(lines, len(DIGITS)).float()
        logits[..., :END] = -1e4
        looks = torch.eye(memory.states.shape[1] + 1)[state][None, None].expand(len(lines), 1, -1)
        return logits, state + inputs.shape[1], looks if self.attends else None


LINES = ["7", "123", "45678"]


@pytest.fixture
def script():
    return Seq2Seq(Listener(), Script(attends=True))


def written(model, limit):
    return generate(model, DIGITS.encode(LINES), limit)


def test_generation_stops_at_end_and_writes_pad_after_it(script):
    assert written(script, limit=9).tokens.tolist() == [
        [10, END, PAD, PAD, PAD, PAD],
        [4, 5, 6, END, PAD, PAD],
        [7, 8, 9, 10, 11, END],
    ]


@pytest.mark.parametrize(
    ("limit", "ended"), [(1, [False] * 3), (4, [True, True, False]), (6, [True] * 3)]
)
def test_generation_says_whether_end_or_the_limit_stopped_it(script, limit, ended):
    generation = written(script, limit)
    assert generation.ended.tolist() == ended
    assert generation.tokens.shape == (3, limit)


def test_a_decoder_is_given_start_and_then_what_it_wrote(script):
    written(script, limit=3)
    assert torch.cat(script.decoder.heard, dim=1).tolist() == [
        [START, 10, END],
        [START, 4, 5],
        [START, 7, 8],
    ]


def test_the_attention_of_every_step_is_kept(script):
    expected = torch.eye(6)[:4].expand(3, -1, -1)
    assert torch.equal(written(script, limit=4).attention, expected)


def test_without_attention_there_is_none_to_keep(plain, source):
    assert generate(plain, source, limit=2).attention is None


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_1_is_refused(script, limit):
    with pytest.raises(ValueError, match=f"limit is {limit}: allow at least one token"):
        written(script, limit)


LIMIT = 12
STRINGS = random_strings(12)


@pytest.fixture
def fluent(model):
    """A model whose sentences end at several lengths: END made as likely as that takes."""
    bias = model.decoder.head.bias.data
    bias[:END] = -50
    for _ in range(20):
        if len(generate(model, STRINGS, LIMIT).tokens.count_nonzero(dim=1).unique()) > 1:
            return model
        bias[END] += 0.5
    raise AssertionError("all sentences have the same length")


def test_each_token_is_the_likeliest_after_those_before_it(fluent):
    generation = generate(fluent, STRINGS, LIMIT)
    inputs, _ = teacher_forcing(generation.tokens[:, :-1])
    likeliest = fluent(STRINGS, inputs).argmax(dim=-1)
    mask = padding_mask(generation.tokens)
    assert torch.equal(generation.tokens[mask], likeliest[mask])


def test_sentences_written_together_are_written_as_they_are_one_by_one(fluent):
    together = generate(fluent, STRINGS, LIMIT)
    for i, row in enumerate(STRINGS):
        alone = generate(fluent, real(row), LIMIT)
        assert torch.equal(alone.tokens, real(together.tokens[i]))
        assert torch.equal(alone.ended, together.ended[i : i + 1])


def test_attention_written_together_is_that_written_one_by_one(attentive, source):
    together = generate(attentive, source, limit=5).attention
    for row, weights in zip(source, together, strict=True):
        alone = generate(attentive, real(row), limit=5).attention[0]
        assert_close(weights[: len(alone), : alone.shape[1]], alone)


def test_generation_keeps_no_gradients(model, source):
    assert not any(
        field.requires_grad
        for field in generate(model, source, limit=2)
        if isinstance(field, torch.Tensor)
    )


WRITTEN_FOR_123 = {
    "END in its place": ([4, 5, 6, END], True),
    "padding after END": ([4, 5, 6, END, PAD, PAD], True),
    "END late": ([4, 5, 6, 7, END], False),
    "the limit where END belongs": ([4, 5, 6], False),
    "another token where END belongs": ([4, 5, 6, 7], False),
    "END early": ([4, 5, END, PAD], False),
    "END at once": ([END], False),
    "a wrong digit": ([4, 9, 6, END], False),
    "another order": ([4, 6, 5, END], False),
}


@pytest.mark.parametrize(("tokens", "exact"), WRITTEN_FOR_123.values(), ids=WRITTEN_FOR_123)
def test_a_sentence_is_exact_when_its_words_and_then_end_are_written(tokens, exact):
    assert exact_sequence(torch.tensor([tokens]), DIGITS.encode(["123"])).tolist() == [exact]


def test_each_sentence_is_judged_by_its_own_length(script):
    tokens = written(script, limit=4).tokens
    assert exact_sequence(tokens, DIGITS.encode(LINES)).tolist() == [True, True, False]


# The copy task


def test_strings_hold_digits_and_then_padding():
    strings = random_strings(100)
    mask = padding_mask(strings)
    assert strings[mask].ge(3).all()
    assert strings.lt(len(DIGITS)).all()
    assert torch.equal(mask, mask.sort(dim=1, descending=True).values)


def test_all_lengths_and_all_digits_come_equally_often():
    strings = random_strings(10_000, 3, 7)
    lengths = padding_mask(strings).sum(dim=1).bincount()
    digits = strings[padding_mask(strings)].bincount()
    assert lengths.tolist() == [0, 0, 0, *[pytest.approx(2_000, abs=200)] * 5]
    assert digits.tolist() == [0, 0, 0, *[pytest.approx(5_000, abs=350)] * 10]


def test_strings_of_one_length_have_no_padding():
    assert padding_mask(random_strings(20, 6, 6)).all()


def test_the_generator_seeds_the_strings():
    assert torch.equal(random_strings(9, seed=1), random_strings(9, seed=1))
    assert not torch.equal(random_strings(9, seed=1), random_strings(9, seed=2))


def first_batches(seed, count=3):
    return [batch for batch, _ in zip(copy_batches(seed), range(count), strict=False)]


def test_a_batch_of_the_copy_task_asks_for_its_source():
    for source, labels in first_batches(0):
        assert torch.equal(source, labels)
        assert source.shape == (128, seq2seq.LONGEST)


def test_every_batch_of_the_copy_task_is_another_and_depends_on_the_seed():
    one, again, other = (torch.stack([s for s, _ in first_batches(n)]) for n in (1, 1, 2))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)
    assert not torch.equal(one[0], one[1])


@pytest.mark.parametrize("length", [1, 8, 30])
def test_guessing_evenly_among_the_digits_brings_no_bits_across(length):
    class Guess(Script):
        def forward(self, *arguments):
            logits, state, weights = super().forward(*arguments)
            return logits.masked_fill(torch.arange(len(DIGITS)) == END, -1e4), state, weights

    measured = measure_copying(Seq2Seq(Listener(), Guess(confidence=0.0)), length)
    assert measured.bits.tolist() == [pytest.approx(0, abs=1e-3)] * 500


@pytest.mark.parametrize("length", [1, 8, 30])
def test_a_perfect_copy_brings_the_whole_string_across(script, length):
    measured = measure_copying(script, length)
    bits = length * math.log2(10)
    assert measured.bits.tolist() == [pytest.approx(bits, abs=1e-3)] * 500
    assert measured.exact.all()
    assert measured.right.all()
    assert measured.right.shape == (500, length)


def test_a_copy_that_stops_early_is_wrong_in_what_is_missing():
    class Short(Script):
        def forward(self, inputs, memory, state=0):
            first = memory._replace(states=memory.states * (torch.arange(5) < 3))
            return super().forward(inputs, first, state)

    measured = measure_copying(Seq2Seq(Listener(), Short()), 5, count=10)
    assert not measured.exact.any()
    assert measured.right.tolist() == [[True, True, True, False, False]] * 10


def test_a_copier_that_knows_what_a_teacher_tells_it_alone_gets_nothing_right():
    class Peeks(Script):
        """Says the next token that it is given, and END where it sees none."""

        def forward(self, inputs, memory, state=0):
            lines = F.pad(inputs[:, 1:], (0, 1), value=END)
            return self.confidence * F.one_hot(lines, len(DIGITS)).float(), 1, None

    assert not measure_copying(Seq2Seq(Listener(), Peeks()), 5, count=10).right.any()


def test_every_model_is_measured_on_the_same_strings(script):
    for length in (6, 6, 7):
        measure_copying(script, length, count=20)
    first, again, longer = (h for h in script.decoder.heard if h.shape[1] > 1)
    assert torch.equal(first, again)
    assert not torch.equal(longer[:, :7], first)


@pytest.mark.parametrize("width", [5, 6, 20])
def test_strings_beside_longer_ones_are_those_strings_padded_to_that_width(script, width):
    given = []
    script.encoder.register_forward_hook(lambda _, inputs, output: given.append(inputs))
    assert copied_beside(script, 5, width, count=20).tolist() == [True] * 20
    ((source, mask),) = given
    assert source.shape == (20, width)
    assert mask.tolist() == [[place < 5 for place in range(width)]] * 20


# Translation


PAIRS = grammar.pairs(50, seed=0)


@pytest.fixture(scope="module")
def languages():
    return [vocabulary(getattr(p, language) for p in PAIRS) for language in ("english", "french")]


def test_a_vocabulary_of_sentences_holds_each_word_once_in_order():
    assert vocabulary([["le", "chat"], ["chat", "dort", "le"]]).words == ("chat", "dort", "le")


def test_batches_show_every_pair_once_before_any_comes_again(languages):
    english, french = languages
    batches = translation_batches(*languages, PAIRS, seed=0, batch_size=20)
    for _ in range(2):
        seen = []
        for source, labels in (next(batches) for _ in range(3)):
            for s, t in zip(source, labels, strict=True):
                seen.append((tuple(english.decode(s)), tuple(french.decode(t))))
        assert sorted(seen) == sorted(pair[:2] for pair in PAIRS)


def first_sources(languages, seed):
    batches = translation_batches(*languages, PAIRS, seed, batch_size=50)
    return [languages[0].decode(row) for _ in range(2) for row in next(batches)[0]]


def test_the_order_of_pairs_is_another_each_time_round_and_depends_on_the_seed(languages):
    one, again, other = (first_sources(languages, seed) for seed in (1, 1, 2))
    assert one == again != other
    assert one[:50] != one[50:]


@pytest.mark.parametrize("encoder", [Encoder, BidirectionalEncoder])
@pytest.mark.parametrize("score", [None, *SCORES])
def test_a_translator_reads_one_language_and_scores_the_words_of_the_other(
    languages, encoder, score
):
    english, french = languages
    model = translator(english, french, 0, encoder, score)
    source = english.encode([pair.english for pair in PAIRS[:3]])
    inputs = french.encode([pair.french for pair in PAIRS[:3]])
    assert model(source, inputs).shape == (*inputs.shape, len(french))
    assert type(model.encoder) is encoder
    assert (model.decoder(inputs, model.encode(source))[2] is None) == (score is None)


def test_translators_of_one_seed_have_the_same_encoder_whatever_their_decoder(languages):
    encoders = [translator(*languages, 3, Encoder, score).encoder for score in (None, DotScore)]
    assert_same_weights(*encoders)


class Looks(nn.Module):
    """A decoder that looks at a word and, half as hard, at the next one."""

    def __init__(self, places):
        super().__init__()
        self.places = places

    def forward(self, inputs, memory):
        looks = F.one_hot(self.places, memory.states.shape[1]).float()
        return None, None, looks + looks.roll(1, dims=2) / 2


def test_each_word_is_aligned_with_the_word_it_looks_at_most():
    pairs = [
        grammar.Pair(("a", "b", "c"), ("x", "y"), (0, 1), ((0,), (1,))),
        grammar.Pair(("a", "b"), ("x", "y", "z"), (0, 1, 1), ((0,), (1,), (1,))),
    ]
    model = Seq2Seq(Listener(), Looks(torch.tensor([[2, 0, 1, 1], [1, 0, 1, 0]])))
    source, labels = DIGITS.encode(["123", "12"]), DIGITS.encode(["12", "123"])
    first, second = alignments(model, pairs, source, labels)
    assert first.tolist() == [[0, 0, 1], [1, 0, 0]]
    assert second.tolist() == [[0, 1], [1, 0], [0, 1]]


def one_pair(sure, possible):
    return [grammar.Pair(("he", "does", "not"), ("x",) * len(sure), tuple(sure), tuple(possible))]


@pytest.mark.parametrize(
    ("row", "error"),
    [
        ([0, 0, 1], 0),
        ([0, 1, 0], 1 / 2),
        ([1, 0, 0], 1),
        ([0.5, 0, 0.5], 1 / 2),
        ([1 / 3, 1 / 3, 1 / 3], 1 / 2),
    ],
    ids=["sure", "only possible", "wrong", "half wrong", "everywhere"],
)
def test_the_error_of_a_word_counts_what_is_sure_and_what_is_possible(row, error):
    pair = one_pair([2], [(2, 1)])
    assert alignment_error_rate(pair, [torch.tensor([row])]) == pytest.approx(error)


def test_the_error_rate_is_that_of_all_words_of_all_pairs():
    pairs = one_pair([0], [(0,)]) + one_pair([0, 1, 2], [(0,), (1,), (2,)])
    right, wrong = torch.eye(3), torch.eye(3).roll(1, dims=0)
    assert alignment_error_rate(pairs, [wrong[:1], right]) == pytest.approx(1 / 4)
    assert alignment_error_rate(pairs, [right[:1], wrong]) == pytest.approx(3 / 4)


def test_the_gold_alignment_of_the_grammar_has_no_errors():
    gold = [F.one_hot(torch.tensor(p.sure), len(p.english)).float() for p in PAIRS]
    assert alignment_error_rate(PAIRS, gold) == pytest.approx(0)


def test_an_error_rate_of_no_pairs_is_refused():
    with pytest.raises(ValueError, match="there are no pairs"):
        alignment_error_rate([], [])
