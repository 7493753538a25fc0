"""Attention without a recurrence: what may depend on what, positions, and the cache."""

import pytest
import torch
from torch import nn

import transformer
from seq2seq import DIGITS, END, PAD, copy_batches, digit_strings, generate, padding_mask, train
from transformer import (
    MultiHeadAttention,
    TransformerDecoder,
    TransformerEncoder,
    cache_bytes,
    generate_without_cache,
    positions,
    sinusoids,
    transformer_copier,
    with_positions,
)

pytestmark = pytest.mark.usefixtures("one_thread")

WIDTH, HEADS, LAYERS, LONGEST = 8, 2, 2, 24
KINDS = ["learned", "sinusoidal"]
SOURCE = DIGITS.encode(["31415", "2", "718"])
WRITTEN = digit_strings(3, 20, 20, torch.Generator().manual_seed(0))

each_kind = pytest.mark.parametrize("kind", KINDS)


def seeded(build, seed=0):
    """An untrained module with large weights, so that it answers variously."""
    torch.manual_seed(seed)
    module = build()
    with torch.no_grad():
        for name, weight in module.named_parameters():
            if not name.endswith("position"):
                weight.mul_(2)
    return module


def sizes(kind):
    return len(DIGITS), WIDTH, HEADS, LAYERS, LONGEST, kind


def built(kind="sinusoidal"):
    """A network of two blocks each side."""
    return seeded(
        lambda: transformer.Seq2Seq(
            TransformerEncoder(*sizes(kind)), TransformerDecoder(*sizes(kind))
        )
    )


def close(a, b, atol=1e-5):
    return torch.allclose(a, b, atol=atol, rtol=0)


# Attention


def test_attention_is_that_of_pytorch_with_its_weights():
    ours = seeded(lambda: MultiHeadAttention(WIDTH, HEADS))
    theirs = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
    layers = ours.query, ours.key, ours.value
    theirs.load_state_dict(
        {
            "in_proj_weight": torch.cat([layer.weight for layer in layers]),
            "in_proj_bias": torch.cat([layer.bias for layer in layers]),
            "out_proj.weight": ours.out.weight,
            "out_proj.bias": ours.out.bias,
        }
    )
    x, memory = torch.randn(3, 4, WIDTH), torch.randn(3, 5, WIDTH)
    mask = padding_mask(SOURCE)
    found, weights = ours(x, *ours.keys_and_values(memory), mask[:, None, None])
    expected, expected_weights = theirs(x, memory, memory, key_padding_mask=~mask)
    assert close(found, expected)
    assert close(weights, expected_weights)


# Positions


def test_sinusoids_are_sines_and_cosines_of_falling_frequency():
    table = sinusoids(50, 6)
    t = torch.arange(50)
    assert close(table[:, 0], t.sin())
    assert close(table[:, 1], t.cos())
    assert close(table[:, 4], (t / 10_000 ** (4 / 6)).sin())


def test_sinusoids_at_equal_distances_have_equal_products():
    table = sinusoids(40, 16)
    products = table @ table.T
    assert close(products[3, 8], products[30, 35], atol=1e-4)


def test_only_learned_positions_are_trained():
    assert positions("learned", 5, 4).requires_grad
    assert not positions("sinusoidal", 5, 4).requires_grad
    assert not positions("none", 5, 4).any()


def test_another_kind_of_positions_is_an_error_that_names_the_kinds():
    with pytest.raises(ValueError, match='"learned", "sinusoidal" or "none", not \'fixed\''):
        positions("fixed", 5, 4)


def test_positions_start_where_they_are_told():
    table = torch.arange(6.0)[:, None]
    assert with_positions(torch.zeros(1, 2, 1), table, start=3)[0, :, 0].tolist() == [3, 4]


@pytest.mark.parametrize(("length", "start"), [(7, 0), (2, 5)])
def test_more_tokens_than_positions_are_an_error(length, start):
    with pytest.raises(ValueError, match="7 tokens given: this model has positions for 6"):
        with_positions(torch.zeros(1, length, 1), torch.zeros(6, 1), start)


def test_without_positions_a_shuffled_source_gives_the_same_vectors_shuffled():
    encoder = seeded(lambda: TransformerEncoder(*sizes("none")))
    order = torch.tensor([3, 0, 4, 1, 2])
    source = SOURCE[:1]
    everything = padding_mask(source)
    before, after = (encoder(s, everything).states for s in (source, source[:, order]))
    assert close(before[:, order], after)


@each_kind
def test_with_positions_it_does_not(kind):
    encoder = seeded(lambda: TransformerEncoder(*sizes(kind)))
    order = torch.tensor([3, 0, 4, 1, 2])
    source = SOURCE[:1]
    everything = padding_mask(source)
    before, after = (encoder(s, everything).states for s in (source, source[:, order]))
    assert not close(before[:, order], after, atol=1e-2)


# What may depend on what


@each_kind
def test_padding_changes_nothing(kind):
    model = built(kind)
    longer = torch.nn.functional.pad(SOURCE, (0, 4), value=PAD)
    inputs = WRITTEN[:, :5]
    assert close(model(SOURCE, inputs), model(longer, inputs))
    assert close(model.encode(SOURCE).states, model.encode(longer).states[:, :5])
    assert not model.encode(longer).states[:, 5:].any()


@each_kind
def test_a_sentence_is_read_alike_alone_and_in_a_batch(kind):
    model = built(kind)
    alone = model(SOURCE[1:2, :1], WRITTEN[1:2])
    assert close(model(SOURCE, WRITTEN)[1:2], alone)


@each_kind
def test_an_edited_token_changes_no_earlier_answer(kind):
    model = built(kind)
    edited = WRITTEN.clone()
    edited[:, 7] = 3 + (edited[:, 7] - 2) % 10
    before, after = model(SOURCE, WRITTEN), model(SOURCE, edited)
    assert close(before[:, :7], after[:, :7])
    assert not close(before[:, 7:], after[:, 7:], atol=1e-3)


def test_a_changed_source_changes_weights_and_answers():
    model = built()
    logits, _, weights = model.decoder(WRITTEN, model.encode(SOURCE))
    other, _, other_weights = model.decoder(WRITTEN, model.encode(SOURCE.roll(1, dims=0)))
    assert not close(logits, other, atol=1e-3)
    assert not close(weights, other_weights, atol=1e-3)


def test_weights_sum_to_one_over_real_tokens():
    model = built()
    weights = model.decoder(WRITTEN, model.encode(SOURCE))[2]
    assert weights.shape == (3, 20, 5)
    assert close(weights.sum(dim=2), torch.ones(3, 20))
    assert not weights.masked_select(~padding_mask(SOURCE)[:, None]).any()


def test_a_sentence_without_a_real_token_is_an_error():
    with pytest.raises(ValueError, match="no real token: give it at least one"):
        built().encode(torch.tensor([[3, 4], [PAD, PAD]]))


def test_the_copier_has_the_same_weights_for_the_same_seed():
    first, again, other = (transformer_copier("learned", seed) for seed in (0, 0, 1))
    same, differ = (
        [torch.equal(p, q) for p, q in zip(first.parameters(), m.parameters(), strict=True)]
        for m in (again, other)
    )
    assert all(same)
    assert not all(differ)


@each_kind
def test_it_learns(kind):
    losses = train(transformer_copier(kind, seed=0), copy_batches(0, 8), 30)
    assert sum(losses[-5:]) < 0.9 * sum(losses[:5])


# The cache


@each_kind
@torch.no_grad()
def test_one_token_after_another_gives_what_all_at_once_do(kind):
    model = built(kind)
    memory, state, steps = model.encode(SOURCE), None, []
    for t in range(20):
        logits, state, _ = model.decoder(WRITTEN[:, t : t + 1], memory, state)
        steps.append(logits)
    assert close(torch.cat(steps, dim=1), model(SOURCE, WRITTEN))


@torch.no_grad()
def test_so_do_several_tokens_after_several():
    model = built()
    memory = model.encode(SOURCE)
    first, state, _ = model.decoder(WRITTEN[:, :6], memory)
    second, state, _ = model.decoder(WRITTEN[:, 6:7], memory, state)
    third, _, _ = model.decoder(WRITTEN[:, 7:], memory, state)
    assert close(torch.cat([first, second, third], dim=1), model(SOURCE, WRITTEN))


@torch.no_grad()
def test_a_cache_is_not_changed_by_the_step_that_takes_it():
    model = built()
    memory = model.encode(SOURCE)
    _, state, _ = model.decoder(WRITTEN[:, :3], memory)
    once, again = (model.decoder(WRITTEN[:, 3:4], memory, state)[0] for _ in range(2))
    assert torch.equal(once, again)
    assert state.written[0][0].shape[2] == 3


@each_kind
@pytest.mark.parametrize("limit", [1, 9, LONGEST])
@pytest.mark.parametrize("seed", range(3))
def test_what_is_written_with_and_without_the_cache_is_the_same(kind, limit, seed):
    model = built(kind)
    with torch.no_grad():
        model.decoder.head.bias[END] += 2  # so that sentences end, and not all at once
    source = digit_strings(12, 1, 20, torch.Generator().manual_seed(seed))
    cached, plain = (write(model, source, limit) for write in (generate, generate_without_cache))
    assert torch.equal(cached.tokens, plain.tokens)
    assert torch.equal(cached.ended, plain.ended)
    assert limit == 1 or len(set(padding_mask(cached.tokens).sum(dim=1).tolist())) > 1


def test_the_cache_goes_no_further_than_the_positions():
    with pytest.raises(ValueError, match=f"{LONGEST + 1} tokens given"):
        generate(built(), SOURCE, LONGEST + 1)


@torch.no_grad()
def test_the_bytes_of_a_cache_are_those_of_its_tensors():
    model = built()
    _, state, _ = model.decoder(WRITTEN[:, :7], model.encode(SOURCE))
    each = 4 * 2 * LAYERS * WIDTH * len(SOURCE)  # for a token
    assert cache_bytes(state) == (7 * each, 5 * each)
