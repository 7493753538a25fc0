"""The stages of a model, found by following every tensor through one real forward pass.

Attribute names decide nothing. An edge is data dependence; a decoder is a block that reads another
stream, by attention or from a recurrent state, and the encoder is what it reads.
"""

import re
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import signature
from itertools import chain, repeat

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

SEQUENCE = nn.MultiheadAttention, nn.RNNBase, nn.RNNCellBase
SILENT = nn.Identity, nn.Dropout, nn.Sequential  # without layers inside, these do nothing
SIZES_BEFORE = "in_features", "in_channels", "num_embeddings", "input_size"
SIZES_AFTER = "out_features", "out_channels", "embedding_dim", "hidden_size"


@dataclass(eq=False)
class Stage:
    """One box of the picture."""

    name: str  # attribute path, such as encoder[0]; the argument's name for an input
    kind: str  # input, output, embedding, block (attention or recurrence inside), layer or unused
    description: str  # class and sizes, or dtype
    held: list[nn.Parameter] = field(default_factory=list, repr=False)
    parameters: int = 0  # a shared parameter counts once, in the first stage that holds it
    output_shape: tuple[int, ...] = ()  # of the first tensor that it returned
    sources: tuple["Stage", ...] = field(default=(), repr=False)  # the stages whose outputs it uses
    stream: "Stage" = field(default=None, repr=False)  # the first stage of the stream it continues
    layers: tuple[str, ...] = ()  # what a block does inside, in the order of the calls
    role: str = ""  # encoder, decoder or neither
    calls: int = 0


def stages(model, input_shape, input_dtype=torch.float32):
    """Return the model's stages in the order of one forward pass (inputs filled with ones).

    input_shape: one shape or a tuple of shapes, one for each argument of `model.forward`, with the
    batch dimension. input_dtype: one dtype for all, or a tuple of as many. The pass runs on a copy
    in eval mode, so model and random state stay as they are. The parameters of all stages sum to
    the model's total. Raises ValueError when shapes or dtypes do not fit the model; it names the
    stage that refused and what that stage was given.
    """
    trace = _Trace(deepcopy(model).cpu().eval())
    try:
        shapes = [input_shape] if all(isinstance(n, int) for n in input_shape) else input_shape
        dtypes = input_dtype if isinstance(input_dtype, tuple) else [input_dtype] * len(shapes)
        inputs = [torch.ones(s, dtype=d) for s, d in zip(shapes, dtypes, strict=True)]
        with torch.random.fork_rng(devices=[]), torch.no_grad(), trace:
            trace.run(inputs)
    except Exception as error:
        call = f"{type(model).__name__} with {input_shape=}, {input_dtype=}"
        raise ValueError(f"{call} failed{trace.refused}: {error}") from error
    _set_roles(trace.stages)
    return trace.stages


class _Trace(TorchFunctionMode):
    """Record the stages of a forward pass, and for each tensor the stages that it came from.

    Every torch function hands the origins of its arguments on to its results; a box puts itself in
    their place. Boolean tensors hand on none: a mask is no stream. A stage without sources, such
    as learned positions, waits until its tensor meets a stream, and has its place there.
    """

    def __init__(self, model):
        super().__init__()
        self.model, self.stages = model, []
        self.origins, self.boxes = {}, {}  # tensor -> stages; module -> its stage
        self.box, self.query, self.inner = None, [], {}  # the box now running, what it did so far
        self.refused = ""  # where it failed
        self.input_names = chain(signature(model.forward).parameters, repeat("input"))
        for path, module in model.named_modules():
            name = _bracketed(path) or "model"
            if kind := _kind(module, module is model):
                held = list(module.parameters())
                self.boxes[module] = Stage(name, kind, _describe(module), held)
            module.forward = partial(self._call, name, module, module.forward)
        self.uncounted = {parameter: path for path, parameter in model.named_parameters()}
        for parameter, path in self.uncounted.items():
            kind = "embedding" if parameter.dim() > 1 else "layer"
            about = f"Parameter {' × '.join(map(str, parameter.shape)) or 'scalar'}"
            self.origins[parameter] = (Stage(_bracketed(path), kind, about, [parameter]),)

    def run(self, inputs):
        for name, tensor in zip(self.input_names, inputs, strict=False):
            self._add(Stage(name, "input", str(tensor.dtype)), (), tensor)
            self.origins[tensor] = (self.stages[-1],)
        outputs = _tensors(self.model(*inputs))
        if not outputs:
            raise TypeError("the model returned no tensor")
        sources = self._join(self._origins(outputs[0]), outputs[0])
        self._add(Stage("output", "output", str(outputs[0].dtype)), sources, outputs[0])
        if self.uncounted:
            about = "unused", "unused", ", ".join(self.uncounted.values())
            self._add(Stage(*about, list(self.uncounted)), (), torch.empty(0))

    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        changed = args[0] if func is torch.Tensor.__setitem__ else result
        made = [tensor for tensor in _tensors(changed) if tensor.dtype != torch.bool]
        origins = self._origins((args, kwargs))
        if made and any(stage in self.stages for stage in origins):
            origins = self._join(origins, made[0])
        self.origins |= dict.fromkeys(made, origins)
        return result

    def _origins(self, value):
        found = [stage for tensor in _tensors(value) for stage in self.origins.get(tensor, ())]
        if self.box is not None:  # the parameters of a box are no stages of their own
            found = [stage for stage in found if stage in self.stages]
        return tuple(dict.fromkeys(found))

    def _join(self, origins, tensor):
        """Give the stages that wait their place, after the others; return where the stream is."""
        stream = tuple(stage for stage in origins if stage in self.stages)
        for stage in origins:
            if stage not in self.stages:
                self._add(stage, stream, tensor)
                stream = (stage,)
        return stream

    def _add(self, stage, sources, tensor):
        own = [p.numel() for p in stage.held if self.uncounted.pop(p, None)]
        stage.description += ", shared weights" if len(own) < len(stage.held) else ""
        stage.parameters, stage.sources, stage.output_shape = sum(own), sources, tuple(tensor.shape)
        stage.stream = sources[0].stream if sources else stage
        self.stages.append(stage)

    def _call(self, name, module, forward, *args, **kwargs):
        """Stand in for the forward method of every module."""
        try:
            if self.box is None and module in self.boxes:
                return self._call_box(name, module, forward, *args, **kwargs)
            if self.box is not None:
                self._look_inside(module, signature(forward).bind(*args, **kwargs).arguments)
            return forward(*args, **kwargs)
        except Exception:
            given = [f"{tuple(t.shape)} {t.dtype}" for t in _tensors((args, kwargs))]
            where = f" in {name} ({type(module).__name__}) after {self.stages[-1].name}"
            # The innermost call is the first to see the exception.
            self.refused = self.refused or f"{where}, given {', '.join(given) or 'no tensor'}"
            raise

    def _call_box(self, name, module, forward, *args, **kwargs):
        given = _tensors((args, kwargs))
        for tensor in given:
            self._join(self._origins(tensor), tensor)
        self.box, self.query, self.inner = module, [], {}
        output = self._call(name, module, forward, *args, **kwargs)
        made, sources = _tensors(output), self._origins((self.query, given))
        self.box = None
        stage = self.boxes[module]
        if not stage.held and sources != stage.sources:  # one ReLU may serve in many places
            stage = self.boxes[module] = replace(stage, calls=0)
        stage.calls += 1
        if stage.calls == 1:
            stage.layers = _rows(self.inner.values()) if list(module.children()) else ()
            if sources and made:
                self._add(stage, sources, made[0])
        self.origins |= dict.fromkeys(made, (stage,))
        return output

    def _look_inside(self, module, given):
        """Note a layer of the running box, whose stream is that of its first query."""
        label = _describe(module) if list(module.parameters()) else ""
        if isinstance(module, SEQUENCE):
            self.query = self.query or [next(iter(given.values()))]
        if isinstance(module, nn.MultiheadAttention):
            query = self._origins(given["query"])
            keys = self._origins((given["key"], given["value"]))
            masked = "masked " if given.get("attn_mask") is not None else ""
            kind = "self" if set(query) == set(keys) else "cross"
            label = f"{masked}{kind}-attention · {count(module.num_heads, 'head')}"
        if isinstance(module, SEQUENCE) or not list(module.children()):
            self.inner.setdefault(module, label)


def _set_roles(found):
    for stage in found:
        for source in stage.sources if stage.kind == "block" else ():
            if source.stream is not stage.stream and source.kind in ("block", "layer"):
                _mark(found, source, "encoder")
                _mark(found, stage, "decoder")


def _mark(found, last, role):
    """Give a role to a stream, from its first block to its last one up to `last`."""
    lane = [stage for stage in found if stage.stream is last.stream]
    kinds = [stage.kind for stage in lane[: lane.index(last) + 1]]
    kind = "block" if "block" in kinds else "layer"  # an encoder of convolutions, say
    start, end = kinds.index(kind), len(kinds) - kinds[::-1].index(kind)
    while end < len(lane) and "Norm" in lane[end].description:  # the stack's final norm
        end += 1
    for stage in lane[start:end]:
        stage.role = role


def _kind(module, is_top):
    """The kind of box that a module is, or "" for one that does nothing or is drawn in parts."""
    children = list(module.children())
    parts = [module] if is_top else [module, *children]
    if any(isinstance(part, SEQUENCE) for part in parts):
        return "block"
    if children or isinstance(module, SILENT):
        return ""
    return "embedding" if isinstance(module, nn.Embedding) else "layer"


def _describe(module):
    """`Linear 49 → 96`: the class, and the sizes of a layer that has them."""
    name = type(module).__name__
    for before, after in zip(SIZES_BEFORE, SIZES_AFTER, strict=True):
        if hasattr(module, before) and hasattr(module, after):
            both = "2 × " if getattr(module, "bidirectional", False) else ""
            name += f" {getattr(module, before)} → {both}{getattr(module, after)}"
    return name


def _rows(labels):
    """Drop empty labels; linear layers with only such between them are one feed-forward row."""
    rows, before = [], "none"
    for label in labels:
        linear = rows and rows[-1].startswith(("Linear ", "feed-forward "))
        if linear and not before and label.startswith("Linear "):
            rows[-1] = rows[-1].replace("Linear", "feed-forward") + label[label.index(" →") :]
        elif label:
            rows.append(label)
        before = label
    return tuple(rows)


def _tensors(value):
    """Return the tensors in nested tuples, lists and dicts, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    items = value.values() if isinstance(value, dict) else value
    inside = items if isinstance(value, dict | tuple | list) else ()
    return [tensor for item in inside for tensor in _tensors(item)]


def _bracketed(path):
    """`encoder.0.norm` -> `encoder[0].norm`"""
    return re.sub(r"(^|\.)(\d+)(?=\.|$)", r"[\2]", path)


def count(number, noun):
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
