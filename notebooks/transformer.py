"""Exported by `make export` from the lessons that teach it; edit them, not this file.

09_without_the_recurrence.ipynb
"""

import math
from typing import NamedTuple

import torch
from torch import nn

from reader import Residual, feed_forward
from seq2seq import DIGITS, END, PAD, START, Generation, Memory, Seq2Seq


class MultiHeadAttention(nn.Module):
    """Attention in several heads side by side. Vaswani et al. (2017), section 3.2.2.

    x (B, T, width), keys and values (B, heads, S, width / heads), mask True where a query may look
    -> what was found (B, T, width), weights averaged over heads (B, T, S).
    """

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def split(self, x):
        """(B, T, width) -> (B, heads, T, width / heads)."""
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def keys_and_values(self, x):
        return self.split(self.key(x)), self.split(self.value(x))

    def forward(self, x, keys, values, mask):
        query = self.split(self.query(x))
        scores = query @ keys.mT / math.sqrt(query.shape[-1])  # (B, heads, T, S)
        weights = scores.masked_fill(~mask, -torch.inf).softmax(dim=-1)
        found = (weights @ values).transpose(1, 2).flatten(2)  # (B, T, width)
        return self.out(found), weights.mean(dim=1)


class TransformerEncoderBlock(nn.Module):
    """Self-attention over the real tokens, then a feed-forward network on each; pre-norm.

    x (B, S, width), mask (B, 1, 1, S) -> (B, S, width).
    """

    def __init__(self, width, heads):
        super().__init__()
        self.attention = MultiHeadAttention(width, heads)
        self.feed_forward = feed_forward(width)
        self.residuals = nn.ModuleList(Residual(width, norm_first=True) for _ in range(2))

    def forward(self, x, mask):
        def attend(x):
            return self.attention(x, *self.attention.keys_and_values(x), mask)[0]

        x = self.residuals[0](x, attend)
        return self.residuals[1](x, self.feed_forward)


def sinusoids(length, width):
    """Positions as sines and cosines of falling frequency (length, width), width even.

    Vaswani et al. (2017), section 3.5.
    """
    rates = 10_000 ** (-torch.arange(0, width, 2) / width)
    angles = torch.arange(length)[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1)


def positions(kind, length, width):
    """A table of positions (length, width): "learned", "sinusoidal", or "none", which is zeros.

    Raises ValueError for another kind.
    """
    if kind == "learned":
        return nn.Parameter(0.5 * torch.randn(length, width))
    tables = {"sinusoidal": sinusoids, "none": torch.zeros}
    if kind not in tables:
        raise ValueError(f'positions are "learned", "sinusoidal" or "none", not {kind!r}')
    return nn.Parameter(tables[kind](length, width), requires_grad=False)


def with_positions(vectors, table, start=0):
    """Add the positions from `start` on to vectors (B, T, width).

    Raises ValueError where the table ends before the sequence.
    """
    end = start + vectors.shape[1]
    if end > len(table):
        raise ValueError(f"{end} tokens given: this model has positions for {len(table)}")
    return vectors + table[start:end]


class TransformerEncoder(nn.Module):
    """Reads all tokens of a sentence at once.

    source (B, S), mask (B, S) with True for a real token -> `Memory`, its final None. Raises
    ValueError for a sentence without a real token or more tokens than it has positions.
    """

    def __init__(self, vocabulary_size, width, heads, layers, longest, kind):
        super().__init__()
        self.embed = nn.Embedding(vocabulary_size, width)
        self.position = positions(kind, longest, width)
        self.blocks = nn.ModuleList(TransformerEncoderBlock(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, source, mask):
        if not mask.any(dim=1).all():
            raise ValueError("a sentence has no real token: give it at least one")
        x = with_positions(self.embed(source), self.position)
        for block in self.blocks:
            x = block(x, mask[:, None, None])
        return Memory(self.norm(x).masked_fill(~mask[..., None], 0), None, mask)


class TransformerDecoderBlock(nn.Module):
    """Self-attention to what is written, cross-attention to what is read, feed-forward; pre-norm.

    x (B, T, width), past: keys and values of earlier tokens or None, read: those of the memory,
    mask (B, 1, 1, S) -> (B, T, width), keys and values of all tokens so far, the cross-attention
    weights (B, T, S).
    """

    def __init__(self, width, heads):
        super().__init__()
        self.self_attention = MultiHeadAttention(width, heads)
        self.cross_attention = MultiHeadAttention(width, heads)
        self.feed_forward = feed_forward(width)
        self.residuals = nn.ModuleList(Residual(width, norm_first=True) for _ in range(3))

    def forward(self, x, past, read, mask):
        query = self.residuals[0].before(x)
        written = self.self_attention.keys_and_values(query)
        if past is not None:
            written = tuple(torch.cat(pair, dim=2) for pair in zip(past, written, strict=True))
        new, total = x.shape[1], written[0].shape[2]
        causal = torch.ones(new, total, dtype=torch.bool).tril(total - new)
        x = self.residuals[0].after(x, self.self_attention(query, *written, causal)[0])
        query = self.residuals[1].before(x)
        found, weights = self.cross_attention(query, *read, mask)
        x = self.residuals[1].after(x, found)
        return self.residuals[2](x, self.feed_forward), written, weights


class Cache(NamedTuple):
    """What a `TransformerDecoder` keeps between steps: for each block, keys and values."""

    written: list  # of all tokens so far, each (B, heads, T, width / heads)
    read: list  # of the memory, each (B, heads, S, width / heads)


class TransformerDecoder(nn.Module):
    """Writes by attention alone; its state is a `Cache`.

    inputs (B, T), memory, state or None for the first step -> logits (B, T, V), the new state,
    the last block's cross-attention weights (B, T, S). Raises ValueError for more tokens than it
    has positions.
    """

    def __init__(self, vocabulary_size, width, heads, layers, longest, kind):
        super().__init__()
        self.embed = nn.Embedding(vocabulary_size, width)
        self.position = positions(kind, longest, width)
        self.blocks = nn.ModuleList(TransformerDecoderBlock(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary_size)

    def forward(self, inputs, memory, state=None):
        if state is None:
            read = [b.cross_attention.keys_and_values(memory.states) for b in self.blocks]
            state = Cache([None] * len(self.blocks), read)
        before = state.written[0]
        start = 0 if before is None else before[0].shape[2]
        x = with_positions(self.embed(inputs), self.position, start)
        mask, written = memory.mask[:, None, None], []
        for block, past, read in zip(self.blocks, state.written, state.read, strict=True):
            x, kept, weights = block(x, past, read, mask)
            written.append(kept)
        return self.head(self.norm(x)), Cache(written, state.read), weights


def transformer(source_size, target_size, seed, kind="sinusoidal", longest=64, width=64):
    """A fresh transformer of one block each side, for two vocabularies of these sizes."""
    torch.manual_seed(seed)
    sizes = width, 4, 1, longest, kind
    encoder = TransformerEncoder(source_size, *sizes)
    return Seq2Seq(encoder, TransformerDecoder(target_size, *sizes))


def transformer_copier(kind, seed):
    """A `transformer` for the copy task."""
    return transformer(len(DIGITS), len(DIGITS), seed, kind)


@torch.no_grad()
def generate_without_cache(model, source, limit):
    """As `generate`, but at each step the decoder goes over everything written so far."""
    memory = model.encode(source)
    tokens = torch.full_like(source[:, :1], START)  # (B, 1)
    ended = torch.zeros(len(source), dtype=torch.bool)
    for _ in range(limit):
        logits, _, weights = model.decoder(tokens, memory)
        token = logits[:, -1].argmax(dim=-1).masked_fill(ended, PAD)
        ended = ended | (token == END)
        tokens = torch.cat([tokens, token[:, None]], dim=1)
        if ended.all():
            break
    return Generation(tokens[:, 1:], ended, weights)


def cache_bytes(cache):
    """Bytes that a `Cache` holds: for what is written, and for what is read."""
    return tuple(
        sum(part.numel() * part.element_size() for pair in pairs for part in pair)
        for pairs in cache
    )
