"""The reader: what it is given and gives, what may depend on what, how it is trained and read."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from reader import (
    END,
    START,
    VOCABULARY,
    DecoderBlock,
    EncoderBlock,
    Reader,
    Reading,
    Residual,
    causal_mask,
    exact_sequence,
    generate,
    patchify,
    teacher_forcing,
    train,
)

pytestmark = pytest.mark.usefixtures("one_thread")

IMAGE, PATCH = (8, 24), 4
PATCHES = 12
WIDTH, HEADS = 16, 2
MAX_TOKENS = 4

both_norms = pytest.mark.parametrize("norm_first", [False, True], ids=["post-norm", "pre-norm"])


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


def small_reader(seed=0, **changed):
    """A reader of small images; large positions make even an untrained one answer variously."""
    small = {"image_size": IMAGE, "patch": PATCH, "width": WIDTH, "heads": HEADS}
    torch.manual_seed(seed)
    return Reader(**({**small, "max_tokens": MAX_TOKENS, "position_std": 1.0} | changed)).eval()


def some_images(n, seed=0):
    return torch.rand(n, *IMAGE, generator=torch.Generator().manual_seed(seed))


def some_labels(n, seed=0):
    return torch.randint(10, (n, 3), generator=torch.Generator().manual_seed(seed))


def parameters(model):
    return {name: p.numel() for name, p in model.named_parameters()}


def recorded(module):
    """A list that grows by (inputs, output) whenever the module is called."""
    calls = []
    module.register_forward_hook(lambda _, inputs, output: calls.append((inputs, output)))
    return calls


def equal_weights(some, other):
    pairs = zip(some.parameters(), other.parameters(), strict=True)
    return all(torch.equal(p, q) for p, q in pairs)


def assert_normalised(x):
    """As a fresh layer norm leaves it: mean 0 and variance 1 over the width."""
    zero = torch.zeros(x.shape[:-1])
    torch.testing.assert_close(x.mean(dim=-1), zero, atol=1e-5, rtol=0)
    torch.testing.assert_close(x.var(dim=-1, correction=0), zero + 1, atol=1e-2, rtol=0)


# Patches


def test_patches_come_in_reading_order():
    image = torch.arange(24).view(1, 4, 6)
    assert patchify(image, 2)[0].tolist() == [
        *([0, 1, 6, 7], [2, 3, 8, 9], [4, 5, 10, 11]),
        *([12, 13, 18, 19], [14, 15, 20, 21], [16, 17, 22, 23]),
    ]


def test_patches_put_back_are_the_images():
    images = some_images(3)
    columns = patchify(images, PATCH).transpose(1, 2)  # (B, patch², P), as fold takes them
    assert torch.equal(F.fold(columns, IMAGE, kernel_size=PATCH, stride=PATCH)[:, 0], images)


@pytest.mark.parametrize(("patch", "shape"), [(1, (192, 1)), (8, (3, 64)), (2, (48, 4))])
def test_every_pixel_is_in_one_patch_whatever_its_size(patch, shape):
    images = some_images(2)
    patches = patchify(images, patch)
    assert patches.shape == (2, *shape)
    assert torch.equal(patches.flatten(1).sort().values, images.flatten(1).sort().values)


@pytest.mark.parametrize(("height", "width"), [(28, 30), (30, 28), (3, 3)])
def test_a_patch_that_does_not_divide_the_image_is_refused(height, width):
    with pytest.raises(ValueError, match=f"patch 7 does not divide an image of {height} x {width}"):
        patchify(torch.zeros(1, height, width), 7)


# Blocks


def test_post_norm_normalises_what_it_returns():
    x = torch.randn(2, 5, WIDTH)
    residual = Residual(WIDTH, norm_first=False)
    assert_normalised(residual(x, lambda x: 3 * x + 1))


def test_post_norm_gives_its_sublayer_the_stream_as_it_is():
    x, given = torch.randn(2, 5, WIDTH), []
    Residual(WIDTH, norm_first=False)(x, lambda x: given.append(x) or x)
    assert torch.equal(given[0], x)


def test_pre_norm_gives_its_sublayer_a_normalised_stream():
    x, given = 3 * torch.randn(2, 5, WIDTH) + 1, []
    Residual(WIDTH, norm_first=True)(x, lambda x: given.append(x) or x)
    assert_normalised(given[0])


def test_pre_norm_adds_to_the_stream_and_leaves_it_otherwise_unchanged():
    x = torch.randn(2, 5, WIDTH)
    assert torch.equal(Residual(WIDTH, norm_first=True)(x, torch.zeros_like), x)


def encoded(block, x):
    return block(x)


def decoded(block, x):
    return block(x, torch.randn(2, 3, WIDTH), causal_mask(x.shape[1]))[0]


both_blocks = pytest.mark.parametrize(
    ("kind", "call"), [(EncoderBlock, encoded), (DecoderBlock, decoded)], ids=["encoder", "decoder"]
)


@both_blocks
def test_a_post_norm_block_returns_normalised_positions(kind, call):
    assert_normalised(call(kind(WIDTH, HEADS), torch.randn(2, 5, WIDTH)))


@both_blocks
def test_a_pre_norm_block_whose_sublayers_return_0_changes_nothing(kind, call):
    block = kind(WIDTH, HEADS, norm_first=True)
    for module in block.modules():
        if isinstance(module, nn.Linear):
            nn.init.zeros_(module.weight)
            nn.init.zeros_(module.bias)
    x = torch.randn(2, 5, WIDTH)
    assert torch.equal(call(block, x), x)


def test_a_pre_norm_decoder_block_asks_the_memory_with_a_normalised_stream():
    block = DecoderBlock(WIDTH, HEADS, norm_first=True)
    calls = recorded(block.cross_attention)
    decoded(block, 3 * torch.randn(2, 5, WIDTH) + 1)
    query, _keys, _values = calls[0][0]
    assert_normalised(query)


@both_norms
def test_without_positions_the_encoder_block_sees_no_order(norm_first):
    block = EncoderBlock(WIDTH, HEADS, norm_first)
    x, shuffle = torch.randn(2, 9, WIDTH), torch.randperm(9)
    torch.testing.assert_close(block(x[:, shuffle]), block(x)[:, shuffle])


def test_with_positions_the_encoder_sees_the_order():
    images = some_images(1)
    left, right = images[..., :PATCH], images[..., PATCH:]
    encoder = small_reader().encoder
    of_rolled = encoder(torch.cat([right, left], dim=2))
    rolled = encoder(images).view(2, 6, WIDTH).roll(-1, dims=1).view(1, PATCHES, WIDTH)
    assert (of_rolled - rolled).abs().max() > 0.1


def test_with_positions_the_decoder_sees_the_order():
    tokens = torch.tensor([[START, 3, 5, 7], [START, 5, 3, 7]])
    logits = small_reader(layers=1)(some_images(1).expand(2, -1, -1), tokens)
    assert (logits[0, 3] - logits[1, 3]).abs().max() > 0.01


def test_the_causal_mask_is_minus_infinity_above_the_diagonal():
    no = -torch.inf
    assert causal_mask(3).tolist() == [[0, no, no], [0, 0, no], [0, 0, 0]]


# The model


def test_the_tokens_are_the_ten_digits_start_and_end():
    assert (START, END, VOCABULARY) == (10, 11, 12)


def test_the_article_model_has_534348_parameters():
    assert sum(parameters(Reader()).values()) == 534_348


def test_norm_first_adds_the_two_final_norms_and_nothing_else():
    post, pre = parameters(Reader()), parameters(Reader(norm_first=True))
    added = ["encoder.norm.weight", "encoder.norm.bias", "decoder.norm.weight", "decoder.norm.bias"]
    assert pre == post | dict.fromkeys(added, 96)


@both_norms
def test_the_memory_is_normalised_whichever_norm_comes_last(norm_first):
    assert_normalised(small_reader(norm_first=norm_first).encoder(some_images(2)))


@both_norms
def test_the_head_is_given_normalised_positions_whichever_norm_comes_last(norm_first):
    model = small_reader(norm_first=norm_first)
    calls = recorded(model.decoder.head)
    model(some_images(2), torch.full((2, 1), START))
    (x,), _ = calls[0]
    assert_normalised(x)


@pytest.mark.parametrize("batch", [1, 7])
@pytest.mark.parametrize("length", [1, 4])
def test_there_is_one_score_for_each_token_of_the_vocabulary(batch, length):
    tokens = torch.full((batch, length), START)
    assert Reader()(torch.zeros(batch, 28, 84), tokens).shape == (batch, length, 12)


@pytest.mark.parametrize("batch", [1, 7])
def test_the_memory_has_one_vector_for_each_patch(batch):
    assert Reader().encoder(torch.zeros(batch, 28, 84)).shape == (batch, 48, 96)


@pytest.mark.parametrize("std", [0.02, 0.5])
@pytest.mark.parametrize("part", ["encoder", "decoder"])
def test_position_std_is_the_spread_of_the_first_positions(part, std):
    torch.manual_seed(0)
    position = getattr(Reader(position_std=std), part).position
    assert position.std().item() == pytest.approx(std, rel=0.1)


def test_images_of_another_size_are_refused():
    with pytest.raises(
        ValueError, match=r"images have shape \(5, 8, 20\): this reader takes \(8, 24\) each"
    ):
        small_reader()(torch.zeros(5, 8, 20), torch.full((5, 1), START))


def test_more_tokens_than_positions_are_refused():
    with pytest.raises(ValueError, match="5 tokens given: this reader has 4 token positions"):
        small_reader()(some_images(1), torch.full((1, 5), START))


# What depends on what


@pytest.fixture(params=[False, True], ids=["post-norm", "pre-norm"])
def reader(request):
    return small_reader(norm_first=request.param)


@pytest.fixture
def example():
    """One image and the decoder's inputs for it."""
    return some_images(1), teacher_forcing(some_labels(1))[0]


def moved(before, after):
    """How far the logits of each position moved, (B, T)."""
    return (after - before).abs().amax(dim=-1)


@pytest.mark.parametrize("t", range(MAX_TOKENS))
def test_editing_a_token_leaves_earlier_logits_unchanged_and_changes_the_rest(reader, example, t):
    images, tokens = example
    edited = tokens.clone()
    edited[0, t] = (tokens[0, t] + 1) % 10
    change = moved(reader(images, tokens), reader(images, edited))[0]
    assert change[:t].eq(0).all()
    assert change[t:].gt(1e-3).all()


def test_every_patch_of_the_image_has_a_say_in_every_position(reader, example):
    image, tokens = example
    patches = torch.eye(PATCHES).view(PATCHES, *(side // PATCH for side in IMAGE))
    darker = image + patches.repeat_interleave(PATCH, 1).repeat_interleave(PATCH, 2)
    change = moved(reader(image, tokens), reader(darker, tokens.expand(PATCHES, -1)))
    assert change.gt(1e-3).all()


def test_images_of_one_batch_do_not_mix(reader):
    images, tokens = some_images(3), teacher_forcing(some_labels(3))[0]
    torch.testing.assert_close(reader(images[1:2], tokens[1:2]), reader(images, tokens)[1:2])


@pytest.fixture
def memories(reader):
    """The encoder's states of an image, and the same with one state changed."""
    memory = reader.encoder(some_images(1))
    changed = memory.clone()
    changed[0, 5] += 1 + torch.arange(WIDTH) % 3
    return memory, changed


def test_the_memory_decides_where_the_decoder_looks(reader, memories, example):
    before, after = (reader.decoder(example[1], m, need_weights=True)[1] for m in memories)
    assert moved(before, after).gt(1e-3).all()


def test_the_memory_decides_what_the_decoder_says(reader, memories, example):
    before, after = (reader.decoder(example[1], m)[0] for m in memories)
    assert moved(before, after).gt(1e-3).all()


def test_attention_weights_are_shares_that_sum_to_1(reader, memories):
    tokens = teacher_forcing(some_labels(1))[0]
    weights = reader.decoder(tokens, memories[0], need_weights=True)[1]
    assert weights.shape == (1, MAX_TOKENS, PATCHES)
    assert weights.ge(0).all()
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(1, MAX_TOKENS))


def test_the_decoder_returns_the_attention_of_its_last_block(reader, memories, example):
    looked = recorded(reader.decoder.blocks[-1].cross_attention)
    weights = reader.decoder(example[1], memories[0], need_weights=True)[1]
    assert torch.equal(weights, looked[-1][1][1])


def test_the_decoder_keeps_its_attention_to_itself_unless_asked(reader, memories, example):
    logits, weights = reader.decoder(example[1], memories[0])
    assert weights is None
    torch.testing.assert_close(
        logits, reader.decoder(example[1], memories[0], need_weights=True)[0]
    )


# Training


def test_a_number_without_digits_is_start_and_then_end():
    inputs, targets = teacher_forcing(torch.empty(2, 0, dtype=torch.long))
    assert inputs.tolist() == [[START], [START]]
    assert targets.tolist() == [[END], [END]]


def test_teacher_forcing_gives_start_and_the_digits_and_asks_for_the_digits_and_end():
    inputs, targets = teacher_forcing(torch.tensor([[3, 1, 4], [0, 0, 9]]))
    assert inputs.tolist() == [[START, 3, 1, 4], [START, 0, 0, 9]]
    assert targets.tolist() == [[3, 1, 4, END], [0, 0, 9, END]]


BATCH = 8


def trained(model, n=BATCH, epochs=1, **options):
    """The model and the losses after training on n images in batches of 8."""
    losses = list(train(model, some_images(n), some_labels(n), epochs, BATCH, **options))
    return model, losses


def teacher_forced_loss(model, order=slice(None)):
    inputs, targets = teacher_forcing(some_labels(BATCH)[order])
    logits = model(some_images(BATCH)[order], inputs)
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def test_one_step_on_one_batch_lowers_its_loss(reader):
    before = teacher_forced_loss(reader)
    trained(reader)
    assert teacher_forced_loss(reader) < before


def test_a_batch_seen_again_and_again_is_learnt(reader):
    _, losses = trained(reader, epochs=30, learning_rate=1e-2)
    assert losses[-1] < losses[0] / 4


def test_training_yields_one_loss_an_epoch(reader):
    assert len(trained(reader, n=3 * BATCH, epochs=5)[1]) == 5


def test_the_loss_is_that_of_a_token_with_a_teacher(reader):
    before = teacher_forced_loss(reader).item()
    assert trained(reader)[1] == [pytest.approx(before, rel=1e-6)]


def test_the_loss_of_an_epoch_is_the_mean_over_its_batches(reader):
    images, labels = some_images(2 * BATCH), some_labels(2 * BATCH)
    order = torch.randperm(2 * BATCH, generator=torch.Generator().manual_seed(0))
    still = {"epochs": 1, "batch_size": BATCH, "learning_rate": 0.0}
    halves = [next(train(reader, images[b], labels[b], **still)) for b in order.split(BATCH)]
    assert next(train(reader, images, labels, **still)) == pytest.approx(sum(halves) / 2)


def test_an_epoch_of_one_batch_is_one_step_of_adamw(reader):
    by_hand = copy.deepcopy(reader)
    optimiser = torch.optim.AdamW(by_hand.parameters(), lr=1e-3, weight_decay=0.01)
    order = torch.randperm(BATCH, generator=torch.Generator().manual_seed(0))
    teacher_forced_loss(by_hand, order).backward()
    optimiser.step()
    assert equal_weights(trained(reader)[0], by_hand)


def test_weight_decay_shrinks_the_weights():
    unused = [trained(small_reader(), weight_decay=d)[0].decoder.embed.weight for d in (0, 10)]
    torch.testing.assert_close(unused[1][END], unused[0][END] * (1 - 1e-3 * 10))


def numbered_batches(n, epochs, seed=0):
    """The images of each batch by number: image i is grey in the shade i / n."""
    model = small_reader()
    given = recorded(model)
    images = (torch.arange(n) / n).view(n, 1, 1).expand(n, *IMAGE)
    list(train(model, images, some_labels(n), epochs, BATCH, seed=seed))
    return [(inputs[0][:, 0, 0] * n).round().int().tolist() for inputs, _ in given]


def test_images_that_do_not_fill_a_batch_are_left_out():
    assert [len(batch) for batch in numbered_batches(3 * BATCH - 1, epochs=2)] == [BATCH] * 4


def test_an_epoch_shows_every_image_once():
    first, second, third = numbered_batches(3 * BATCH, epochs=1)
    assert sorted(first + second + third) == list(range(3 * BATCH))


def test_every_epoch_has_an_order_of_its_own():
    first, second = numbered_batches(BATCH, epochs=2)
    assert first != second


def test_the_seed_orders_the_batches():
    assert numbered_batches(16, epochs=2, seed=1) == numbered_batches(16, epochs=2, seed=1)
    assert numbered_batches(16, epochs=2, seed=1) != numbered_batches(16, epochs=2, seed=2)


def weights_of(model_seed, order_seed):
    return trained(small_reader(model_seed), n=3 * BATCH, epochs=2, seed=order_seed)[0]


def test_the_same_seeds_give_the_same_weights_bit_for_bit():
    assert equal_weights(weights_of(3, 5), weights_of(3, 5))


@pytest.mark.parametrize("seeds", [(4, 5), (3, 6)], ids=["model", "order"])
def test_another_seed_gives_other_weights(seeds):
    assert not equal_weights(weights_of(3, 5), weights_of(*seeds))


def test_each_epoch_trains_in_training_mode():
    model = small_reader()
    for _ in train(model, some_images(BATCH), some_labels(BATCH), 2, BATCH):
        assert model.training
        generate(model, some_images(1))


def test_too_few_images_for_a_batch_are_refused():
    with pytest.raises(ValueError, match="7 images do not fill one batch of 8"):
        trained(small_reader(), n=7)


# Generation


class Script(nn.Module):
    """A reader whose images tell it what to say: the pixel in column t of an image is token t."""

    def __init__(self, length):
        super().__init__()
        self.encoder = Pixels()
        self.decoder = Prompter(length)


class Pixels(nn.Module):
    def forward(self, images):
        return images.transpose(1, 2)  # (B, T, 1)


class Prompter(nn.Module):
    def __init__(self, length):
        super().__init__()
        self.position = nn.Parameter(torch.zeros(length, 1))

    def forward(self, tokens, memory, need_weights=False):
        said = memory[:, : tokens.shape[1], 0]
        looks = torch.eye(memory.shape[1])[: tokens.shape[1]]
        return 50 * F.one_hot(said.long(), VOCABULARY).float(), looks.expand(len(said), -1, -1)


LINES = [
    [END, 1, 2, 3],
    [7, 8, 9, END],
    [4, END, 5, 6],
    [1, 1, 1, 1],
]


@pytest.fixture
def script():
    return Script(length=4)


def generated(script, lines=LINES, **options):
    return generate(script, torch.tensor(lines).unsqueeze(1).float(), **options)


def test_generation_stops_at_end_and_writes_nothing_after_it(script):
    assert generated(script).tokens.tolist() == [
        [END, END, END, END],
        [7, 8, 9, END],
        [4, END, END, END],
        [1, 1, 1, 1],
    ]


def test_lengths_count_the_tokens_generated_end_included(script):
    assert generated(script).lengths.tolist() == [1, 4, 2, 4]


def test_generation_says_whether_end_or_the_limit_stopped_it(script):
    assert generated(script).ended.tolist() == [True, True, True, False]


def test_a_lower_limit_cuts_the_longer_readings(script):
    reading = generated(script, limit=2)
    assert reading.tokens.tolist() == [[END, END], [7, 8], [4, END], [1, 1]]
    assert reading.lengths.tolist() == [1, 2, 2, 2]
    assert reading.ended.tolist() == [True, False, True, False]


def test_probabilities_are_0_after_the_end(script):
    expected = torch.tensor([[1, 0, 0, 0], [1, 1, 1, 1], [1, 1, 0, 0], [1, 1, 1, 1.0]])
    torch.testing.assert_close(generated(script).probabilities, expected)


def test_attention_is_that_of_the_newest_token_and_0_after_the_end(script):
    lengths, attention = torch.tensor([1, 4, 2, 4]), generated(script).attention
    written = torch.arange(4) < lengths[:, None]
    assert torch.equal(attention, torch.eye(4) * written[..., None])


def test_the_decoder_is_given_start_and_what_it_wrote_of_the_unfinished_rows_alone(script):
    calls = recorded(script.decoder)
    generated(script)
    assert [inputs[0].tolist() for inputs, _ in calls] == [
        [[START]] * 4,
        [[START, 7], [START, 4], [START, 1]],
        [[START, 7, 8], [START, 1, 1]],
        [[START, 7, 8, 9], [START, 1, 1, 1]],
    ]


def test_generation_goes_no_further_when_every_row_has_ended(script):
    calls = recorded(script.decoder)
    generated(script, lines=[[3, END, 0, 0], [END, 0, 0, 0]])
    assert len(calls) == 2


def test_the_encoder_runs_once_for_all_rows_and_tokens(script):
    calls = recorded(script.encoder)
    generated(script)
    assert [len(memory) for _, memory in calls] == [4]


@pytest.mark.parametrize("limit", [0, -1, 5])
def test_a_limit_without_positions_is_refused(script, limit):
    with pytest.raises(ValueError, match=f"limit is {limit}: this reader writes 1 to 4 tokens"):
        generated(script, limit=limit)


def test_an_empty_batch_is_refused():
    with pytest.raises(ValueError, match="the batch is empty: give at least one image"):
        generate(small_reader(), some_images(0))


@pytest.fixture(scope="module")
def fluent():
    """A reader of up to 12 tokens that ends its readings at many lengths, and some never."""
    model = small_reader(seed=11, max_tokens=12)
    with torch.no_grad():
        for p in model.decoder.parameters():
            p.mul_(2)
    return model


@pytest.fixture(scope="module")
def reading(fluent):
    reading = generate(fluent, some_images(20))
    assert reading.ended.any()
    assert not reading.ended.all()
    assert len(reading.lengths.unique()) > 4
    return reading


@pytest.fixture
def written(reading):
    """Which tokens were generated, (B, T): not those that fill a row after its end."""
    return torch.arange(12) < reading.lengths[:, None]


@pytest.fixture
@torch.no_grad()
def retold(fluent, reading):
    """Logits and attention of one pass with a teacher over the tokens that were generated."""
    inputs, _ = teacher_forcing(reading.tokens[:, :-1])
    return fluent.decoder(inputs, fluent.encoder(some_images(20)), need_weights=True)


def test_each_token_is_the_likeliest_after_those_before_it(reading, written, retold):
    likeliest = retold[0].argmax(dim=-1)
    assert torch.equal(reading.tokens[written], likeliest[written])


def test_each_probability_is_that_of_the_token_chosen(reading, written, retold):
    likeliest = retold[0].softmax(dim=-1).amax(dim=-1)
    torch.testing.assert_close(reading.probabilities, likeliest * written)


def test_the_attention_of_a_reading_is_that_of_a_pass_with_a_teacher(reading, written, retold):
    torch.testing.assert_close(reading.attention, retold[1] * written[..., None])


def test_the_attention_of_a_reading_is_shares_that_sum_to_1_up_to_the_end(reading, written):
    assert reading.attention.ge(0).all()
    torch.testing.assert_close(reading.attention.sum(dim=-1), written.float())


@pytest.mark.parametrize("field", Reading._fields)
def test_images_read_together_are_read_as_they_are_one_by_one(fluent, reading, field):
    alone = [getattr(generate(fluent, image[None]), field) for image in some_images(20)]
    torch.testing.assert_close(getattr(reading, field), torch.cat(alone))


@pytest.mark.parametrize(("bias", "length", "ended"), [(1e4, 1, True), (-1e4, MAX_TOKENS, False)])
def test_the_score_of_end_decides_when_a_reader_stops(reader, bias, length, ended):
    nn.init.constant_(reader.decoder.head.bias[END], bias)
    reading = generate(reader, some_images(7))
    assert reading.lengths.tolist() == [length] * 7
    assert reading.ended.tolist() == [ended] * 7


def test_generation_switches_the_model_to_evaluation():
    model = small_reader().train()
    generate(model, some_images(1))
    assert not model.training


def test_generation_keeps_no_gradients():
    reading = generate(small_reader(), some_images(1))
    assert not any(field.requires_grad for field in reading)


# What counts as read


def hand_made(tokens, length, ended):
    reading = {"tokens": [tokens], "lengths": [length], "ended": [ended]}
    fields = {name: torch.tensor(value) for name, value in reading.items()}
    return Reading(**fields, probabilities=None, attention=None)


READINGS_OF_123 = {
    "END in its place": (([1, 2, 3, END, END], 4, True), (True, True)),
    "END late": (([1, 2, 3, 4, END], 5, True), (True, False)),
    "END never": (([1, 2, 3, 4, 5], 5, False), (True, False)),
    "the limit where END belongs": (([1, 2, 3, 4], 4, False), (True, False)),
    "the limit after the digits": (([1, 2, 3], 3, False), (True, False)),
    "END early": (([1, 2, END, END], 3, True), (False, False)),
    "END at once": (([END, END, END, END], 1, True), (False, False)),
    "a wrong digit": (([1, 9, 3, END], 4, True), (False, False)),
    "the digits in another order": (([1, 3, 2, END], 4, True), (False, False)),
}


@pytest.mark.parametrize(("reading", "expected"), READINGS_OF_123.values(), ids=READINGS_OF_123)
def test_a_number_is_read_when_its_digits_and_then_end_are_written(reading, expected):
    verdicts = exact_sequence(hand_made(*reading), torch.tensor([[1, 2, 3]]))
    assert tuple(verdict.item() for verdict in verdicts) == expected


def test_each_reading_is_judged_by_its_own_label(script):
    labels = torch.tensor([[7, 8, 9], [7, 8, 9], [4, 5, 6], [1, 1, 1]])
    digits, exact = exact_sequence(generated(script), labels)
    assert digits.tolist() == [False, True, False, True]
    assert exact.tolist() == [False, True, False, False]


def test_a_reading_too_short_for_the_labels_is_refused():
    with pytest.raises(ValueError, match="at most 1 tokens cannot hold labels of 3 digits"):
        exact_sequence(hand_made([3], 1, False), torch.tensor([[3, 3, 3]]))
