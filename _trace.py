"""The stages of a model, found by following every tensor through one real forward pass.

Attribute names decide nothing. An edge is data dependence; a decoder is a block that reads another
stream, by attention or from a recurrent state, and the encoder is what it reads.
"""

import re
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from inspect import signature
from itertools import chain, pairwise, repeat

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

SEQUENCE = nn.MultiheadAttention, nn.RNNBase, nn.RNNCellBase
SIZES_BEFORE = "in_features", "in_channels", "num_embeddings", "input_size"
SIZES_AFTER = "out_features", "out_channels", "embedding_dim", "hidden_size"


@dataclass(eq=False)
class Stage:
    """One box of the picture.

    kind: input, output, embedding (or a table of the model's own, such as learned positions),
    block (attention or recurrence and the layers around it), layer, or unused (all parameters
    that the pass did not meet).
    """

    name: str  # attribute path, such as encoder[0]; the argument's name for an input
    kind: str
    description: str
    output_shape: tuple[int, ...] = ()  # of the first tensor that it returned
    sources: tuple["Stage", ...] = field(default=(), repr=False)  # the stages whose outputs it uses
    layers: tuple[str, ...] = ()  # what a block does inside, in the order of the calls
    holds: list[nn.Parameter] = field(default_factory=list, repr=False)
    parameters: int = 0  # a shared parameter counts once, in the first stage that holds it
    role: str = ""  # encoder, decoder or neither
    calls: int = 1

    @property
    def stream(self):
        """The stage at the start of the stream that this one continues."""
        return self.sources[0].stream if self.sources else self


def stages(model, input_shape, input_dtype=torch.float32):
    """Return the model's stages in the order of one forward pass (inputs filled with ones).

    input_shape: one shape or a tuple of shapes, one for each argument of `model.forward`, with the
    batch dimension. input_dtype: one dtype for all, or a tuple of as many. The pass runs on a copy
    in eval mode: model and random state stay as they are. The parameters of all stages sum to the
    model's total.

    Raises ValueError when shapes or dtypes do not fit the model; where the forward pass failed,
    the message names the stage that refused and what it was given.
    """
    inputs = _inputs(input_shape, input_dtype)
    trace = _Trace(deepcopy(model).cpu().eval())
    try:
        with torch.random.fork_rng(devices=[]), torch.no_grad(), trace:
            trace.run(inputs)
    except Exception as error:
        raise ValueError(f"the forward pass failed in {trace.refusal}; error: {error}") from error
    trace.count_parameters()
    _set_roles(trace.stages)
    return trace.stages


def _inputs(shape, dtype):
    try:
        shapes = [shape] if all(isinstance(size, int) for size in shape) else shape
        dtypes = [dtype] * len(shapes) if isinstance(dtype, torch.dtype) else dtype
        return [torch.ones(s, dtype=d) for s, d in zip(shapes, dtypes, strict=True)]
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"input_shape={shape!r}, input_dtype={dtype!r}: expected a shape such as (1, 28, 84) "
            "or a tuple of shapes, and a torch.dtype or a tuple of as many"
        ) from error


class _Trace(TorchFunctionMode):
    """Record the stages of a forward pass, and for each tensor the stages that it came from.

    Every torch function hands the origins of its arguments on to its results; a box puts itself in
    their place. Boolean tensors hand on none: a mask is no stream. A stage without sources, such
    as learned positions, waits until its tensor meets a stream, and has its place there.
    """

    def __init__(self, model):
        super().__init__()
        self.model, self.stages, self.refusal = model, [], ""
        self.origins = {}  # tensor -> stages
        self.uses = {}  # module, or module and sources -> its stage
        self.box, self.query, self.inner = None, (), {}  # the box now running, what it did so far
        self.input_names = chain(signature(model.forward).parameters, repeat("input"))
        self.paths = {module: _bracketed(path) for path, module in model.named_modules()}
        self.paths[model] = "model"
        self.kinds = {module: _kind(module, module is model) for module in self.paths}
        boxed = {p for module, kind in self.kinds.items() if kind for p in module.parameters()}
        for path, parameter in model.named_parameters():
            if parameter not in boxed:
                kind = "embedding" if parameter.dim() > 1 else "layer"
                description = f"Parameter {' × '.join(map(str, parameter.shape))}"
                stage = Stage(_bracketed(path), kind, description, holds=[parameter])
                self.origins[parameter] = (stage,)
        for module in self.paths:
            module.forward = partial(self._call, module, module.forward)

    def run(self, inputs):
        for name, tensor in zip(self.input_names, inputs, strict=False):
            self.stages.append(Stage(name, "input", _dtype(tensor), tuple(tensor.shape)))
            self.origins[tensor] = (self.stages[-1],)
        first = _tensors(self.model(*inputs))[0]
        sources = self._join(self._origins(first), first)
        self.stages.append(Stage("output", "output", _dtype(first), tuple(first.shape), sources))

    def count_parameters(self):
        left = {parameter: name for name, parameter in self.model.named_parameters()}
        for stage in self.stages:
            own = [parameter for parameter in stage.holds if left.pop(parameter, None)]
            stage.parameters = sum(parameter.numel() for parameter in own)
            stage.description += ", shared weights" if len(own) < len(stage.holds) else ""
        if left:
            self.stages.append(Stage("unused", "unused", ", ".join(left.values())))
            self.stages[-1].parameters = sum(parameter.numel() for parameter in left)

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
        found = [stage for t in _tensors(value) for stage in self.origins.get(t, ())]
        return tuple(dict.fromkeys(found))

    def _join(self, origins, tensor):
        """Give the stages that wait their place, after the others; return where the stream is."""
        stream = tuple(stage for stage in origins if stage in self.stages)
        for stage in origins:
            if stage not in self.stages:
                stage.sources, stage.output_shape = stream, tuple(tensor.shape)
                self.stages.append(stage)
                stream = (stage,)
        return stream

    def _call(self, module, forward, *args, **kwargs):
        """Stand in for the forward method of every module."""
        try:
            if self.kinds[module] and not self.box:
                return self._call_box(module, forward, *args, **kwargs)
            if self.box:
                self._look_inside(module, signature(forward).bind(*args, **kwargs).arguments)
            return forward(*args, **kwargs)
        except Exception:
            given = [f"{tuple(t.shape)} {_dtype(t)}" for t in _tensors((args, kwargs))]
            where = f"{self.paths[module]} ({type(module).__name__}) after {self.stages[-1].name}"
            # The innermost call is the first to see the exception.
            self.refusal = self.refusal or f"{where}; its input: {', '.join(given) or 'no tensor'}"
            raise

    def _call_box(self, module, forward, *args, **kwargs):
        given = _tensors((args, kwargs))
        for tensor in given:
            self._join(self._origins(tensor), tensor)
        self.box, self.query, self.inner = module, [], {}
        output = self._call(module, forward, *args, **kwargs)
        self.box = None
        made, sources = _tensors(output), self._origins((self.query, given))
        holds = list(module.parameters())
        use = module if holds else (module, sources)  # one ReLU may serve in many places
        if use in self.uses:
            self.uses[use].calls += 1
        else:
            layers = _rows(self.inner.values()) if list(module.children()) else ()
            about = self.paths[module], self.kinds[module], _describe(module)
            self.uses[use] = Stage(*about, tuple(made[0].shape), sources, layers, holds)
            self.stages += [self.uses[use]] if sources else []
        self.origins |= dict.fromkeys(made, (self.uses[use],))
        return output

    def _look_inside(self, module, given):
        """Note a layer of the running box, whose stream is that of its first query."""
        label = _describe(module) if list(module.parameters()) else ""
        if isinstance(module, SEQUENCE):
            self.query = self.query or [next(iter(given.values()))]
        if isinstance(module, nn.MultiheadAttention):
            query, keys = (
                self._origins(given["query"]),
                self._origins((given["key"], given["value"])),
            )
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
    """Give a role to the stages of a stream from its first block (or layer) to `last`."""
    lane = [stage for stage in found if stage.stream is last.stream]
    kinds = [stage.kind for stage in lane]
    start, end = kinds.index("block" if "block" in kinds else "layer"), lane.index(last) + 1
    while end < len(lane) and "Norm" in lane[end].description:  # the stack's final norm
        end += 1
    for stage in lane[start:end]:
        stage.role = role


def _kind(module, is_top):
    """The kind of box that a module is, or "" for one that is drawn in parts or does nothing."""
    if isinstance(module, nn.Embedding):
        return "embedding"
    children = list(module.children())
    holds = any(isinstance(child, SEQUENCE) for child in children) and not is_top
    if holds or isinstance(module, SEQUENCE):
        return "block"
    return "" if children or isinstance(module, nn.Identity | nn.Dropout) else "layer"


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
    rows = []
    for before, label in pairwise(["start", *labels]):
        last = rows[-1] if rows else ""
        chained = not before and last.startswith(("Linear ", "feed-forward "))
        if chained and label.startswith("Linear "):
            rows[-1] = last.replace("Linear", "feed-forward") + label[label.index(" →") :]
        elif label:
            rows.append(label)
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


def _dtype(tensor):
    return str(tensor.dtype).removeprefix("torch.")


def count(number, noun):
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
