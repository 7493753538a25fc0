"""The picture of a model says what the model does, whatever its parts are called."""

import math
from functools import cache
from io import BytesIO

import pytest
import torch
from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import same_color
from matplotlib.text import Annotation
from torch import nn

import _arch
from _style import COLOURS

IMAGES_AND_TOKENS = {
    "input_shape": ((1, 28, 84), (1, 4)),
    "input_dtype": (torch.float32, torch.long),
}
TOKENS = {"input_shape": (1, 7), "input_dtype": torch.long}
TWO_SENTENCES = {"input_shape": ((1, 9), (1, 5)), "input_dtype": torch.long}


def feed_forward(width):
    return nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))


class Encoder(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.feed_forward = feed_forward(width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))

    def forward(self, x):
        x = self.norms[0](x + self.attention(x, x, x, need_weights=False)[0])
        return self.norms[1](x + self.feed_forward(x))


class Decoder(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.first = nn.MultiheadAttention(width, heads, batch_first=True)
        self.second = nn.MultiheadAttention(width, heads, batch_first=True)
        self.feed_forward = feed_forward(width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))

    def forward(self, x, memory, mask):
        x = self.norms[0](x + self.first(x, x, x, attn_mask=mask, need_weights=False)[0])
        context, weights = self.second(x, memory, memory)
        x = self.norms[1](x + context)
        return self.norms[2](x + self.feed_forward(x)), weights


class TwoStreams(nn.Module):
    """An encoder-decoder that reads an image of 28 x 84 pixels and up to four tokens."""

    def __init__(self, width=96, heads=4, layers=2):
        super().__init__()
        self.projection = nn.Linear(49, width)
        self.image_positions = nn.Parameter(torch.zeros(48, width))
        self.encoder = nn.ModuleList(Encoder(width, heads) for _ in range(layers))
        self.embedding = nn.Embedding(12, width)
        self.token_positions = nn.Parameter(torch.zeros(4, width))
        self.decoder = nn.ModuleList(Decoder(width, heads) for _ in range(layers))
        self.head = nn.Linear(width, 12)

    def forward(self, images, tokens):
        patches = images.unfold(1, 7, 7).unfold(2, 7, 7).reshape(len(images), 48, 49)
        memory = self.projection(patches) + self.image_positions
        for block in self.encoder:
            memory = block(memory)
        length = tokens.shape[1]
        mask = torch.full((length, length), -math.inf).triu(1)
        x = self.embedding(tokens) + self.token_positions[:length]
        for block in self.decoder:
            x, _ = block(x, memory, mask)
        return self.head(x)


class Anonymous(nn.Module):
    """The same model with arguments in the other order and names that say nothing or mislead."""

    def __init__(self):
        super().__init__()
        whole = TwoStreams()
        self.a, self.b, self.c = whole.head, whole.token_positions, whole.encoder
        self.encoder, self.e, self.decoder = whole.decoder, whole.embedding, whole.projection
        self.g = whole.image_positions

    def forward(self, p, q):
        memory = self.decoder(q.unfold(1, 7, 7).unfold(2, 7, 7).reshape(-1, 48, 49)) + self.g
        for block in self.c:
            memory = block(memory)
        x = self.e(p) + self.b
        for block in self.encoder:
            x, _ = block(x, memory, None)
        return self.a(x)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20, 16)
        self.gru = nn.GRU(16, 32, batch_first=True, bidirectional=True)
        self.head = nn.Linear(64, 3)

    def forward(self, tokens):
        return self.head(self.gru(self.embedding(tokens))[0][:, -1])


class Translator(nn.Module):
    """One state crosses from GRU to GRU, and the decoder steps through the target."""

    def __init__(self):
        super().__init__()
        self.source_embedding = nn.Embedding(20, 16)
        self.reader = nn.GRU(16, 32, batch_first=True)
        self.target_embedding = nn.Embedding(20, 16)
        self.writer = nn.GRUCell(16, 32)
        self.head = nn.Linear(32, 20)

    def forward(self, source, target):
        state = self.reader(self.source_embedding(source))[1][0]
        scores = torch.zeros(len(source), target.shape[1], 20)
        for t in range(target.shape[1]):
            state = self.writer(self.target_embedding(target[:, t]), state)
            scores[:, t] = self.head(state)
        return scores


class Residual(nn.Module):
    """One ReLU for all, a scale of the model's own, a layer that is never used."""

    def __init__(self):
        super().__init__()
        self.stem, self.body = nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)
        self.relu = nn.ReLU()
        self.scale = nn.Parameter(torch.tensor(2.0))
        self.unused = nn.Linear(5, 5)

    def forward(self, images):
        x = self.relu(self.stem(images))
        return self.relu(x + self.body(x)) * self.scale


class Queries(nn.Module):
    """Learned queries read the output of a convolutional network."""

    def __init__(self):
        super().__init__()
        self.network = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Conv2d(8, 16, 3))
        self.queries = nn.Parameter(torch.zeros(5, 16))
        layer = nn.TransformerDecoderLayer(16, 2, 32, batch_first=True)
        self.stack = nn.TransformerDecoder(layer, 2)

    def forward(self, image):
        pixels = self.network(image).flatten(2).transpose(1, 2)
        return self.stack(self.queries.expand(len(image), -1, -1), pixels)


class Tied(nn.Module):
    """One block called three times, and an embedding that is also the head."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20, 16)
        self.block = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.head = nn.Linear(16, 20)
        self.head.weight = self.embedding.weight

    def forward(self, tokens):
        x = self.embedding(tokens)
        for _ in range(3):
            x = self.block(x)
        return self.head(x)


def thirty_layers():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), *(nn.Conv2d(4, 4, 3, padding=1) for _ in range(29))
    )


def transformer():
    return nn.Transformer(32, 4, 2, 2, 64, batch_first=True)


def cnn():
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 26 * 26, 10))


MODELS = {
    "two streams": (TwoStreams, IMAGES_AND_TOKENS),
    "nn.Transformer": (transformer, {"input_shape": ((1, 9, 32), (1, 5, 32))}),
    "cnn": (cnn, {"input_shape": (1, 1, 28, 28)}),
    "thirty layers": (thirty_layers, {"input_shape": (1, 1, 8, 8)}),
    "gru classifier": (Classifier, TOKENS),
    "gru translator": (Translator, TWO_SENTENCES),
    "residual": (Residual, {"input_shape": (1, 1, 8, 8)}),
    "learned queries": (Queries, {"input_shape": (1, 1, 9, 9)}),
    "tied": (Tied, TOKENS),
    "attention alone": (
        lambda: nn.MultiheadAttention(16, 2, batch_first=True),
        {"input_shape": ((1, 4, 16), (1, 9, 16), (1, 9, 16))},
    ),
    "one block": (lambda: Encoder(16, 2), {"input_shape": (1, 4, 16)}),
    "no parameters": (nn.ReLU, {"input_shape": (1, 3)}),
}
EVERY_MODEL = pytest.mark.parametrize("name", MODELS)


@cache
def model_and_stages(name):
    build, inputs = MODELS[name]
    model = build()
    return model, _arch.stages(model, **inputs)


@cache
def picture(name):
    return _arch.diagram(model_and_stages(name)[0], **MODELS[name][1])


def stages_of(model, inputs):
    return {stage.name: stage for stage in _arch.stages(model, **inputs)}


def roles_of(model, inputs):
    return {stage.name: stage.role for stage in _arch.stages(model, **inputs) if stage.role}


def pixels(figure):
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return bytes(canvas.buffer_rgba())


def text_boxes(figure):
    """Each text of the picture with its place in pixels: (text, x0, y0, x1, y1)."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    texts = [text for text in figure.axes[0].texts if text.get_text()]
    return [(text.get_text(), *text.get_window_extent(renderer).extents) for text in texts]


@pytest.fixture
def reader():
    return {stage.name: stage for stage in model_and_stages("two streams")[1]}


@pytest.fixture
def reader_figure():
    return picture("two streams")


# --- shapes and parameters ---


def test_shapes_are_those_of_a_real_forward_pass(reader):
    model, shapes = TwoStreams().eval(), {}
    for name in ("projection", "encoder.1", "embedding", "head"):
        model.get_submodule(name).register_forward_hook(
            lambda module, args, output, name=name: shapes.update({name: tuple(output.shape)})
        )
    model(torch.ones(1, 28, 84), torch.ones(1, 4, dtype=torch.long))
    drawn = ("projection", "encoder[1]", "embedding", "head")
    assert [reader[name].output_shape for name in drawn] == list(shapes.values())


def test_shapes_follow_the_batch():
    found = _arch.stages(TwoStreams(), ((7, 28, 84), (7, 3)), (torch.float32, torch.long))
    assert found[-1].output_shape == (7, 3, 12)


def test_a_block_that_returns_its_weights_too_shows_the_shape_of_its_states(reader):
    assert reader["decoder[1]"].output_shape == (1, 4, 96)


def test_a_bidirectional_gru_shows_both_directions():
    gru = stages_of(Classifier(), TOKENS)["gru"]
    assert (gru.description, gru.output_shape) == ("GRU 16 → 2 × 32", (1, 7, 64))


@EVERY_MODEL
def test_the_parameters_of_all_stages_sum_to_the_total(name):
    model, found = model_and_stages(name)
    assert sum(stage.parameters for stage in found) == sum(
        parameter.numel() for parameter in model.parameters()
    )


def test_the_reader_counts_534348_parameters(reader):
    assert sum(stage.parameters for stage in reader.values()) == 534_348


def test_positions_held_by_the_model_itself_are_stages_of_their_stream(reader):
    positions = reader["image_positions"]
    assert (positions.kind, positions.parameters) == ("parameter", 48 * 96)
    assert positions.sources == ("projection",)
    assert reader["encoder[0]"].sources == ("image_positions",)


def test_tied_weights_count_once():
    found = stages_of(Tied(), TOKENS)
    assert (found["embedding"].parameters, found["head"].parameters) == (20 * 16, 20)
    assert found["head"].description == "Linear 16 → 20, shared weights"


def test_parameters_that_the_pass_does_not_meet_are_listed():
    unused = stages_of(Residual(), {"input_shape": (1, 1, 8, 8)})["unused"]
    assert (unused.kind, unused.parameters) == ("undrawn", 30)


# --- edges ---


def test_cross_attention_goes_from_the_last_encoder_block_to_each_decoder_block(reader):
    crossing = {stage.name: stage.memory for stage in reader.values() if stage.memory}
    assert crossing == {"decoder[0]": ("encoder[1]",), "decoder[1]": ("encoder[1]",)}


def test_self_and_cross_attention_are_told_apart(reader):
    assert reader["encoder[0]"].layers[0] == "self-attention · 4 heads"
    assert [row for row in reader["decoder[0]"].layers if "attention" in row] == [
        "masked self-attention · 4 heads",
        "cross-attention · 4 heads",
    ]


def test_attention_over_two_views_of_one_stream_is_self_attention():
    class Normed(nn.Module):
        def __init__(self):
            super().__init__()
            self.block = Views()

        def forward(self, x):
            return self.block(x)

    class Views(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention, self.norm = nn.MultiheadAttention(16, 2), nn.LayerNorm(16)

        def forward(self, x):
            return self.attention(self.norm(x), x, x)[0]

    layers = stages_of(Normed(), {"input_shape": (4, 1, 16)})["block"].layers
    assert layers == ("LayerNorm", "self-attention · 2 heads")


def test_the_layers_of_a_block_stand_in_the_order_of_the_calls(reader):
    assert reader["encoder[1]"].layers == (
        "self-attention · 4 heads",
        "LayerNorm",
        "feed-forward 96 → 384 → 96",
        "LayerNorm",
    )


def test_a_residual_connection_is_an_edge():
    found = stages_of(Encoder(16, 2), {"input_shape": (1, 4, 16)})
    assert set(found["norms[0]"].sources) == {"x", "attention"}


def test_one_relu_used_twice_is_two_stages():
    found = stages_of(Residual(), {"input_shape": (1, 1, 8, 8)})
    assert found["relu"].sources == ("stem",)
    assert set(found["relu #2"].sources) == {"relu", "body"}


def test_a_block_called_three_times_is_one_stage_that_says_so():
    found = stages_of(Tied(), TOKENS)
    assert (found["block"].calls, found["block"].sources) == (3, ("embedding",))


def test_the_state_that_crosses_between_two_grus_is_an_edge():
    found = stages_of(Translator(), TWO_SENTENCES)
    assert found["writer"].sources == ("target_embedding", "reader")
    assert found["output"].sources == ("head",)


def test_an_identity_is_not_drawn():
    model = nn.Sequential(nn.Linear(3, 3), nn.Identity(), nn.ReLU())
    found = stages_of(model, {"input_shape": (1, 3)})
    assert list(found) == ["input", "[0]", "[2]", "output"]
    assert found["[2]"].sources == ("[0]",)


def test_dropout_does_not_become_the_source_of_what_reads_its_input():
    class Dropped(nn.Module):
        def __init__(self):
            super().__init__()
            self.drop, self.layer = nn.Dropout(0.5), nn.Linear(3, 3)

        def forward(self, x):
            return self.drop(x) + self.layer(x)

    assert stages_of(Dropped(), {"input_shape": (1, 3)})["layer"].sources == ("x",)


def test_an_input_with_the_name_of_a_layer_leaves_the_layer_its_name():
    class Same(nn.Module):
        def __init__(self):
            super().__init__()
            self.x = nn.Linear(3, 3)

        def forward(self, x):
            return self.x(x)

    assert stages_of(Same(), {"input_shape": (1, 3)})["x"].sources == ("x (input)",)


def test_a_padding_mask_is_no_stream():
    class Masked(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(20, 16)
            self.block = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)

        def forward(self, tokens):
            return self.block(self.embedding(tokens), src_key_padding_mask=tokens == 0)

    assert stages_of(Masked(), TOKENS)["block"].sources == ("embedding",)


# --- streams and roles ---


def test_each_input_has_a_stream(reader):
    assert reader["encoder[1]"].stream == "images"
    assert reader["decoder[1]"].stream == reader["output"].stream == "tokens"


def test_learned_queries_have_a_stream_of_their_own():
    found = stages_of(Queries(), {"input_shape": (1, 1, 9, 9)})
    assert found["stack.layers[1]"].stream == "queries"


def test_encoder_and_decoder_are_found(reader):
    assert {stage.name: stage.role for stage in reader.values() if stage.role} == {
        "encoder[0]": "encoder",
        "encoder[1]": "encoder",
        "decoder[0]": "decoder",
        "decoder[1]": "decoder",
    }


def test_names_and_argument_order_decide_nothing():
    swapped = {"input_shape": ((1, 4), (1, 28, 84)), "input_dtype": (torch.long, torch.float32)}
    assert roles_of(Anonymous(), swapped) == {
        "c[0]": "encoder",
        "c[1]": "encoder",
        "encoder[0]": "decoder",
        "encoder[1]": "decoder",
    }


def test_the_final_norms_of_nn_transformer_belong_to_their_stacks():
    roles = roles_of(transformer(), {"input_shape": ((1, 9, 32), (1, 5, 32))})
    assert roles == {
        "encoder.layers[0]": "encoder",
        "encoder.layers[1]": "encoder",
        "encoder.norm": "encoder",
        "decoder.layers[0]": "decoder",
        "decoder.layers[1]": "decoder",
        "decoder.norm": "decoder",
    }


def test_a_recurrent_reader_and_writer_are_encoder_and_decoder():
    assert roles_of(Translator(), TWO_SENTENCES) == {"reader": "encoder", "writer": "decoder"}


def test_a_convolutional_network_can_be_the_encoder():
    roles = roles_of(Queries(), {"input_shape": (1, 1, 9, 9)})
    assert [name for name, role in roles.items() if role == "encoder"] == [
        "network[0]",
        "network[1]",
        "network[2]",
    ]


@pytest.mark.parametrize("name", ["cnn", "gru classifier", "tied", "one block"])
def test_a_single_stream_is_neither_encoder_nor_decoder(name):
    build, inputs = MODELS[name]
    assert roles_of(build(), inputs) == {}


# --- what the pass leaves behind ---


def test_training_mode_comes_back_module_by_module():
    model = TwoStreams().train()
    model.encoder.eval()
    before = [module.training for module in model.modules()]
    _arch.stages(model, **IMAGES_AND_TOKENS)
    assert [module.training for module in model.modules()] == before


def test_training_mode_and_hooks_come_back_after_a_failure():
    model = TwoStreams().train()
    with pytest.raises(ValueError, match="failed"):
        _arch.stages(model, ((1, 28, 77), (1, 4)), (torch.float32, torch.long))
    assert all(module.training for module in model.modules())
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def test_weights_and_statistics_stay_as_they_are():
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4)).train()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    _arch.stages(model, (1, 1, 8, 8))
    after = model.state_dict()
    assert all(torch.equal(after[name], tensor) for name, tensor in before.items())


def test_the_random_state_stays_as_it_is():
    class Noisy(nn.Module):
        def forward(self, x):
            return x + torch.randn_like(x)

    before = torch.random.get_rng_state()
    _arch.stages(Noisy(), (1, 3))
    assert torch.equal(torch.random.get_rng_state(), before)


def test_the_fast_path_of_attention_stays_on():
    _arch.stages(transformer(), ((1, 9, 32), (1, 5, 32)))
    assert torch.backends.mha.get_fastpath_enabled()


# --- the picture ---


@EVERY_MODEL
def test_the_picture_shows_every_stage_and_its_parameters(name):
    texts = [text for text, *_ in text_boxes(picture(name))]
    for stage in model_and_stages(name)[1]:
        assert any(stage.name in text for text in texts)
        assert not stage.parameters or any(f"{stage.parameters:,} param" in text for text in texts)
        assert not stage.output_shape or str(stage.output_shape) in texts


@EVERY_MODEL
def test_no_text_overlaps_another_or_leaves_the_picture(name):
    figure = picture(name)
    boxes = text_boxes(figure)
    for i, (_, x0, y0, x1, y1) in enumerate(boxes):
        assert 0 < x0 < x1 < figure.bbox.width
        assert 0 < y0 < y1 < figure.bbox.height
        for text, *other in boxes[:i]:
            assert x1 <= other[0] or other[2] <= x0 or y1 <= other[1] or other[3] <= y0, text


@EVERY_MODEL
def test_the_picture_fits_a_page_and_its_text_can_be_read(name):
    figure = picture(name)
    assert figure.get_size_inches()[0] <= 7
    assert min(text.get_fontsize() for text in figure.axes[0].texts) >= 8


def test_a_long_name_is_cut_to_fit():
    model = nn.Sequential()
    model.add_module("a_name_that_is_far_too_long_for_any_box_of_the_picture", nn.Linear(3, 3))
    boxes = text_boxes(_arch.diagram(model, (1, 3)))
    name, *_, end, _ = next(box for box in boxes if box[0].startswith("…"))
    count = next(box for box in boxes if box[0] == "12 parameters")
    assert name.endswith("of_the_picture")
    assert end < count[1]


def test_the_same_model_gives_the_same_picture(reader_figure):
    again = _arch.diagram(TwoStreams(), style="flow", **IMAGES_AND_TOKENS)
    assert pixels(again) == pixels(reader_figure)


def test_a_different_model_gives_a_different_picture(reader_figure):
    other = _arch.diagram(TwoStreams(layers=1), style="flow", **IMAGES_AND_TOKENS)
    assert pixels(other) != pixels(reader_figure)


def test_the_picture_names_the_total(reader_figure):
    assert "534,348 parameters in all" in [text for text, *_ in text_boxes(reader_figure)]


def test_the_encoder_stands_left_of_the_decoder_whatever_comes_first():
    swapped = {"input_shape": ((1, 4), (1, 28, 84)), "input_dtype": (torch.long, torch.float32)}
    left = {text: x for text, x, *_ in text_boxes(_arch.diagram(Anonymous(), **swapped))}
    assert left["Encoder"] == left["q"] < left["Decoder"] == left["p"]


def test_an_arrow_of_the_attention_colour_reaches_each_decoder_block(reader_figure):
    notes = [text for text in reader_figure.axes[0].texts if isinstance(text, Annotation)]
    colours = [note.arrow_patch.get_edgecolor() for note in notes]
    assert sum(same_color(colour, COLOURS["attention"]) for colour in colours) == 2


def test_a_picture_can_be_saved_more_than_once_under_constrained_layout():
    with rc_context({"figure.constrained_layout.use": True}):
        figure = _arch.diagram(nn.Linear(3, 3), (1, 3))
        for kind in ("png", "svg"):
            figure.savefig(BytesIO(), format=kind)
    assert figure.axes[0].get_position().bounds == (0, 0, 1, 1)


def test_a_longer_model_makes_a_taller_picture():
    short, long = (picture(name).get_size_inches()[1] for name in ("cnn", "thirty layers"))
    assert long > 3 * short


# --- refusals ---


def test_an_unknown_style_is_refused():
    with pytest.raises(ValueError, match="style='graph' is unknown: the accepted style is 'flow'"):
        _arch.diagram(TwoStreams(), style="graph", **IMAGES_AND_TOKENS)


def test_a_wrong_shape_names_the_stage_that_refused():
    with pytest.raises(
        ValueError,
        match=r"failed in \[3\] \(Linear\); its input: \(1, 2304\) float32; .*cannot be multiplied",
    ) as refused:
        _arch.diagram(cnn(), (1, 1, 26, 26))
    assert isinstance(refused.value.__cause__, RuntimeError)


def test_a_wrong_dtype_names_the_stage_that_refused():
    with pytest.raises(ValueError, match=r"failed in embedding \(Embedding\).*\(1, 4\) float32"):
        _arch.diagram(TwoStreams(), IMAGES_AND_TOKENS["input_shape"])


def test_a_layer_inside_a_block_is_named_by_its_whole_path():
    class Wrapped(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList([Encoder(16, 2)])

        def forward(self, x):
            return self.blocks[0](x)

    with pytest.raises(ValueError, match=r"failed in blocks\[0\].attention \(MultiheadAttention\)"):
        _arch.stages(Wrapped(), (1, 4, 15))


def test_a_model_that_fails_between_its_layers_is_named_with_the_last_stage():
    with pytest.raises(ValueError, match=r"the model \(TwoStreams\) after embedding; its input"):
        _arch.stages(TwoStreams(), ((1, 28, 84), (1, 5)), (torch.float32, torch.long))


@pytest.mark.parametrize("shape", [(1, -4), (1, 4.0), ((1, 4), 5), 7, ((1, 4), (1, 0))])
def test_a_shape_that_is_none_is_refused(shape):
    with pytest.raises(ValueError, match="expected a shape of positive integers"):
        _arch.stages(Classifier(), shape, torch.long)


def test_a_missing_input_is_refused():
    with pytest.raises(ValueError, match=r"forward\(images, tokens\) does not take 1 input: .*to"):
        _arch.stages(TwoStreams(), (1, 28, 84))


def test_an_input_too_many_is_refused():
    with pytest.raises(ValueError, match=r"forward\(tokens\) does not take 2 inputs"):
        _arch.stages(Classifier(), ((1, 7), (1, 7)), torch.long)


def test_dtypes_must_be_as_many_as_shapes():
    with pytest.raises(ValueError, match="1 input shape, but 2 in input_dtype"):
        _arch.stages(Classifier(), (1, 7), (torch.long, torch.long))


def test_a_dtype_that_is_none_is_refused():
    with pytest.raises(ValueError, match=r"input_dtype='int64': expected a torch\.dtype"):
        _arch.stages(Classifier(), (1, 7), "int64")
