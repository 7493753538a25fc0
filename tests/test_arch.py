"""The picture of a model says what the model does, whatever its parts are called."""

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
from reader import EncoderBlock, Reader, patchify

FLOAT, LONG = torch.float32, torch.long
IMAGE, TOKENS = (1, 28, 84), (1, 4)
IMAGE_AND_TOKENS = {"input_shape": (IMAGE, TOKENS), "input_dtype": (FLOAT, LONG)}


class Misnamed(nn.Module):
    """Names that say nothing or the opposite; the tokens come first, and the memory before x."""

    def __init__(self):
        super().__init__()
        self.token_projection, self.encode = nn.Linear(49, 32), nn.Embedding(12, 32)
        self.decoder = nn.ModuleList(EncoderBlock(32, 2) for _ in range(2))
        layer = nn.TransformerDecoderLayer(32, 2, 64, batch_first=True)
        self.encoder = nn.TransformerDecoder(layer, 2).layers

    def forward(self, a, b):
        memory = self.token_projection(patchify(b, 7))
        for block in self.decoder:
            memory = block(memory)
        x = self.encode(a)
        for block in self.encoder:
            x = block(memory=memory, tgt=x)
        return x


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(20, 16), nn.Linear(64, 3)
        self.gru = nn.GRU(16, 32, batch_first=True, bidirectional=True)

    def forward(self, tokens):
        return self.head(self.gru(self.embedding(tokens))[0][:, -1])


class Translator(nn.Module):
    """One state crosses from GRU to GRU, and the decoder steps through the target."""

    def __init__(self):
        super().__init__()
        self.source_embedding, self.target_embedding = nn.Embedding(20, 16), nn.Embedding(20, 16)
        self.reader, self.writer = nn.GRU(16, 32, batch_first=True), nn.GRUCell(16, 32)
        self.head = nn.Linear(32, 20)

    def forward(self, source, target):
        state = self.reader(self.source_embedding(source))[1][0]
        scores = []
        for t in range(target.shape[1]):
            state = self.writer(self.target_embedding(target[:, t]), state)
            scores.append(self.head(state))
        return torch.stack(scores, dim=1)


class ResidualCNN(nn.Module):
    """One ReLU in two places, and a layer that is never used."""

    def __init__(self):
        super().__init__()
        self.stem, self.body = nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)
        self.relu, self.unused = nn.ReLU(), nn.Linear(5, 5)

    def forward(self, images):
        x = self.relu(self.stem(images))
        return self.relu(x + self.body(x))


class LanguageModel(nn.Module):
    """Positions from an embedding of their own, one block used twice, a head tied to the input."""

    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(20, 16), nn.Embedding(8, 16)
        self.block = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.head = nn.Linear(16, 20)
        self.head.weight = self.tokens.weight

    def forward(self, ids):
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1]))
        for _ in range(2):
            x = self.block(x, src_key_padding_mask=ids == 0)
        return self.head(x)


class Pool(nn.Module):
    """A query of the module's own attends to what it is given."""

    def __init__(self):
        super().__init__()
        self.query = nn.Parameter(torch.zeros(1, 1, 16))
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)

    def forward(self, x):
        return self.attention(self.query, x, x)[0]


def attention_block():
    return nn.Sequential(EncoderBlock(16, 2))


def cnn():
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 26 * 26, 10))


def transformer():
    return nn.Transformer(32, 4, 2, 2, 64, batch_first=True)


MODELS = {  # how to build it, input_shape, input_dtype
    "reader": (Reader, *IMAGE_AND_TOKENS.values()),
    "pre-norm": (lambda: Reader(layers=1, norm_first=True), *IMAGE_AND_TOKENS.values()),
    "nn.Transformer": (transformer, ((1, 9, 32), (1, 5, 32)), FLOAT),
    "cnn": (cnn, (1, 1, 28, 28), FLOAT),
    "residual cnn": (ResidualCNN, (1, 1, 8, 8), FLOAT),
    "30 layers": (lambda: nn.Sequential(*(nn.Linear(4, 4) for _ in range(30))), (1, 4), FLOAT),
    "gru classifier": (Classifier, (1, 7), LONG),
    "gru translator": (Translator, ((1, 9), (1, 5)), LONG),
    "language model": (LanguageModel, (1, 7), LONG),
    "pooling": (lambda: attention_block().append(Pool()), (1, 4, 16), FLOAT),
    "attention": (lambda: nn.MultiheadAttention(16, 2), ((4, 1, 16), *[(9, 1, 16)] * 2), FLOAT),
}
EVERY_MODEL = pytest.mark.parametrize("name", MODELS)


@cache
def drawn(name):
    """The model, its stages by name and its picture."""
    build, shape, dtype = MODELS[name]
    model = build()
    stages = {stage.name: stage for stage in _arch.stages(model, shape, dtype)}
    return model, stages, _arch.diagram(model, shape, input_dtype=dtype)


def sources(stage):
    return [source.name for source in stage.sources]


def roles(stages):
    return {name: stage.role for name, stage in stages.items() if stage.role}


def texts(figure):
    return [text.get_text() for text in figure.axes[0].texts]


def text_boxes(figure):
    """Each text of the picture with its place in pixels: (text, x0, y0, x1, y1)."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    shown = [text for text in figure.axes[0].texts if text.get_text()]
    return [(text.get_text(), *text.get_window_extent(renderer).extents) for text in shown]


def pixels(figure):
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return bytes(canvas.buffer_rgba())


def test_shapes_are_those_of_a_real_forward_pass():
    model, shapes = Reader().eval(), {}
    for name, module in model.named_modules():
        module.register_forward_hook(lambda _, args, out, name=name: shapes.update({name: out}))
    model(torch.ones(3, 28, 84), torch.ones(3, 2, dtype=LONG))
    found = _arch.stages(Reader(), ((3, 28, 84), (3, 2)), (FLOAT, LONG))
    drawn_shapes = {stage.name: stage.output_shape for stage in found}
    assert drawn_shapes["encoder.embed"] == shapes["encoder.embed"].shape == (3, 48, 96)
    assert drawn_shapes["encoder.blocks[1]"] == shapes["encoder.blocks.1"].shape
    assert drawn_shapes["decoder.blocks[1]"] == shapes["decoder.blocks.1"][0].shape
    assert drawn_shapes["decoder.head"] == shapes["decoder.head"].shape == (3, 2, 12)


def test_tied_weights_count_once():
    stages = drawn("language model")[1]
    assert (stages["tokens"].parameters, stages["head"].parameters) == (20 * 16, 20)
    assert stages["head"].description == "Linear 16 → 20, shared weights"


def test_parameters_that_the_pass_does_not_meet_are_named():
    unused = drawn("residual cnn")[1]["unused"]
    assert (unused.description, unused.parameters) == ("unused.weight, unused.bias", 30)


def test_cross_attention_goes_from_the_last_encoder_block_to_each_decoder_block():
    stages, figure = drawn("reader")[1:]
    assert sources(stages["decoder.blocks[0]"]) == ["decoder.position", "encoder.blocks[1]"]
    assert sources(stages["decoder.blocks[1]"]) == ["decoder.blocks[0]", "encoder.blocks[1]"]
    arrows = [text.arrow_patch for text in figure.axes[0].texts if isinstance(text, Annotation)]
    green = [a for a in arrows if same_color(a.get_edgecolor(), COLOURS["attention"])]
    assert len(green) == 2


def test_self_and_cross_attention_are_told_apart():
    stages = drawn("pre-norm")[1]
    rows = "LayerNorm", "self-attention · 4 heads", "LayerNorm", "feed-forward 96 → 384 → 96"
    assert stages["encoder.blocks[0]"].layers == rows
    attention = [row for row in stages["decoder.blocks[0]"].layers if "attention" in row]
    assert attention == ["masked self-attention · 4 heads", "cross-attention · 4 heads"]
    assert drawn("pooling")[1]["[1]"].layers == ("cross-attention · 2 heads",)


def test_learned_positions_belong_to_the_stream_that_they_join():
    assert sources(drawn("reader")[1]["encoder.position"]) == ["encoder.embed"]
    assert sources(drawn("reader")[1]["encoder.blocks[0]"]) == ["encoder.position"]
    assert sources(drawn("language model")[1]["positions"]) == ["tokens"]
    assert sources(drawn("language model")[1]["block"]) == ["positions"]


def test_a_residual_connection_is_an_arrow_and_one_relu_in_two_places_is_two_boxes():
    found = _arch.stages(ResidualCNN(), (1, 1, 8, 8))
    assert [(stage.name, sources(stage)) for stage in found[2:5]] == [
        ("relu", ["stem"]),
        ("body", ["relu"]),
        ("relu", ["relu", "body"]),
    ]


def test_a_block_that_runs_more_than_once_is_one_box_that_says_so():
    assert drawn("language model")[1]["block"].calls == 2
    assert "GRUCell 16 → 32 · 5 calls" in texts(drawn("gru translator")[2])


def test_names_and_the_order_of_inputs_decide_nothing():
    inputs = {"input_shape": (TOKENS, IMAGE), "input_dtype": (LONG, FLOAT)}
    stages = {stage.name: stage for stage in _arch.stages(Misnamed(), **inputs)}
    assert roles(stages) == {
        "decoder[0]": "encoder",
        "decoder[1]": "encoder",
        "encoder[0]": "decoder",
        "encoder[1]": "decoder",
    }
    left = {text: x for text, x, *_ in text_boxes(_arch.diagram(Misnamed(), **inputs))}
    assert left["Encoder"] < left["b"] < left["Decoder"] < left["a"]


def test_final_norms_belong_to_their_stacks():
    found = roles(drawn("nn.Transformer")[1])
    assert (found.pop("encoder.norm"), found.pop("decoder.norm")) == ("encoder", "decoder")
    assert all(name.startswith(f"{role}.layers[") for name, role in found.items())


def test_a_recurrent_reader_and_writer_are_encoder_and_decoder():
    stages = drawn("gru translator")[1]
    assert sources(stages["writer"]) == ["target_embedding", "reader"]
    assert roles(stages) == {"reader": "encoder", "writer": "decoder"}


@pytest.mark.parametrize("name", ["cnn", "gru classifier", "language model", "attention"])
def test_without_two_streams_there_is_no_encoder_and_no_decoder(name):
    assert roles(drawn(name)[1]) == {}


def test_training_mode_weights_statistics_and_random_state_stay_as_they_are():
    class Noise(nn.Module):
        def forward(self, x):
            return x + torch.randn_like(x)

    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), Noise()).train()
    model[0].eval()
    weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    state = torch.random.get_rng_state()
    _arch.diagram(model, (1, 1, 8, 8))
    assert [module.training for module in model] == [False, True, True]
    assert all(torch.equal(model.state_dict()[name], weights[name]) for name in weights)
    assert torch.equal(torch.random.get_rng_state(), state)


@EVERY_MODEL
def test_the_picture_shows_every_stage_its_shape_and_parameters_that_add_up(name):
    model, stages, figure = drawn(name)
    shown = texts(figure)
    for stage in stages.values():
        assert stage.name in shown
        assert stage.kind == "unused" or str(stage.output_shape) in shown
        assert not stage.parameters or f"{stage.parameters:,} parameters" in shown
    total = sum(parameter.numel() for parameter in model.parameters())
    assert sum(stage.parameters for stage in stages.values()) == total
    assert f"{total:,} parameters in all" in shown


@EVERY_MODEL
def test_no_text_is_cut_overlaps_another_or_is_too_small(name):
    figure = drawn(name)[2]
    boxes = text_boxes(figure)
    for i, (text, x0, y0, x1, y1) in enumerate(boxes):
        assert "…" not in text
        assert 0 < x0 < x1 < figure.bbox.width <= 7 * figure.dpi
        assert 0 < y0 < y1 < figure.bbox.height
        for other, a0, b0, a1, b1 in boxes[:i]:
            assert x1 <= a0 or a1 <= x0 or y1 <= b0 or b1 <= y0, (text, other)
    assert min(text.get_fontsize() for text in figure.axes[0].texts) >= 8


def test_a_name_that_is_too_long_keeps_its_end():
    model = nn.Sequential()
    model.add_module("a_name_that_is_far_too_long_for_any_box_of_the_picture", nn.Linear(3, 3))
    boxes = text_boxes(_arch.diagram(model, (1, 3)))
    name, _, _, end, _ = next(box for box in boxes if box[0].startswith("…"))
    assert name.endswith("of_the_picture")
    assert end < next(start for text, start, *_ in boxes if text == "12 parameters")


def test_the_same_model_gives_the_same_picture_and_another_model_another_one():
    first, again, other = (_arch.diagram(Reader(layers=n), **IMAGE_AND_TOKENS) for n in (2, 2, 1))
    assert pixels(first) == pixels(again) != pixels(other)


def test_a_picture_can_be_saved_more_than_once_under_constrained_layout():
    with rc_context({"figure.constrained_layout.use": True}):
        figure = _arch.diagram(nn.Linear(3, 3), (1, 3))
        for kind in ("png", "svg"):
            figure.savefig(BytesIO(), format=kind)
    assert figure.axes[0].get_position().bounds == (0, 0, 1, 1)


def test_an_unknown_style_is_refused():
    with pytest.raises(ValueError, match="style='graph' is unknown: the accepted style is 'flow'"):
        _arch.diagram(Reader(), style="graph", **IMAGE_AND_TOKENS)


@pytest.mark.parametrize(
    ("build", "shape", "dtype", "message"),
    [
        (cnn, (1, 1, 26, 26), FLOAT, r"in \[3\] \(Linear\) after \[2\], given \(1, 2304\)"),
        (Reader, (IMAGE, TOKENS), FLOAT, r"in decoder.embed .*given \(1, 4\) torch.float32"),
        (Reader, ((1, 28, 77), TOKENS), (FLOAT, LONG), r"in encoder .*: images have shape"),
        (Misnamed, (TOKENS, (1, 28, 80)), (LONG, FLOAT), r"in model \(Misnamed\) after b, .*80"),
        (attention_block, (1, 4, 15), FLOAT, r"in \[0\].attention \(MultiheadAttention\) after"),
        (Reader, IMAGE, FLOAT, "failed in model .*missing .* argument: 'tokens'"),
        (Classifier, ((1, 7), (1, 7)), LONG, "failed in model .*takes 2 positional arguments"),
        (Classifier, (1, -7), LONG, r"input_shape=\(1, -7\).* negative dimension"),
        (Classifier, 7, LONG, "input_shape=7, input_dtype=torch.int64 failed"),
        (Classifier, (1, 7), "int64", "input_dtype='int64' failed: .*must be torch.dtype"),
        (Classifier, (1, 7), (LONG, LONG), r"\(torch.int64, torch.int64\) failed"),
    ],
)
def test_the_stage_that_refuses_is_named(build, shape, dtype, message):
    with pytest.raises(ValueError, match=message):
        _arch.diagram(build(), shape, input_dtype=dtype)
