"""Beam search against the truth and against greedy writing; a model's own words in its inputs."""

import copy
from itertools import product

import pytest
import torch
import torch.nn.functional as F

import seq2seq
import weights
from seq2seq import (
    DIGITS,
    END,
    OWN_SHARES,
    PAD,
    START,
    AttentionDecoder,
    Decoder,
    Encoder,
    ScheduledSampling,
    Seq2Seq,
    answer_both_ways,
    attention_copier,
    beam_search,
    copier,
    digit_strings,
    draw_freely,
    exact_sequence,
    generate,
    length_penalty,
    log_probability,
    mixed_inputs,
    padding_mask,
    reinforce,
    reinforce_loss,
    short_copies,
    teacher_forcing,
    train,
)

pytestmark = pytest.mark.usefixtures("one_thread")

TOKENS, LIMIT = 4, 4
GOING_ON = [token for token in range(TOKENS) if token != END]
EVERY = [
    *((*start, END) for n in range(LIMIT) for start in product(GOING_ON, repeat=n)),
    *product(GOING_ON, repeat=LIMIT),
]
SOURCE = torch.tensor([[3, 1, 3], [3, 3, PAD]])
KINDS = ["RNN", "GRU", "LSTM", "attention"]


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def tiny(seed, kind="GRU"):
    """Four tokens, random weights, and a last layer that makes the network decided."""
    torch.manual_seed(seed)
    cell = "GRU" if kind == "attention" else kind
    encoder = Encoder(TOKENS, 5, 6, cell)
    decoder = (
        AttentionDecoder(TOKENS, 5, 6, 6) if kind == "attention" else Decoder(TOKENS, 5, 6, cell)
    )
    decoder.head.weight.data *= 12
    return Seq2Seq(encoder, decoder).eval()


@torch.no_grad()
def scored(model, source, alpha):
    """[(score, sequence)] of every sequence, the best first, each computed on its own."""
    memory = model.encode(source)
    found = []
    for sequence in EVERY:
        tokens = torch.tensor([sequence])
        inputs = torch.tensor([[START, *sequence[:-1]]])
        nats = model.decoder(inputs, memory)[0].log_softmax(dim=-1)
        total = nats.gather(2, tokens[..., None]).sum().item()
        found.append((total / length_penalty(len(sequence), alpha), sequence))
    return sorted(found, reverse=True)


@pytest.fixture(scope="module")
def trained():
    """The stored copier with a fixed vector, 200 strings, and what it writes greedily."""
    model = copier(64, seed=0)
    weights.load("copier-gru", model)
    strings = digit_strings(200, 10, 10, generator(7))
    return model, strings, generate(model, strings, limit=11)


# Beam search


def test_there_are_as_many_sequences_as_the_widest_beam_may_keep():
    assert len(EVERY) == 121
    with pytest.raises(ValueError, match="keep 1 to 121"):
        beam_search(tiny(0), SOURCE, LIMIT, width=122)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("kind", KINDS)
def test_at_full_width_it_is_the_exhaustive_search(kind, alpha):
    for seed in range(3):
        model = tiny(seed, kind)
        found = beam_search(model, SOURCE, LIMIT, len(EVERY), alpha)
        for row, source in enumerate((SOURCE[:1], SOURCE[1:, :2])):
            expected = scored(model, source, alpha)
            torch.testing.assert_close(
                found.score[row], torch.tensor([score for score, _ in expected]), rtol=0, atol=1e-4
            )
            best = expected[0][1]
            assert found.tokens[row, 0].tolist() == [*best, *[PAD] * (LIMIT - len(best))]
            assert found.ended[row, 0] == (best[-1] == END)


@pytest.mark.parametrize("kind", KINDS)
def test_at_width_one_it_is_greedy(kind):
    for seed in range(20):
        model = tiny(seed, kind)
        greedy = generate(model, SOURCE, LIMIT)
        found = beam_search(model, SOURCE, LIMIT, width=1)
        padded = F.pad(greedy.tokens, (0, LIMIT - greedy.tokens.shape[1]), value=PAD)
        assert torch.equal(found.tokens[:, 0], padded)
        assert torch.equal(found.ended[:, 0], greedy.ended)


def test_a_trained_copier_is_greedy_at_width_one(trained):
    model, strings, greedy = trained
    found = beam_search(model, strings, limit=11, width=1)
    assert torch.equal(found.tokens[:, 0, : greedy.tokens.shape[1]], greedy.tokens)


def test_at_width_four_it_is_never_worse_than_greedy_by_its_own_score(trained):
    model, strings, greedy = trained
    assert len(strings) == 200
    with torch.no_grad():
        by_greedy = log_probability(model, strings, greedy.tokens)
    found = beam_search(model, strings, limit=11, width=4)
    assert (found.score[:, 0] >= by_greedy - 1e-4).all()
    assert (found.score[:, 0] > by_greedy + 1e-4).any()


def test_the_log_probability_is_that_of_the_tokens(trained):
    model, strings, _ = trained
    found = beam_search(model, strings, limit=11, width=3)
    for beam in range(3):
        ended = found.ended[:, beam]
        with torch.no_grad():
            nats = log_probability(model, strings, found.tokens[:, beam])
        torch.testing.assert_close(
            found.log_probability[ended, beam], nats[ended], rtol=0, atol=1e-3
        )


def test_hypotheses_come_best_first_are_different_and_end_once(trained):
    model, strings, _ = trained
    found = beam_search(model, strings, limit=11, width=4)
    assert (found.score.diff(dim=1) <= 0).all()
    assert all(len({tuple(t) for t in row.tolist()}) == 4 for row in found.tokens)
    ends = (found.tokens == END).sum(dim=2)
    assert torch.equal(ends == 1, found.ended)
    behind = (found.tokens == END).cumsum(dim=2).roll(1, dims=2)[..., 1:] > 0
    assert (found.tokens[..., 1:][behind] == PAD).all()


def test_company_in_the_batch_changes_nothing(trained):
    model, strings, _ = trained
    together = beam_search(model, strings[:5], limit=11, width=4)
    alone = beam_search(model, strings[:1], limit=11, width=4)
    assert torch.equal(alone.tokens[0], together.tokens[0])


@pytest.mark.parametrize("width", [0, -1])
def test_a_width_below_one_is_an_error_that_says_so(width):
    with pytest.raises(ValueError, match=f"width is {width}: with 121 sequences, keep 1 to 121"):
        beam_search(tiny(0), SOURCE, LIMIT, width)


def test_a_limit_below_one_is_an_error_that_says_so():
    with pytest.raises(ValueError, match="limit is 0: allow at least one token"):
        beam_search(tiny(0), SOURCE, 0, width=1)


def test_without_alpha_nothing_is_divided_and_with_it_longer_ones_come_closer_to_zero():
    assert length_penalty(7, 0.0) == 1
    assert -3 / length_penalty(9, 1.0) > -3 / length_penalty(4, 1.0)


# Own words in the inputs


def test_scheduled_sampling_with_probability_0_is_teacher_forcing_bit_for_bit():
    taught, mixed = attention_copier(16, seed=0), attention_copier(16, seed=0)
    losses = train(taught, short_copies(0, longest=5), steps=5)
    sampling = ScheduledSampling(mixed, "never", steps=5, seed=0)
    assert train(sampling, short_copies(0, longest=5), steps=5) == losses
    for name, tensor in taught.state_dict().items():
        assert torch.equal(tensor, mixed.state_dict()[name]), name


def test_with_probability_1_the_inputs_are_what_it_writes_freely(trained):
    model, strings, greedy = trained
    inputs, _ = teacher_forcing(strings)
    mixed = mixed_inputs(model, strings, inputs, 1.0, generator())
    assert (mixed[:, 0] == START).all()
    until_end = (greedy.tokens != END).cumprod(dim=1).bool()[:, :10]
    assert torch.equal(mixed[:, 1:][until_end], greedy.tokens[:, :10][until_end])


@pytest.mark.parametrize("whole", [False, True])
def test_words_are_replaced_one_by_one_or_for_a_whole_sequence(whole):
    torch.manual_seed(0)
    model = copier(8, seed=0)  # untrained: what it writes is nearly always another word
    strings = digit_strings(400, 6, 6, generator())
    inputs, _ = teacher_forcing(strings)
    before = inputs.clone()
    mixed = mixed_inputs(model, strings, inputs, 0.5, generator(1), whole)
    assert torch.equal(inputs, before)
    own = (mixed != inputs)[:, 1:].sum(dim=1)
    untouched = (own == 0).float().mean()
    assert (untouched > 0.4) == whole
    assert abs((mixed != inputs)[:, 1:].float().mean() - 0.45) < 0.1


@pytest.mark.parametrize("name", OWN_SHARES)
def test_a_share_of_own_words_never_falls_and_stays_between_0_and_1(name):
    shares = [OWN_SHARES[name](i / 100) for i in range(101)]
    assert shares == sorted(shares)
    assert shares[0] >= 0
    assert shares[-1] <= 1


# The reward


def test_the_gradient_of_the_loss_is_that_of_the_expected_reward():
    """On a vocabulary so small that the expectation is a sum over all sequences."""
    model = tiny(0)
    model.decoder.head.weight.data /= 12  # less decided, so that the reward is not rare
    model.decoder.head.bias.data[PAD] = -20  # as training leaves it
    source = labels = torch.tensor([[3]])
    wanted = torch.tensor([[3, END]])

    def gradient(loss):
        return torch.cat([g.flatten() for g in torch.autograd.grad(loss, model.parameters())])

    exact = -gradient(log_probability(model, source, wanted).exp().sum())
    drawn = generator()
    means = {}
    for baseline in (False, True):
        losses = [
            reinforce_loss(
                model,
                source.expand(400, 1),
                labels.expand(400, 1),
                drawn,
                baseline,
            )[0]
            for _ in range(10)
        ]
        means[baseline] = gradient(torch.stack(losses).mean())
    for mean in means.values():
        assert (mean - exact).norm() < 0.15 * exact.norm()


def test_words_are_drawn_with_their_probabilities_until_end():
    model = copier(8, seed=0)
    strings = digit_strings(1, 3, 3, generator()).expand(4000, 3)
    drawn = draw_freely(model, strings, limit=6, generator=generator(1))
    with torch.no_grad():
        logits = model(strings[:1], torch.tensor([[START]]))[0, 0]
    shares = drawn[:, 0].bincount(minlength=len(DIGITS)) / 4000
    assert (shares - logits.softmax(dim=0)).abs().max() < 0.03
    after_end = (drawn == END).cumsum(dim=1).roll(1, dims=1)[:, 1:] > 0
    assert (drawn[:, 1:][after_end] == PAD).all()


def test_training_on_the_reward_raises_it():
    model = copier(16, seed=0)
    train(model, short_copies(0, longest=2), steps=60)
    before = copy.deepcopy(model)
    rewards = reinforce(model, short_copies(1, longest=2), steps=60, seed=0, learning_rate=1e-3)
    assert sum(rewards[-10:]) > sum(rewards[:10])
    assert any(
        not torch.equal(a, b) for a, b in zip(before.parameters(), model.parameters(), strict=True)
    )


# With a teacher and without


def test_both_ways_agree_up_to_the_first_mistake(trained):
    model, strings, greedy = trained
    targets, forced, free = answer_both_ways(model, strings, strings)
    assert torch.equal(free[:, : greedy.tokens.shape[1]], greedy.tokens)
    right = (free == targets).cumprod(dim=1).bool()
    reached = F.pad(right[:, :-1], (1, 0), value=True)
    assert torch.equal(forced[reached], free[reached])
    assert torch.equal(exact_sequence(free, strings), (free == targets).all(dim=1))
    assert torch.equal(padding_mask(targets), targets != seq2seq.PAD)
