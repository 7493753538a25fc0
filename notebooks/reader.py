"""Exported by `make export` from the lessons that teach it; edit them, not this file.

01_one_digit.ipynb
02_three_digit_reader.ipynb
04_what_each_change_buys.ipynb
"""

import math
from functools import partial
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim.lr_scheduler import LambdaLR
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn


def patchify(images, patch):
    """Cut images into square patches, in reading order.

    images (B, height, width), patch in pixels -> (B, P, patch * patch) with
    P = (height / patch) * (width / patch). Raises ValueError if patch does not divide the image.
    Follows Dosovitskiy et al. (2021), section 3.1.
    """
    height, width = images.shape[-2:]
    if height % patch or width % patch:
        raise ValueError(f"patch {patch} does not divide an image of {height} x {width} pixels")
    grid = images.unfold(1, patch, patch).unfold(2, patch, patch)
    return grid.flatten(3).flatten(1, 2)  # (B, rows, columns, patch, patch) -> (B, P, patch²)


class Residual(nn.Module):
    """Add to x (B, length, width) what a sub-layer makes of it, with one layer norm.

    The norm comes after the addition (post-norm, Vaswani et al. 2017, section 3.1) or, with
    norm_first, before the sub-layer (pre-norm).
    """

    def __init__(self, width, norm_first):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.norm_first = norm_first

    def before(self, x):
        return self.norm(x) if self.norm_first else x

    def after(self, x, change):
        return x + change if self.norm_first else self.norm(x + change)

    def forward(self, x, sublayer):
        return self.after(x, sublayer(self.before(x)))


def feed_forward(width):
    """Two linear layers with a GELU between, four times as wide inside: (..., width) -> same."""
    return nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))


class EncoderBlock(nn.Module):
    """Self-attention over all positions, then a feed-forward network on each.

    x (B, P, width) -> (B, P, width). Vaswani et al. (2017), section 3.1, with GELU and
    without dropout.
    """

    def __init__(self, width, heads, norm_first=False):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.feed_forward = feed_forward(width)
        self.residuals = nn.ModuleList(Residual(width, norm_first) for _ in range(2))

    def attend(self, x):
        return self.attention(x, x, x, need_weights=False)[0]

    def forward(self, x):
        x = self.residuals[0](x, self.attend)
        return self.residuals[1](x, self.feed_forward)


START, END = 10, 11
VOCABULARY = 12


def teacher_forcing(labels):
    """Labels (B, n) -> the decoder's inputs and its targets, both (B, n + 1).

    Inputs: START, then the labels. Targets: the labels, then END.
    """
    edge = labels.new_ones(len(labels), 1)
    return torch.cat([START * edge, labels], dim=1), torch.cat([labels, END * edge], dim=1)


def causal_mask(length):
    """Additive mask (length, length): 0 on and below the diagonal, -inf above it."""
    return torch.full((length, length), -torch.inf).triu(diagonal=1)


class DecoderBlock(nn.Module):
    """Masked self-attention, cross-attention to the memory, then a feed-forward network.

    x (B, T, width), memory (B, P, width), mask (T, T) -> (B, T, width) and, with need_weights,
    the cross-attention weights, averaged over heads (B, T, P), otherwise None.
    Vaswani et al. (2017), section 3.1, with GELU and without dropout.
    """

    def __init__(self, width, heads, norm_first=False):
        super().__init__()
        self.self_attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.cross_attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.feed_forward = feed_forward(width)
        self.residuals = nn.ModuleList(Residual(width, norm_first) for _ in range(3))

    def forward(self, x, memory, mask, need_weights=False):
        def attend_to_written(x):
            return self.self_attention(x, x, x, attn_mask=mask, need_weights=False)[0]

        x = self.residuals[0](x, attend_to_written)
        query = self.residuals[1].before(x)
        found, weights = self.cross_attention(query, memory, memory, need_weights=need_weights)
        x = self.residuals[1].after(x, found)
        return self.residuals[2](x, self.feed_forward), weights


class ImageEncoder(nn.Module):
    """Images (B, height, width) -> memory, one vector for each patch (B, P, width).

    Raises ValueError for images of another size than image_size.
    """

    def __init__(self, image_size, patch, width, heads, layers, norm_first, position_std):
        super().__init__()
        self.image_size, self.patch = tuple(image_size), patch
        patches = (image_size[0] // patch) * (image_size[1] // patch)
        self.embed = nn.Linear(patch * patch, width)
        self.position = nn.Parameter(position_std * torch.randn(patches, width))
        self.blocks = nn.ModuleList(EncoderBlock(width, heads, norm_first) for _ in range(layers))
        self.norm = nn.LayerNorm(width) if norm_first else nn.Identity()

    def forward(self, images):
        if images.shape[1:] != self.image_size:
            given = tuple(images.shape)
            raise ValueError(f"images have shape {given}: this reader takes {self.image_size} each")
        x = self.embed(patchify(images, self.patch)) + self.position  # (B, P, width)
        for block in self.blocks:
            x = block(x)
        return self.norm(x)


class TokenDecoder(nn.Module):
    """Tokens (B, T) and memory (B, P, width) -> logits (B, T, V), cross-attention or None.

    The logits at position t score what follows token t. The cross-attention is the last
    block's, see `DecoderBlock`. Raises ValueError for more tokens than it has positions.
    """

    def __init__(self, width, heads, layers, max_tokens, norm_first, position_std):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, width)
        self.position = nn.Parameter(position_std * torch.randn(max_tokens, width))
        self.blocks = nn.ModuleList(DecoderBlock(width, heads, norm_first) for _ in range(layers))
        self.norm = nn.LayerNorm(width) if norm_first else nn.Identity()
        self.head = nn.Linear(width, VOCABULARY)

    def forward(self, tokens, memory, need_weights=False):
        length, longest = tokens.shape[1], len(self.position)
        if length > longest:
            raise ValueError(f"{length} tokens given: this reader has {longest} token positions")
        x = self.embed(tokens) + self.position[:length]  # (B, T, width)
        mask = causal_mask(length).to(x.device)
        for block in self.blocks:
            x, weights = block(x, memory, mask, need_weights)
        return self.head(self.norm(x)), weights


class Reader(nn.Module):
    """Reads the number in an image, token by token: the encoder-decoder of this series.

    images (B, *image_size), tokens (B, T) with T <= max_tokens -> logits (B, T, V).
    The defaults are the article's model. norm_first puts the layer norms before the sub-layers
    (and one at the end of each stack); position_std is the initial positions' standard deviation.
    """

    def __init__(
        self,
        image_size=(28, 84),
        patch=7,
        width=96,
        heads=4,
        layers=2,
        max_tokens=4,
        norm_first=False,
        position_std=0.02,
    ):
        super().__init__()
        shared = {"norm_first": norm_first, "position_std": position_std}
        self.encoder = ImageEncoder(image_size, patch, width, heads, layers, **shared)
        self.decoder = TokenDecoder(width, heads, layers, max_tokens, **shared)

    def forward(self, images, tokens):
        return self.decoder(tokens, self.encoder(images))[0]


def train(
    model, images, labels, epochs, batch_size=128, learning_rate=1e-3, weight_decay=0.01, seed=0
):
    """Train with teacher forcing; after each epoch yield its mean loss in nats a token.

    images (N, height, width), labels (N, n). AdamW; the seed orders the batches; what does not
    fill a batch at the end of an epoch is left out. A generator: it trains as it is iterated,
    and raises ValueError for N < batch_size then.
    """
    if len(images) < batch_size:
        raise ValueError(f"{len(images)} images do not fill one batch of {batch_size}")
    inputs, targets = teacher_forcing(labels)
    generator = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.AdamW(model.parameters(), lr=learning_rate, weight_decay=weight_decay)
    for _ in range(epochs):
        model.train()
        losses = []
        batches = torch.randperm(len(images), generator=generator).split(batch_size)
        for batch in batches[: len(images) // batch_size]:
            logits = model(images[batch], inputs[batch])  # (B, T, V)
            loss = F.cross_entropy(logits.flatten(0, 1), targets[batch].flatten())
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        yield sum(losses) / len(losses)


class Reading(NamedTuple):
    """What `generate` returns for B images with a limit of T tokens and P patches."""

    tokens: torch.Tensor  # (B, T), END from the end on
    lengths: torch.Tensor  # (B,) tokens generated, END included
    ended: torch.Tensor  # (B,) True: stopped at END; False: stopped by the limit
    probabilities: torch.Tensor  # (B, T) of each token generated, 0 after the end
    attention: torch.Tensor  # (B, T, P) of each token over the patches, 0 after the end


@torch.no_grad()
def generate(model, images, limit=None):
    """Read images (B, *image_size) greedily, each until END or until `limit` tokens.

    The limit is the model's number of token positions unless a lower one is given.
    Raises ValueError for an empty batch or a limit that the model has no positions for.
    """
    longest = len(model.decoder.position)
    limit = longest if limit is None else limit
    if not len(images):
        raise ValueError("the batch is empty: give at least one image")
    if not 1 <= limit <= longest:
        raise ValueError(f"limit is {limit}: this reader writes 1 to {longest} tokens")
    model.eval()
    memory = model.encoder(images)  # (B, P, width)
    tokens = images.new_full((len(images), limit + 1), END, dtype=torch.long)
    tokens[:, 0] = START
    probabilities = images.new_zeros(len(images), limit)
    attention = images.new_zeros(len(images), limit, memory.shape[1])
    lengths = torch.zeros_like(tokens[:, 0])
    active = torch.arange(len(images), device=images.device)
    for t in range(limit):
        logits, weights = model.decoder(tokens[active, : t + 1], memory[active], need_weights=True)
        probabilities[active, t], token = logits[:, -1].softmax(dim=-1).max(dim=-1)
        tokens[active, t + 1] = token
        attention[active, t] = weights[:, -1]
        lengths[active] += 1
        active = active[token != END]
        if not len(active):
            break
    ended = torch.ones_like(lengths, dtype=torch.bool).index_fill(0, active, False)
    return Reading(tokens[:, 1:], lengths, ended, probabilities, attention)


def exact_sequence(reading, labels):
    """Which of the labels (B, n) were read: the n digits alone, and the digits with END after.

    Returns two boolean tensors (B,). Raises ValueError if the reading's limit was below n.
    """
    n, limit = labels.shape[1], reading.tokens.shape[1]
    if limit < n:
        raise ValueError(f"readings of at most {limit} tokens cannot hold labels of {n} digits")
    exact_digits = (reading.tokens[:, :n] == labels).all(dim=1)
    return exact_digits, exact_digits & reading.ended & (reading.lengths == n + 1)


def numbers_read(model, images, labels, batch_size=500):
    """How many of the numbers are read without a fault: generated freely, END included.

    images (N, *image_size), labels (N, n), on any device: they go to the model's.
    """
    device = next(model.parameters()).device
    batches = zip(images.split(batch_size), labels.split(batch_size), strict=True)
    return sum(
        exact_sequence(generate(model, shown.to(device)), asked.to(device))[1].sum().item()
        for shown, asked in batches
    )


class FreshNumbers:
    """Batches of three-digit numbers that are composed when they are asked for, never twice.

    images (N, 28, 28) and labels (N,), uint8, as `digits.load` returns them. Digits are picked with
    replacement, and each goes through change(images, generator), such as `distort`, if given.
    """

    def __init__(self, images, labels, change=None):
        self.images, self.labels = torch.from_numpy(images), torch.from_numpy(labels).long()
        self.change = change

    def __call__(self, n, generator):
        """Images (n, 28, 84), and the decoder's inputs and targets, both (n, 4)."""
        picks = torch.randint(len(self.images), (3 * n,), generator=generator)
        images = self.images[picks].float() / 255
        if self.change:
            images = self.change(images, generator)
        strips = images.unflatten(0, (n, 3)).transpose(1, 2).flatten(2)  # (n, 28, 84)
        return strips, *teacher_forcing(self.labels[picks].view(n, 3))


class Recipe(NamedTuple):
    """How a reader is trained; the defaults are where this lesson ends.

    With cosine, the learning rate rises for a twentieth of the steps and falls along a cosine to 0;
    without, it stays. With muon, Muon trains the matrices of the blocks and AdamW the rest. decay
    is that of the moving average of the weights, for each step.
    """

    steps: int
    batch_size: int = 64
    learning_rate: float = 2e-3
    cosine: bool = True
    muon: bool = False
    decay: float = 0.99
    seed: int = 0


def learning_rate_factor(recipe, step):
    """What the learning rate is multiplied by at a step, counted from 0."""
    if not recipe.cosine:
        return 1.0
    progress = step / recipe.steps
    return min(20 * (step + 1) / recipe.steps, 0.5 + 0.5 * math.cos(math.pi * progress))


def optimisers(model, recipe):
    """AdamW for all parameters or, with muon, Muon for the matrices of the blocks.

    Muon is scaled so that it moves a matrix about as far as AdamW would (`match_rms_adamw`).
    """
    blocks = [part for part in model.modules() if isinstance(part, (EncoderBlock, DecoderBlock))]
    matrices = [p for block in blocks for p in block.parameters() if p.ndim == 2 and recipe.muon]
    chosen = set(matrices)
    others = [p for p in model.parameters() if p not in chosen]
    shared = {"lr": recipe.learning_rate, "weight_decay": 0.01}
    found = [torch.optim.AdamW(others, **shared)]
    if matrices:
        found.append(torch.optim.Muon(matrices, adjust_lr_fn="match_rms_adamw", **shared))
    return found


def token_loss(model, images, inputs, targets):
    """Mean cross-entropy in nats a token; targets of `digits.PAD` are left out."""
    return F.cross_entropy(model(images, inputs).flatten(0, 1), targets.flatten())


def place():
    """The rank of this process and the number of processes that train together: 0, 1 alone."""
    if not torch.distributed.is_initialized():
        return 0, 1
    return torch.distributed.get_rank(), torch.distributed.get_world_size()


def own_rows(batch, rank, processes):
    """One process's rows of a batch, and the weight of their mean loss in that of the batch.

    The weight is 1 unless some processes have more targets than others, PAD left out. Raises
    ValueError for a batch that cannot be shared equally.
    """
    if len(batch[0]) % processes:
        raise ValueError(
            f"batches of {len(batch[0])} cannot be shared equally by {processes} processes: "
            "take a multiple, or fewer processes"
        )
    rows = [part[rank::processes] for part in batch]
    mine, everyones = ((part[-1] >= 0).sum().item() for part in (rows, batch))
    return rows, processes * mine / everyones


class Training:
    """A run of training, step by step, that can stop after any step and go on from its state.

    draw(n, generator) gives images, inputs and targets of n numbers, see `FreshNumbers`.
    `average` holds the model with the moving average of its weights. Processes that train together
    take turns through the rows of each batch, and average their gradients.
    """

    def __init__(self, model, draw, recipe):
        self.model, self.draw, self.recipe = model, draw, recipe
        self.rank, self.processes = place()
        self.forward = DistributedDataParallel(model) if self.processes > 1 else model
        self.generator = torch.Generator().manual_seed(recipe.seed)
        self.optimisers = optimisers(model, recipe)
        factor = partial(learning_rate_factor, recipe)
        self.schedules = [LambdaLR(optimiser, factor) for optimiser in self.optimisers]
        self.average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(recipe.decay))
        self.done = 0

    def step(self):
        """Train on one batch; return the loss of this process's rows in nats a token."""
        device = next(self.model.parameters()).device
        batch = self.draw(self.recipe.batch_size, self.generator)
        rows, weight = own_rows(batch, self.rank, self.processes)
        self.forward.train()
        loss = token_loss(self.forward, *(part.to(device) for part in rows))
        self.model.zero_grad()
        (weight * loss).backward()
        for part in (*self.optimisers, *self.schedules):
            part.step()
        self.average.update_parameters(self.model)
        self.done += 1
        return loss.item()


class ConvStem(nn.Module):
    """Images (B, height, width) -> a grid of vectors with their positions added (B, P, width).

    One convolution for each (channels, kernel, stride) of layers, then one of stride 2 to the
    width. Between them GELU and a group norm of one group, which looks at one image at a time.
    Xiao et al. (2021), with another norm. Raises ValueError for images of another size.
    """

    def __init__(self, image_size, layers, width, position_std):
        super().__init__()
        self.image_size = tuple(image_size)
        parts, before = [], 1
        for channels, kernel, stride in layers:
            parts += [
                nn.Conv2d(before, channels, kernel, stride, padding=kernel // 2),
                nn.GroupNorm(1, channels),
                nn.GELU(),
            ]
            before = channels
        self.convolutions = nn.Sequential(*parts, nn.Conv2d(before, width, 3, 2, padding=1))
        with torch.no_grad():
            self.grid = self.convolutions(torch.zeros(1, 1, *image_size)).shape[2:]
        self.position = nn.Parameter(position_std * torch.randn(self.grid.numel(), width))

    def forward(self, images):
        if images.shape[1:] != self.image_size:
            given = tuple(images.shape)
            raise ValueError(f"images have shape {given}: this reader takes {self.image_size} each")
        return self.convolutions(images[:, None]).flatten(2).transpose(1, 2) + self.position


class StemReader(nn.Module):
    """A pre-norm `Reader` that looks through a `ConvStem`, which takes one encoder block's place.

    images (B, *image_size), tokens (B, T) with T <= max_tokens -> logits (B, T, V).
    """

    def __init__(
        self,
        layers=((16, 5, 2), (32, 3, 2), (64, 3, 2)),
        image_size=(28, 84),
        width=96,
        heads=4,
        max_tokens=4,
        position_std=0.5,
    ):
        super().__init__()
        stem = ConvStem(image_size, layers, width, position_std)
        block = EncoderBlock(width, heads, norm_first=True)
        self.encoder = nn.Sequential(stem, block, nn.LayerNorm(width))
        self.decoder = TokenDecoder(width, heads, 2, max_tokens, True, position_std)

    def forward(self, images, tokens):
        return self.decoder(tokens, self.encoder(images))[0]


def distort(images, generator, rotation=10, scale=0.1, slant=0.1, shift=2):
    """Turn, stretch, slant and move each image (N, 28, 28) a little, at random.

    rotation is in degrees, shift in pixels, scale and slant are shares: each is the most that an
    image gets, either way. What comes in from outside is 0.
    """
    n = len(images)
    turn, wide, high, lean, x, y = 2 * torch.rand(6, n, generator=generator) - 1
    angle = math.radians(rotation) * turn
    wide, high = (scale * wide).exp(), (scale * high).exp()
    across = [angle.cos() * wide, (slant * lean - angle.sin()) * high, shift / 14 * x]
    down = [angle.sin() * wide, angle.cos() * high, shift / 14 * y]
    change = torch.stack(across + down, dim=1).view(n, 2, 3).to(images.device)
    grid = F.affine_grid(change, (n, 1, 28, 28), align_corners=False)
    return F.grid_sample(images[:, None], grid, align_corners=False)[:, 0]


DEEP_STEM = ((16, 3, 1), (24, 3, 2), (32, 3, 1), (48, 3, 2), (64, 3, 1), (80, 3, 2))
STRONGER = {"rotation": 15, "scale": 0.15, "slant": 0.2}  # for `distort`


def snapshot(training):
    """All that a run needs to go on: {name: state}, for `torch.save`."""
    parts = (training.model, training.average, *training.optimisers, *training.schedules)
    return {
        "done": training.done,
        "generator": training.generator.get_state(),
        "parts": [part.state_dict() for part in parts],
    }


def restore(training, state):
    """Put a run, made with the same recipe, where it was at its `snapshot`."""
    parts = (training.model, training.average, *training.optimisers, *training.schedules)
    for part, content in zip(parts, state["parts"], strict=True):
        part.load_state_dict(content)
    training.generator.set_state(state["generator"])
    training.done = state["done"]
