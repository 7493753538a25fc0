"""A picture of a model, drawn from the module itself.

`diagram(model, input_shape, ...)` runs one real forward pass, follows every tensor through it and
draws what happened: a lane for each stream, a box for each block, the shape that left it and its
parameters. `stages(...)` returns the same facts as data.

Attribute names decide nothing. Arrows are data dependence; the encoder is what the attention or
the recurrence of another block reads, and the decoder is what does the reading.
"""

import inspect
import re
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import torch
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import FancyBboxPatch
from matplotlib.textpath import text_to_path
from torch import nn
from torch.overrides import TorchFunctionMode

from _style import COLOURS, INK, MUTED

ATTENTION = nn.MultiheadAttention
ATTENTION_ARGUMENTS = "query", "key", "value", "key_padding_mask", "need_weights", "attn_mask"
RECURRENT = nn.RNNBase, nn.RNNCellBase
SIZES = (
    ("in_features", "out_features"),
    ("in_channels", "out_channels"),
    ("num_embeddings", "embedding_dim"),
    ("input_size", "hidden_size"),
)


@dataclass
class Stage:
    """One box of the picture.

    kind: input, output, embedding, attention, recurrent, layer, parameter (a tensor that the model
    holds itself, such as learned positions) or undrawn (parameters that the pass did not meet).
    """

    name: str  # attribute path, such as encoder[0]; the argument's name for an input
    kind: str
    description: str
    output_shape: tuple[int, ...] | None  # of the first tensor that it returned
    parameters: int = 0  # a shared parameter counts once, in the first stage that holds it
    sources: tuple[str, ...] = ()  # the stages whose outputs it uses; loops back are left out
    memory: tuple[str, ...] = ()  # those that its cross-attention reads: keys from elsewhere
    layers: tuple[str, ...] = ()  # what a block does inside, in the order of the calls
    stream: str = ""  # the name of the stage at the top of its lane
    role: str = ""  # encoder, decoder or neither
    calls: int = 1


def stages(model, input_shape, input_dtype=torch.float32):
    """Return the model's stages in the order of one forward pass (inputs filled with ones).

    input_shape: one shape or a tuple of shapes, one for each argument of `model.forward`, with the
    batch dimension. input_dtype: one dtype, or a tuple of as many. The parameters of all stages
    sum to the model's total. Weights, training mode and the random state stay as they are.

    Raises ValueError when shapes or dtypes do not fit the model; where the forward pass failed,
    the message names the stage that refused and what it was given.
    """
    shapes, dtypes = _input_specs(model, input_shape, input_dtype)
    device = next((p.device for p in model.parameters()), "cpu")
    inputs = [torch.ones(s, dtype=d, device=device) for s, d in zip(shapes, dtypes, strict=True)]
    trace = _Trace(model)
    trace.add_inputs(inspect.signature(model.forward), inputs)
    _forward(model, inputs, trace)
    found = trace.finish()
    _set_streams(found)
    _set_roles(found)
    return list(found.values())


def diagram(model, input_shape, style="flow", input_dtype=torch.float32):
    """Draw the model as a matplotlib Figure: a lane for each stream, read from top to bottom.

    Arguments and errors as in `stages`; the one `style` is "flow". The same model gives the same
    picture every time.
    """
    if style != "flow":
        raise ValueError(f"style={style!r} is unknown: the accepted style is 'flow'")
    return _Drawing(stages(model, input_shape, input_dtype)).figure


# --- the forward pass -------------------------------------------------------------------------


def _input_specs(model, input_shape, input_dtype):
    """Return the shapes and the dtypes as two tuples of equal length, checked."""
    given = tuple(input_shape) if isinstance(input_shape, tuple | list) else (None,)
    shapes = (given,) if all(isinstance(size, int) for size in given) else given
    sizes = [size for s in shapes for size in (s if isinstance(s, tuple | list) else [0])]
    if not all(isinstance(size, int) and size > 0 for size in sizes):
        raise ValueError(
            f"input_shape={input_shape!r}: expected a shape of positive integers, such as "
            "(1, 28, 84), or a tuple of such shapes"
        )
    many = isinstance(input_dtype, tuple | list)
    dtypes = tuple(input_dtype) if many else (input_dtype,) * len(shapes)
    if not all(isinstance(dtype, torch.dtype) for dtype in dtypes):
        raise ValueError(f"input_dtype={input_dtype!r}: expected a torch.dtype or a tuple of them")
    if len(dtypes) != len(shapes):
        raise ValueError(f"{_count(len(shapes), 'input shape')}, but {len(dtypes)} in input_dtype")
    signature = inspect.signature(model.forward)
    try:
        signature.bind(*shapes)
    except TypeError as error:
        call = f"{type(model).__name__}.forward{signature}"
        raise ValueError(f"{call} does not take {_count(len(shapes), 'input')}: {error}") from error
    return shapes, dtypes


def _forward(model, inputs, trace):
    """Run the model once in eval mode under `trace`; put everything back afterwards."""
    training = {module: module.training for module in model.modules()}
    # The fused kernels of eval mode skip the inner modules, and with them their hooks.
    fast_path = torch.backends.mha.get_fastpath_enabled()
    hooks = []
    try:
        torch.backends.mha.set_fastpath_enabled(False)
        for path, module in model.named_modules():
            module.training = False
            enter, leave = partial(trace.enter, path), trace.leave
            hooks.append(module.register_forward_pre_hook(enter, with_kwargs=True))
            hooks.append(module.register_forward_hook(leave))
        with torch.random.fork_rng(devices=[]), torch.no_grad(), trace:
            trace.add_output(model(*inputs))
    except Exception as error:
        raise ValueError(trace.refusal(error)) from error
    finally:
        for hook in hooks:
            hook.remove()
        for module, mode in training.items():
            module.training = mode
        torch.backends.mha.set_fastpath_enabled(fast_path)


class _Trace(TorchFunctionMode):
    """Record the stages of a forward pass, and for each tensor the stages that it came from.

    Every torch function hands the sources of its arguments on to its results, until a block puts
    itself in their place. Boolean tensors hand on none: a mask steers, it is not a stream.
    """

    def __init__(self, model):
        super().__init__()
        self.model = model
        self.blocks = {}  # module -> attribute path, the first one of a shared module
        for module, path in _blocks(model):
            self.blocks.setdefault(module, path)
        inside = {id(p) for block in self.blocks for p in block.parameters()}
        named = model.named_parameters()
        self.loose = {_bracketed(path): p for path, p in named if id(p) not in inside}
        # id -> (tensor, sources); holding the tensor keeps its id from being used again.
        self.origins = {id(p): (p, (name,)) for name, p in self.loose.items()}
        self.stages, self.names, self.counted = {}, {}, set()
        self.running = [("", model, [])]  # (path, module, tensors) of the unfinished calls
        self.block = None  # the module of the block now running; what it did so far:
        self.sources, self.query, self.memory, self.inner = (), (), (), {}

    # Tensors

    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        changed = args[0] if func is torch.Tensor.__setitem__ else result
        outputs = [tensor for tensor in _tensors(changed) if tensor.dtype != torch.bool]
        if outputs:
            names = self._meet(self._from(_tensors((args, kwargs))), outputs[0])
            self._remember(outputs, names)
        return result

    def _from(self, tensors):
        return _merge(*(self.origins[id(t)][1] for t in tensors if id(t) in self.origins))

    def _remember(self, tensors, names):
        self.origins |= {id(tensor): (tensor, names) for tensor in tensors}

    def _meet(self, names, result, alone=False):
        """Where a parameter of the model's own meets a stream, it becomes a stage of the stream.

        One that reaches a block alone, such as learned queries, becomes a stage without sources.
        """
        new = [name for name in names if name in self.loose and name not in self.stages]
        stream = tuple(name for name in names if name not in new)
        if not (new and (stream or alone)):
            return names
        for name in new:
            parameter = self.loose[name]
            size = " × ".join(map(str, parameter.shape)) or "scalar"
            sources = () if alone else stream
            self._add(name, "parameter", f"Parameter {size}", [result], [parameter], sources)
            stream = (name,)
        return names if alone else stream

    # Hooks, on every module

    def enter(self, path, module, args, kwargs):
        tensors = _tensors((args, kwargs))
        self.running.append((path, module, tensors))
        if module in self.blocks and not self.block:
            for tensor in tensors:
                self._meet(self._from([tensor]), tensor, alone=True)
            self.block = module
            self.sources, self.query, self.memory, self.inner = self._from(tensors), (), (), {}
        if self.block and isinstance(module, ATTENTION):
            given = dict(zip(ATTENTION_ARGUMENTS, args, strict=False)) | kwargs
            self.inner[module] = self._attention(module, given)
        elif self.block and not _children(module):
            self.inner[module] = _describe(module)

    def _attention(self, module, given):
        """Name the attention: it is self-attention if the keys come from where the query does."""
        query, keys = self._from([given["query"]]), self._from([given["key"], given["value"]])
        own = given["query"] is given["key"] or (query and set(query) <= set(keys))
        if not own:
            self.query, self.memory = self.query or query, _merge(self.memory, keys)
        masked = "masked " if given.get("attn_mask") is not None else ""
        kind = "self" if own else "cross"
        return f"{masked}{kind}-attention · {_count(module.num_heads, 'head')}"

    def leave(self, module, args, output):
        tensors = self.running.pop()[2]
        if self.block is not module:
            return output
        self.block = None
        if any(output is tensor for tensor in tensors):  # an identity: give its output an identity
            output = output.view_as(output)
        self._remember(_tensors(output), (self._add_block(module, _tensors(output)),))
        return output

    # Stages

    def _add(self, name, kind, description, outputs=(), parameters=(), sources=(), **more):
        shape = tuple(outputs[0].shape) if outputs else None
        new = {id(p): p.numel() for p in parameters if id(p) not in self.counted}
        if len(new) < len(parameters):
            description += ", shared weights"
        self.counted |= new.keys()
        stage = Stage(name, kind, description, shape, sum(new.values()), sources, **more)
        self.stages[name] = stage

    def _add_block(self, module, outputs):
        """Add the block that has run, or one more call to it; return the stage's name."""
        parameters = list(module.parameters())
        # A layer without parameters (one ReLU for all) is a stage wherever it is put to new use.
        use = module if parameters else (module, frozenset(self.sources))
        sources = _merge(self.query, self.sources)  # first comes the stream that it continues
        if use in self.names:
            stage = self.stages[self.names[use]]
            stage.calls += 1
            stage.sources = _merge(stage.sources, sources)
            stage.memory = _merge(stage.memory, self.memory)
            return stage.name
        name = self.names[use] = self._unique(_bracketed(self.blocks[module]) or "model")
        layers = _summary(self.inner) if _children(module) else ()
        more = {"memory": self.memory, "layers": layers}
        self._add(name, _kind(module), _describe(module), outputs, parameters, sources, **more)
        return name

    def add_inputs(self, signature, inputs):
        names = [p.name for p in signature.parameters.values() if p.kind is not p.VAR_POSITIONAL]
        names += [f"input {i + 1}" for i in range(len(names), len(inputs))]
        for name, tensor in zip(names, inputs, strict=False):
            name = self._free(name, "input")
            self._add(name, "input", _dtype(tensor), [tensor])
            self._remember([tensor], (name,))

    def add_output(self, output):
        first = _tensors(output)[:1]
        description = _dtype(first[0]) if first else type(output).__name__
        name = self._free("output", "of the model")
        self._add(name, "output", description, first, (), self._from(first))

    def _free(self, name, word):
        """A module's path stays its own: an input or output of that name gets a word added."""
        return f"{name} ({word})" if name in {*self.blocks.values(), *self.loose} else name

    def _unique(self, name):
        used = sum(1 for other in self.stages if other == name or other.startswith(f"{name} #"))
        return f"{name} #{used + 1}" if used else name

    def finish(self):
        """Return the stages by name: without loops, and with what the pass did not meet."""
        earlier = set()
        for stage in self.stages.values():
            stage.sources = tuple(name for name in stage.sources if name in earlier)
            stage.memory = tuple(name for name in stage.memory if name in earlier)
            earlier.add(stage.name)
        owners = [(path, list(module.parameters())) for module, path in self.blocks.items()]
        owners += [(name, [parameter]) for name, parameter in self.loose.items()]
        for path, parameters in owners:
            if left := [p for p in parameters if id(p) not in self.counted]:
                name = self._unique(_bracketed(path) or "model")
                self._add(name, "undrawn", "not met in the pass", (), left)
        return self.stages

    def refusal(self, error):
        """Say which module was running when the pass failed, and what it had been given."""
        path, module, tensors = self.running[-1]
        where = f"{_bracketed(path) or 'the model'} ({type(module).__name__})"
        done = [stage.name for stage in self.stages.values() if stage.kind != "input"]
        since = f" after {done[-1]}" if done and module is self.model else ""
        given = ", ".join(f"{tuple(t.shape)} {_dtype(t)}" for t in tensors) or "no tensor"
        return f"the forward pass failed in {where}{since}; its input: {given}; the error: {error}"


def _blocks(module, path=""):
    """Yield (module, path) for what is drawn as one box.

    That is a layer, or a module below the top that directly holds attention or recurrence.
    """
    children = _children(module)
    sequence = (ATTENTION, *RECURRENT)
    holds = path and any(isinstance(child, sequence) for child in children.values())
    if holds or not children or isinstance(module, sequence):
        yield module, path
    else:
        for name, child in children.items():
            yield from _blocks(child, f"{path}.{name}" if path else name)


def _kind(module):
    held = [module, *_children(module).values()]
    if any(isinstance(layer, ATTENTION) for layer in held):
        return "attention"
    if any(isinstance(layer, RECURRENT) for layer in held):
        return "recurrent"
    return "embedding" if isinstance(module, nn.Embedding | nn.EmbeddingBag) else "layer"


def _describe(module):
    """`Linear 49 → 96`: the class, and the sizes of a layer that has them."""
    for before, after in SIZES:
        sizes = getattr(module, before, None), getattr(module, after, None)
        if all(isinstance(size, int) for size in sizes):
            both = "2 × " if getattr(module, "bidirectional", False) else ""
            return f"{type(module).__name__} {sizes[0]} → {both}{sizes[1]}"
    return type(module).__name__


def _summary(inner):
    """List a block's inner layers; linear layers with only activations between are one row."""
    rows, widths = [], []
    for module, label in [*inner.items(), (None, "")]:
        if isinstance(module, nn.Linear):
            widths = [*(widths or [module.in_features]), module.out_features]
        elif not module or "Norm" in label or list(module.parameters()):
            if widths:
                name = "feed-forward" if len(widths) > 2 else "Linear"
                rows.append(f"{name} {' → '.join(map(str, widths))}")
            rows, widths = [*rows, label], []
    return tuple(rows[:-1])


def _children(module):
    return dict(module.named_children())


def _tensors(value):
    """Return the tensors in nested tuples, lists and dicts, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    items = value.values() if isinstance(value, dict) else value
    if not isinstance(value, dict | tuple | list):
        return []
    return [tensor for item in items for tensor in _tensors(item)]


def _merge(*groups):
    return tuple(dict.fromkeys(name for group in groups for name in group))


def _bracketed(path):
    """`encoder.0.norm` -> `encoder[0].norm`"""
    return re.sub(r"(^|\.)(\d+)(?=\.|$)", r"[\2]", path)


def _count(number, noun):
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def _dtype(tensor):
    return str(tensor.dtype).removeprefix("torch.")


# --- streams and roles ------------------------------------------------------------------------


def _set_streams(found):
    """Put each stage on the stream that it continues: its query's, else its first source's."""
    drawn = [stage for stage in found.values() if stage.kind != "undrawn"]
    for stage in drawn:
        if stage.kind == "input":
            stage.stream = stage.name
        elif stage.sources:
            first = found[stage.sources[0]]
            known = [found[name].stream for name in stage.sources if found[name].stream]
            # Learned queries start a stream of their own; learned positions join the one at hand.
            starts = stage.memory or not known
            stage.stream = first.stream or (first.name if starts else known[0])
            for name in stage.sources:
                found[name].stream = found[name].stream or stage.stream
    for stage in drawn:
        stage.stream = stage.stream or drawn[0].name


def _set_roles(found):
    """Decoders read: by cross-attention, or by recurrence from a state of another stream."""
    reads = {}  # decoder block -> the stages that it reads
    for stage in found.values():
        others = [found[name] for name in stage.sources if found[name].stream != stage.stream]
        states = [other.name for other in others if other.kind in ("recurrent", "layer")]
        if read := stage.memory or (stage.kind == "recurrent" and states):
            reads[stage.name] = read
    everything = list(found.values())
    for source in (found[name] for names in reads.values() for name in names):
        before = everything[: everything.index(source) + 1]
        lane = [s for s in before if s.stream == source.stream and s.name not in reads]
        _mark(lane, "encoder", ("attention", "recurrent"))
        if source.kind == "layer" and not source.role:  # an encoder of convolutions, say
            _mark(lane, "encoder", ("layer",))
    for stream in sorted({found[name].stream for name in reads}):
        lane = [s for s in everything if s.stream == stream and s.role != "encoder"]
        end = max(i for i, s in enumerate(lane) if s.kind in ("attention", "recurrent")) + 1
        while end < len(lane) and "Norm" in lane[end].description:  # the stack's final norm
            end += 1
        _mark(lane[:end], "decoder", ("attention", "recurrent"))


def _mark(lane, role, kinds):
    """Give the role to the layers and blocks of a lane, from the first of these kinds on."""
    start = next((i for i, stage in enumerate(lane) if stage.kind in kinds), len(lane))
    for stage in lane[start:]:
        if stage.kind in ("attention", "recurrent", "layer"):
            stage.role = role


# --- the drawing (lengths in inches, y downwards) ---------------------------------------------

LINE, ROW, PAD, GAP, TITLE, MARGIN, SLOT = 0.19, 0.25, 0.08, 0.21, 0.29, 0.16, 0.12
SMALL, NORMAL = 8, 9  # points


class _Drawing:
    """The stages laid out in lanes, on one axes that covers the figure.

    Edges between neighbours are straight arrows. All others run through a channel, the space left
    of a lane (or right of the last one), as a bus: one vertical line for each source.
    """

    def __init__(self, found):
        self.stages = {stage.name: stage for stage in found if stage.kind != "undrawn"}
        self.lanes = self._lanes()
        self.lane = {stage.name: i for i, lane in enumerate(self.lanes) for stage in lane}
        self.above = {b.name: a.name for lane in self.lanes for a, b in pairwise(lane)}
        self.box_width = {1: 3.4, 2: 2.72}.get(len(self.lanes), 2.4)
        self.top, self.panels = {}, []  # stage name -> y; (role, the stages of one lane in it)
        bottom = max(self._stack(lane) for lane in self.lanes)
        buses = self._buses()
        self.left, self.channels, width = self._columns(buses)
        undrawn = [stage for stage in found if stage.kind == "undrawn"]
        height = bottom + 0.42 + LINE * len(undrawn)
        self.figure = Figure((width, height), facecolor="white", layout="none")
        self.axes = self.figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(height, 0))
        self.axes.set_axis_off()
        for role, members in self.panels:
            self._draw_panel(role, members)
        for stage in self.stages.values():
            self._draw_stage(stage)
        for bus in buses:
            self._draw_bus(*bus)
        self._draw_totals(sum(stage.parameters for stage in found), undrawn, bottom + 0.25, width)

    # Layout

    def _lanes(self):
        """Group the stages by stream; a stream that is read stands left of the one that reads."""
        lanes, reads = {}, {}
        for stage in self.stages.values():
            lanes.setdefault(stage.stream, []).append(stage)
            others = sum(self.stages[name].stream != stage.stream for name in stage.sources)
            reads[stage.stream] = reads.get(stage.stream, 0) + others
        alone = [lane[0] for lane in lanes.values() if len(lane) == 1]
        for stage in reversed(alone if len(lanes) > 2 else []):
            # An input that nothing continues, a mask say, moves to the lane of its reader.
            readers = [s.stream for s in self.stages.values() if stage.name in s.sources]
            others = (s for s in (*readers, *lanes) if s in lanes and s != stage.stream)
            lanes[next(others)].insert(0, lanes.pop(stage.stream)[0])
        return [lanes[stream] for stream in sorted(lanes, key=reads.get)]

    def _stack(self, lane):
        """Set the y of each box of a lane, and the panels around its roles; return the end."""
        y = MARGIN
        for i, stage in enumerate(lane):
            members = [s for s in lane if s.role == stage.role] if stage.role else []
            if stage in members[:1]:
                self.panels.append((stage.role, lane[i : lane.index(members[-1]) + 1]))
                y += TITLE
            self.top[stage.name] = y
            y += self._height(stage) + GAP + (PAD if stage in members[-1:] else 0)
        return y - GAP

    def _height(self, stage):
        lines = 2 if _is_tall(stage) else 1
        return PAD + LINE * lines + ROW * len(stage.layers) + (0.04 if stage.layers else 0)

    def _row(self, stage, i):
        """The y of the middle of a block's inner row."""
        return self.top[stage.name] + PAD / 2 + 2 * LINE + ROW * (i + 0.5) + 0.02

    def _bottom(self, name):
        return self.top[name] + self._height(self.stages[name])

    def _is_straight(self, source, stage):
        return source == self.above.get(stage.name) and source not in stage.memory

    def _buses(self):
        """Return (source, targets as (name, y), whether attention reads it, channel, slot)."""
        targets = {}
        for stage in self.stages.values():
            rows = [i for i, row in enumerate(stage.layers) if "cross-attention" in row]
            for source in stage.sources:
                if self._is_straight(source, stage):
                    continue
                here, there, read = self.lane[stage.name], self.lane[source], source in stage.memory
                ys = [self._row(stage, i) for i in rows] if read else [self.top[stage.name] + 0.07]
                outer = there > here or here == there == len(self.lanes) - 1 > 0
                ends = targets.setdefault((source, read, here + outer), [])
                ends.extend((stage.name, y) for y in ys)
        spans = []
        for (source, read, channel), ends in targets.items():
            ys = [self._bottom(source) - 0.1, *(y for _, y in ends)]
            spans.append((min(ys), max(ys), source, ends, read, channel))
        taken, buses = {}, []  # (channel, slot) -> the spans of y in use; the longest run outside
        for low, high, *bus, channel in sorted(spans, key=lambda span: span[0] - span[1]):
            slot = 0
            while any(low < b and a < high for a, b in taken.get((channel, slot), [])):
                slot += 1
            taken.setdefault((channel, slot), []).append((low, high))
            buses.append((*bus, channel, slot))
        return buses

    def _columns(self, buses):
        """Return the x of each lane, the x of each channel's first slot, and the full width."""
        left, channels, x = [], [], 0
        for i in range(len(self.lanes) + 1):
            slots = 1 + max((slot for *_, channel, slot in buses if channel == i), default=-1)
            space = MARGIN + (0.2 if 0 < i < len(self.lanes) else 0)  # wider between two lanes
            channels.append(x + space + SLOT / 2)
            x += 2 * space + SLOT * slots
            left.append(x)
            x += self.box_width
        channels[-1] = left[-1] - MARGIN - SLOT / 2  # the slots of the last one run leftwards
        return left[:-1], channels, left[-1]

    # Ink

    def _draw_panel(self, role, members):
        x, y = self.left[self.lane[members[0].name]], self.top[members[0].name] - TITLE
        height = self._bottom(members[-1].name) + PAD - y
        self._box(x - PAD, y, self.box_width + 2 * PAD, height, COLOURS[role], 0.06, line=0)
        count = _count(sum(stage.parameters for stage in members), "parameter")
        self._pair(x, x + self.box_width, y + TITLE / 2 + 0.01, role.capitalize(), count)

    def _draw_stage(self, stage):
        x, y = self.left[self.lane[stage.name]], self.top[stage.name]
        above = self.above.get(stage.name)
        if above in stage.sources and self._is_straight(above, stage):
            centre = x + self.box_width / 2
            self._arrow((centre, self._bottom(above)), (centre, y), MUTED)
        tint = 0 if stage.kind in ("input", "output") else 0.14
        self._box(x, y, self.box_width, self._height(stage), _colour(stage), tint)
        left, right, line = x + PAD, x + self.box_width - PAD, y + (PAD + LINE) / 2
        about = stage.description + (f" · {stage.calls} calls" if stage.calls > 1 else "")
        shape = "" if stage.output_shape is None else str(stage.output_shape)
        if _is_tall(stage):
            count = _count(stage.parameters, "parameter") if stage.parameters else ""
            self._pair(left, right, line, stage.name, count)
            self._pair(left, right, line + LINE, "", shape, about)
        else:
            self._pair(left, right, line, stage.name, shape, about)
        for i, row in enumerate(stage.layers):
            middle, width = self._row(stage, i), self.box_width - 2 * PAD
            attends = "-attention" in row
            colour, tint = (COLOURS["attention"], 0.2) if attends else (MUTED, 0)
            self._box(left, middle - 0.1, width, 0.2, colour, tint, line=0.7)
            self._text(left + PAD, middle, _fit(row, width - 2 * PAD, SMALL))

    def _draw_bus(self, source, targets, read, channel, slot):
        colour, line = (COLOURS["attention"], 1.8) if read else (MUTED, 1)
        step = SLOT if channel < len(self.lanes) else -SLOT
        x, start = self.channels[channel] + step * slot, self._bottom(source) - 0.07
        ends = [y for _, y in targets]
        for y in sorted({min(ends), max(ends)}):
            path = [self._side(source, channel), x, x], [start, start, y]
            self.axes.plot(*path, color=colour, lw=line, solid_joinstyle="round", zorder=1)
        for name, y in targets:
            side, inset = self._side(name, channel), PAD if read else 0
            self._arrow((x, y), (side + (inset if side > x else -inset), y), colour, line)

    def _side(self, name, channel):
        """The x of the side of a box that faces the channel."""
        lane = self.lane[name]
        return self.left[lane] + (self.box_width if channel > lane else 0)

    def _draw_totals(self, total, undrawn, y, width):
        x = self.left[0]
        for stage in undrawn:
            text = f"in no box: {stage.name}, {_count(stage.parameters, 'parameter')}"
            self._text(x, y, _fit(text, width - 2 * x, SMALL))
            y += LINE
        self._text(x, y, f"{_count(total, 'parameter')} in all", weight="bold")

    def _pair(self, left, right, y, name, value, about=""):
        """A bold name and what it is on the left, a value on the right; the left cut to fit."""
        self._text(right, y, value, ha="right")
        end = right - _width(value, SMALL) - 0.1
        name = _fit(name, end - left, NORMAL, "bold")
        self._text(left, y, name, NORMAL, weight="bold")
        left += _width(name, NORMAL, "bold") + (0.1 if name else 0)
        self._text(left, y, _fit(about, end - left, SMALL))

    def _text(self, x, y, text, size=SMALL, **options):
        self.axes.text(x, y, text, size=size, color=INK, va="center_baseline", zorder=4, **options)

    def _box(self, x, y, width, height, colour, tint, line=1):
        style = "round,pad=0,rounding_size=0.06"
        fill = [1 - tint * (1 - part) for part in to_rgb(colour)]
        layer = {"lw": line, "zorder": 2 if line else 0}
        self.axes.add_patch(
            FancyBboxPatch((x, y), width, height, style, fc=fill, ec=colour, **layer)
        )

    def _arrow(self, start, end, colour, line=1):
        style = {"arrowstyle": "-|>,head_width=0.2,head_length=0.4", "color": colour, "lw": line}
        style |= {"shrinkA": 0, "shrinkB": 0, "joinstyle": "miter"}
        self.axes.annotate("", end, start, arrowprops=style, zorder=3)


def _is_tall(stage):
    return bool(stage.parameters or stage.layers)


def _colour(stage):
    table = stage.kind == "parameter" and "×" in stage.description  # rows of vectors
    kind = "embedding" if table else stage.role or stage.kind
    return COLOURS.get(kind, MUTED)


def _width(text, size, weight="normal"):
    font = FontProperties(size=size, weight=weight)
    return text_to_path.get_text_width_height_descent(text, font, ismath=False)[0] / 72


def _fit(text, width, size, weight="normal"):
    """Cut a text from the left until it fits: the end of a path says most."""
    short = text
    while len(short) > 1 and _width(short, size, weight) > width:
        text = text[1:]
        short = "…" + text
    return short if _width(short, size, weight) <= width else ""
