"""The readers of lesson 03: each is the complete one with exactly one thing changed."""

import ast

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import lessons
from reader import END, START, Reader, causal_mask, generate, teacher_forcing

pytestmark = pytest.mark.usefixtures("one_thread")

LESSON = lessons.NOTEBOOKS / "03_take_each_part_away.ipynb"
CONSTANTS = {"SHAPE", "VARIANTS"}


def defined_in_the_lesson():
    """What the lesson's cells import and define, without the experiments between."""
    namespace = {}
    for cell in lessons.code_cells(lessons.read(LESSON)):
        for node in ast.parse(cell.source).body:
            named = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in CONSTANTS
            if named or isinstance(
                node, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef
            ):
                exec(ast.unparse(node), namespace)
    return namespace


DEFINED = defined_in_the_lesson()
SHAPE, VARIANTS = DEFINED["SHAPE"], DEFINED["VARIANTS"]
LABELS = torch.tensor([[7, 4, 5]])
PARAMETERS = {
    "complete": 122_764,
    "no causal mask": 122_764,
    "no shift": 122_764,
    "no cross-attention": 106_124,
    "no END": 122_764,
    "no image positions": 121_996,
    "no token positions": 122_508,
}
LACKS = {
    "no cross-attention": "decoder.blocks.0.cross_attention.",
    "no image positions": "encoder.position",
    "no token positions": "decoder.position",
}

each_variant = pytest.mark.parametrize("name", VARIANTS)


def built(name, seed=0):
    torch.manual_seed(seed)
    return VARIANTS[name][0](**SHAPE).eval()


def trained_parameters(model):
    """{name: weights} of those that training changes."""
    return {name: p for name, p in model.named_parameters() if p.requires_grad}


def some_images(n=2, seed=0):
    return torch.rand(n, *SHAPE["image_size"], generator=torch.Generator().manual_seed(seed))


@torch.no_grad()
def logits(model, images=None, tokens=None):
    """Logits (T, V) for one image and START 7 4 5, unless others are given."""
    images = some_images(1) if images is None else images
    tokens = teacher_forcing(LABELS)[0] if tokens is None else tokens
    return model(images, tokens)[0]


def moved(model, t):
    """At which positions the logits move when token t is another."""
    tokens = teacher_forcing(LABELS)[0]
    tokens[0, t] = 9
    return (logits(model, tokens=tokens) - logits(model)).abs().amax(dim=1) > 1e-6


# One thing at a time


@each_variant
def test_its_parameters_are_as_many_as_stated(name):
    assert sum(p.numel() for p in trained_parameters(built(name)).values()) == PARAMETERS[name]


@each_variant
def test_it_begins_with_the_weights_of_the_complete_reader_but_for_those_it_lacks(name):
    complete = trained_parameters(built("complete"))
    own = {
        parameter.replace("self_attention.attention.", "self_attention."): weights
        for parameter, weights in trained_parameters(built(name)).items()
    }
    lacking = complete.keys() - own.keys()
    assert lacking == {p for p in complete if p.startswith(LACKS.get(name, "nothing"))}
    assert all(torch.equal(weights, complete[parameter]) for parameter, weights in own.items())


def put_back(name, model):
    """Undo what the variant changes in the model, with the part of the complete reader."""
    complete, block = built("complete"), model.decoder.blocks[0]
    if name == "no causal mask":
        block.self_attention = block.self_attention.attention
    elif name == "no cross-attention":
        block.cross_attention = complete.decoder.blocks[0].cross_attention
    elif name == "no image positions":
        model.encoder.position = complete.encoder.position
    elif name == "no token positions":
        model.decoder.position = complete.decoder.position


@each_variant
def test_with_the_part_put_back_it_is_the_complete_reader(name):
    model, complete = built(name), logits(built("complete"))
    in_the_model = VARIANTS[name][0] is not Reader
    assert torch.equal(logits(model), complete) != in_the_model
    put_back(name, model)
    assert torch.equal(logits(model), complete)


@each_variant
def test_it_is_given_and_asked_what_the_complete_reader_is_unless_that_is_the_change(name):
    given = {
        "no shift": ([7, 4, 5, END], [7, 4, 5, END]),
        "no END": ([START, 7, 4], [7, 4, 5]),
    }
    inputs, targets = VARIANTS[name][1](LABELS)
    expected = given.get(name, ([START, 7, 4, 5], [7, 4, 5, END]))
    assert (inputs[0].tolist(), targets[0].tolist()) == expected


def test_a_variant_changes_the_model_or_its_examples_and_not_both():
    changes = [(v is not Reader) + (e is not teacher_forcing) for v, e in VARIANTS.values()]
    assert changes == [0] + [1] * 6


@each_variant
def test_it_reads(name):
    reading = generate(built(name), some_images(3))
    assert reading.tokens.shape == (3, 4)
    assert reading.attention.shape == (3, 4, 12)


# What each part is for


@each_variant
@pytest.mark.parametrize("t", [1, 2, 3])
def test_a_later_token_moves_an_earlier_answer_only_without_the_mask(name, t):
    assert moved(built(name), t).tolist() == [p >= t or name == "no causal mask" for p in range(4)]


@pytest.mark.parametrize(
    ("t", "expected"), [(1, [1, 1, 1, 1]), (2, [0, 1, 1, 1]), (3, [0, 0, 1, 1])]
)
def test_the_slight_leak_lets_one_token_through(t, expected):
    torch.manual_seed(0)
    assert moved(DEFINED["SlightLeak"](**SHAPE), t).tolist() == [bool(x) for x in expected]


@each_variant
def test_the_image_is_seen_unless_cross_attention_is_missing(name):
    model = built(name)
    same = torch.equal(logits(model), logits(model, images=some_images(1, seed=1)))
    assert same == (name == "no cross-attention")


def test_a_reader_without_cross_attention_is_one_whose_cross_attention_adds_nothing():
    silent = built("complete")
    nn.init.zeros_(silent.decoder.blocks[0].cross_attention.out_proj.weight)
    torch.testing.assert_close(logits(silent), logits(built("no cross-attention")))


@each_variant
def test_the_order_of_the_patches_counts_unless_they_have_no_positions(name):
    columns = some_images(1).split(7, dim=2)
    swapped = torch.cat([columns[1], columns[0], *columns[2:]], dim=2)
    change = (logits(built(name), images=swapped) - logits(built(name))).abs().max()
    assert (change < 1e-5) == (name in ("no image positions", "no cross-attention"))


def test_without_token_positions_the_mask_alone_tells_equal_digits_apart():
    tokens = torch.tensor([[START, 3, 3, 3]])
    for variant, alike in (("NoTokenPositions", False), ("NoTokenPositionsNoMask", True)):
        torch.manual_seed(0)
        _, *threes = logits(DEFINED[variant](**SHAPE), tokens=tokens)
        assert all((row - threes[0]).abs().max() < 1e-6 for row in threes[1:]) == alike


# Training


@pytest.fixture
def fitted():
    def fit(name, seed=0, **changed):
        model = built(name)
        n = 70
        labels = torch.randint(10, (n, 3), generator=torch.Generator().manual_seed(0))
        inputs, targets = VARIANTS[name][1](labels)
        given = {"inputs": inputs, "targets": targets} | changed
        DEFINED["fit"](model, some_images(n), **given, seed=seed)
        return model

    return fit


@each_variant
def test_training_changes_what_it_has_and_leaves_missing_positions_at_zero(name, fitted):
    model = fitted(name)
    before = dict(built(name).named_parameters())
    changed = {n for n, p in model.named_parameters() if not torch.equal(p, before[n])}
    trainable = trained_parameters(model).keys()
    unread = ("encoder.", "decoder.blocks.0.residuals.1.") if name == "no cross-attention" else ()
    assert changed == {n for n in trainable if not n.startswith(unread)}
    assert not any(p.any() for p in model.parameters() if not p.requires_grad)


def test_the_seed_orders_the_composites(fitted):
    weights = [fitted("complete", seed).decoder.head.weight for seed in (0, 0, 1)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_what_has_no_answer_is_left_out_of_the_loss(fitted):
    """Under the mask, tokens after the only one that is asked for cannot matter to the weights."""
    targets = torch.full((70, 4), -100)
    targets[:, 0] = 3
    heads = []
    for later in (4, 5):
        inputs = torch.full((70, 4), later)
        inputs[:, 0] = START
        heads.append(fitted("complete", inputs=inputs, targets=targets).decoder.head.weight)
    torch.testing.assert_close(*heads)


# Masks in PyTorch


def weights_by_module(mask):
    x = torch.zeros(1, 4, 4)
    return nn.MultiheadAttention(4, 1, batch_first=True)(x, x, x, attn_mask=mask)[1][0]


def weights_by_function(mask):
    x = torch.zeros(1, 4, 4)
    return F.scaled_dot_product_attention(x, x, torch.eye(4)[None], attn_mask=mask)[0]


LATER = torch.ones(4, 4, dtype=torch.bool).triu(diagonal=1)
EQUAL_SHARES = torch.ones(4, 4).tril() / torch.arange(1, 5)[:, None]


def test_under_the_causal_mask_equal_scores_give_equal_shares_of_what_is_before():
    torch.testing.assert_close(causal_mask(4).softmax(dim=1), EQUAL_SHARES)


@pytest.mark.parametrize(
    "weights",
    [
        lambda: weights_by_module(LATER),
        lambda: weights_by_module(causal_mask(4)),
        lambda: weights_by_function(~LATER),
        lambda: weights_by_function(causal_mask(4)),
    ],
    ids=["module, True hides", "module, additive", "function, True keeps", "function, additive"],
)
def test_the_causal_mask_in_each_convention(weights):
    torch.testing.assert_close(weights(), EQUAL_SHARES)


def test_the_masks_convention_mistaken_shows_the_future_alone():
    assert torch.equal(weights_by_function(LATER) > 0, LATER)
