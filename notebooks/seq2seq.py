"""Exported by `make export` from the lessons that teach it; edit them, not this file.

06_the_fixed_vector.ipynb
07_attention_a_small_change.ipynb
08_its_own_mistakes.ipynb
"""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

PAD, START, END = 0, 1, 2


class Vocabulary:
    """The words of a language and their tokens: PAD, START and END, then a token for each word."""

    def __init__(self, words):
        self.words = tuple(words)
        self.tokens = {word: token for token, word in enumerate(self.words, start=3)}

    def __len__(self):
        return len(self.words) + 3

    def encode(self, sentences):
        """Sentences, each a sequence of words -> tokens (B, S), PAD after the shorter ones.

        Raises ValueError for no sentence, an empty one, or a word that is not in the vocabulary.
        """
        if not len(sentences):
            raise ValueError("there are no sentences: give at least one")
        for number, sentence in enumerate(sentences):
            if not len(sentence):
                raise ValueError(f"sentence {number} is empty: give it at least one word")
            if unknown := [word for word in sentence if word not in self.tokens]:
                raise ValueError(
                    f"{unknown[0]!r} in sentence {number} is not among the {len(self.words)} words"
                )
        rows = [torch.tensor([self.tokens[word] for word in sentence]) for sentence in sentences]
        return pad_sequence(rows, batch_first=True, padding_value=PAD)

    def decode(self, tokens):
        """Tokens (T,) -> their words, up to END; PAD and START are left out."""
        tokens = tokens.tolist()
        end = tokens.index(END) if END in tokens else len(tokens)
        return [self.words[token - 3] for token in tokens[:end] if token not in (PAD, START)]


def padding_mask(tokens):
    """Tokens (B, S) -> mask (B, S), True for a real token."""
    return tokens != PAD


CELLS = {"RNN": nn.RNN, "GRU": nn.GRU, "LSTM": nn.LSTM}


class Memory(NamedTuple):
    """What an encoder hands over for B sentences of at most S tokens."""

    states: torch.Tensor  # (B, S, H) the state after each token, 0 on padding
    final: torch.Tensor  # (1, B, H) the state after the last real token; for an LSTM (h, c)
    mask: torch.Tensor  # (B, S) True for a real token


class Encoder(nn.Module):
    """Reads sentences from left to right. Sutskever et al. (2014), Cho et al. (2014).

    source (B, S), mask (B, S) with True for a real token -> `Memory`. cell: "RNN", "GRU", "LSTM".
    Raises ValueError for a mask of another shape, a sentence without a real token, or a real
    token behind padding.
    """

    def __init__(self, vocabulary_size, embedding_size, hidden_size, cell="GRU"):
        super().__init__()
        self.embed = nn.Embedding(vocabulary_size, embedding_size)
        self.rnn = CELLS[cell](embedding_size, hidden_size, batch_first=True)

    def read(self, vectors, mask):
        """Embedded tokens (B, S, E) -> `Memory`."""
        if mask.shape != vectors.shape[:2]:
            given, needed = tuple(mask.shape), tuple(vectors.shape[:2])
            raise ValueError(f"the mask has shape {given}, the tokens {needed}: make them agree")
        if (mask[:, 1:] > mask[:, :-1]).any():
            raise ValueError("the mask has a real token behind padding: padding comes last")
        lengths = mask.sum(dim=1).cpu()
        if not lengths.all():
            raise ValueError(
                f"sentence {lengths.argmin()} has length 0: give it at least one token"
            )
        packed = pack_padded_sequence(vectors, lengths, batch_first=True, enforce_sorted=False)
        states, final = self.rnn(packed)
        states, _ = pad_packed_sequence(states, batch_first=True, total_length=mask.shape[1])
        return Memory(states, final, mask)

    def forward(self, source, mask):
        return self.read(self.embed(source), mask)


class Decoder(nn.Module):
    """Writes from the encoder's final state alone.

    inputs (B, T), memory, state or None for the first step -> logits (B, T, V), the new state,
    and None where a decoder with attention returns its weights.
    """

    def __init__(self, vocabulary_size, embedding_size, hidden_size, cell="GRU"):
        super().__init__()
        self.embed = nn.Embedding(vocabulary_size, embedding_size)
        self.rnn = CELLS[cell](embedding_size, hidden_size, batch_first=True)
        self.head = nn.Linear(hidden_size, vocabulary_size)

    def forward(self, inputs, memory, state=None):
        state = memory.final if state is None else state
        outputs, state = self.rnn(self.embed(inputs), state)  # (B, T, H)
        return self.head(outputs), state, None


class Seq2Seq(nn.Module):
    """source (B, S), inputs (B, T) -> logits (B, T, V); padding in the source is masked."""

    def __init__(self, encoder, decoder):
        super().__init__()
        self.encoder, self.decoder = encoder, decoder

    def encode(self, source):
        return self.encoder(source, padding_mask(source))

    def forward(self, source, inputs):
        return self.decoder(inputs, self.encode(source))[0]


def teacher_forcing(labels):
    """Labels (B, T) with PAD at the end -> the decoder's inputs and targets, both (B, T + 1).

    Inputs: START, then the labels. Targets: the labels, then END, each row at its own end.
    """
    edge = labels.new_full((len(labels), 1), PAD)
    inputs = torch.cat([edge + START, labels], dim=1)
    targets = torch.cat([labels, edge], dim=1)
    return inputs, targets.scatter(1, padding_mask(labels).sum(dim=1, keepdim=True), END)


def hidden(state):
    """The hidden state (B, H) of what a recurrent network returns: for an LSTM, h without c."""
    return (state[0] if isinstance(state, tuple) else state)[0]


@torch.no_grad()
def influence(encoder, source):
    """How far the final state moves when the embedding of one token is negated.

    source (B, S) without padding -> Euclidean distances (B, S).
    """
    vectors = encoder.embed(source)  # (B, S, E)
    length = source.shape[1]
    flips = 1 - 2 * torch.eye(length, dtype=vectors.dtype)[:, :, None]  # (S, S, 1): row t negates t
    flipped = (vectors[:, None] * flips).flatten(0, 1)  # (B * S, S, E)
    everything = torch.ones(flipped.shape[:2], dtype=torch.bool)
    moved = hidden(encoder.read(flipped, everything).final).unflatten(0, (-1, length))
    final = hidden(encoder.read(vectors, everything[: len(source)]).final)
    return (moved - final[:, None]).norm(dim=-1)


DIGITS = Vocabulary("0123456789")
LONGEST = 20  # digits in a training string


def digit_strings(count, shortest, longest, generator):
    """Random strings of digits, their lengths drawn evenly -> tokens (count, longest)."""
    lengths = torch.randint(shortest, longest + 1, (count, 1), generator=generator)
    tokens = torch.randint(3, len(DIGITS), (count, longest), generator=generator)
    return tokens.where(torch.arange(longest) < lengths, PAD)


def copy_batches(seed, batch_size=128):
    """Endless batches of the copy task: (source, labels), which are the same."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        strings = digit_strings(batch_size, 1, LONGEST, generator)
        yield strings, strings


def train(model, batches, steps, learning_rate=3e-3):
    """Train with teacher forcing on `steps` of the batches (source, labels).

    Adam, the learning rate falling to 0 as a cosine, gradients clipped to norm 1; the loss is
    the mean cross-entropy over real tokens. Returns the losses, in nats a token.
    """
    optimiser = torch.optim.Adam(model.parameters(), lr=learning_rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    losses = []
    for _, (source, labels) in zip(range(steps), batches, strict=False):
        inputs, targets = teacher_forcing(labels)
        logits = model(source, inputs)  # (B, T + 1, V)
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=PAD)
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        losses.append(loss.item())
    return losses


class Generation(NamedTuple):
    """What `generate` returns for B sentences of S tokens that were written in T steps."""

    tokens: torch.Tensor  # (B, T), END included, then PAD
    ended: torch.Tensor  # (B,) True: stopped at END; False: stopped by the limit
    attention: torch.Tensor | None  # (B, T, S) where the decoder has any


@torch.no_grad()
def generate(model, source, limit):
    """Write greedily from source (B, S), each sentence until END or until `limit` tokens.

    Raises ValueError for a limit below 1.
    """
    if limit < 1:
        raise ValueError(f"limit is {limit}: allow at least one token")
    memory = model.encode(source)
    token, state = torch.full_like(source[:, :1], START), None
    ended = torch.zeros(len(source), dtype=torch.bool)
    tokens, attention = [], []
    for _ in range(limit):
        logits, state, weights = model.decoder(token, memory, state)
        token = logits.argmax(dim=-1).masked_fill(ended[:, None], PAD)  # (B, 1)
        ended = ended | (token[:, 0] == END)
        tokens.append(token)
        attention.append(weights)
        if ended.all():
            break
    attention = None if weights is None else torch.cat(attention, dim=1)
    return Generation(torch.cat(tokens, dim=1), ended, attention)


def exact_sequence(tokens, labels):
    """Which rows of the written tokens (B, T) are the labels with END after them -> (B,)."""
    targets = teacher_forcing(labels)[1]
    width = max(tokens.shape[1], targets.shape[1])
    tokens, targets = (F.pad(t, (0, width - t.shape[1]), value=PAD) for t in (tokens, targets))
    return (tokens == targets).all(dim=1)


BITS_A_DIGIT = math.log2(10)


class Copying(NamedTuple):
    """A copying model on strings of n digits, B of them."""

    exact: torch.Tensor  # (B,) copied to the last digit, END included
    right: torch.Tensor  # (B, n) this digit was right when written freely
    bits: torch.Tensor  # (B,) bits of the string that came across, teacher-forced


@torch.no_grad()
def measure_copying(model, length, count=500):
    """The `Copying` on random strings of `length` digits, the same ones at every call."""
    strings = digit_strings(count, length, length, torch.Generator().manual_seed(1000 + length))
    written = generate(model, strings, limit=length + 1).tokens
    right = F.pad(written, (0, length + 1 - written.shape[1]))[:, :length] == strings
    logits = model(strings, teacher_forcing(strings)[0])[:, :length]
    missing = F.cross_entropy(logits.transpose(1, 2), strings, reduction="none").sum(dim=1)
    bits = length * BITS_A_DIGIT - missing / math.log(2)
    return Copying(exact_sequence(written, strings), right, bits)


def copier(hidden_size, seed, cell="GRU", family=Seq2Seq):
    """A fresh copying model with embeddings of 64; family is `Seq2Seq` or a subclass of it."""
    torch.manual_seed(seed)
    sizes = len(DIGITS), 64, hidden_size
    return family(Encoder(*sizes, cell), Decoder(*sizes, cell))


def reverse(tokens):
    """Turn each row of tokens (B, S) round; padding stays at the end."""
    mask = padding_mask(tokens)
    places = mask.sum(dim=1, keepdim=True) - 1 - torch.arange(tokens.shape[1])
    return tokens.gather(1, places.clamp(min=0)).where(mask, PAD)


class ReversedSource(Seq2Seq):
    """The same network, given each source from its last token to its first."""

    def encode(self, source):
        return super().encode(reverse(source))


def reversed_copier(hidden_size, seed, cell="GRU"):
    """The `copier` with the same first weights that reads its source from the end."""
    return copier(hidden_size, seed, cell, ReversedSource)


class DotScore(nn.Module):
    """The dot product of the query with a projection of each key. Luong et al. (2015), "general".

    query (B, T, H), keys (B, S, D) -> scores (B, T, S).
    """

    def __init__(self, hidden_size, key_size):
        super().__init__()
        self.project = nn.Linear(key_size, hidden_size, bias=False)

    def forward(self, query, keys):
        return query @ self.project(keys).transpose(1, 2)


def attend(scores, memory):
    """Weights over the real tokens of each sentence, and the mean of the states with them.

    scores (B, T, S) -> context (B, T, D), weights (B, T, S) that sum to 1 over S.
    """
    scores = scores.masked_fill(~memory.mask[:, None], -torch.inf)
    weights = scores.softmax(dim=-1)
    return weights @ memory.states, weights


class AttentionDecoder(Decoder):
    """The decoder of lesson 06 that looks at all states of the memory before it names a word.

    inputs (B, T), memory, state or None for the first step -> logits (B, T, V), the new state,
    weights (B, T, S). score: a class such as `DotScore`. Luong et al. (2015), section 3.1.
    """

    def __init__(
        self,
        vocabulary_size,
        embedding_size,
        hidden_size,
        memory_size,
        score=DotScore,
        cell="GRU",
    ):
        super().__init__(vocabulary_size, embedding_size, hidden_size, cell)
        self.score = score(hidden_size, memory_size)
        self.head = nn.Linear(hidden_size + memory_size, vocabulary_size)

    def forward(self, inputs, memory, state=None):
        state = memory.final if state is None else state
        query, state = self.rnn(self.embed(inputs), state)  # (B, T, H)
        context, weights = attend(self.score(query, memory.states), memory)
        return self.head(torch.cat([query, context], dim=-1)), state, weights


def attention_copier(hidden_size, seed, cell="GRU", family=Seq2Seq):
    """The `copier` with attention: the same encoder with the same first weights."""
    torch.manual_seed(seed)
    sizes = len(DIGITS), 64, hidden_size
    encoder = Encoder(*sizes, cell)
    return family(encoder, AttentionDecoder(*sizes, memory_size=hidden_size, cell=cell))


class Unmasked(Seq2Seq):
    """The padding-mask bug: every PAD passes for a real token."""

    def encode(self, source):
        return self.encoder(source, torch.ones_like(source, dtype=torch.bool))


def unmasked_copier(hidden_size, seed, cell="GRU"):
    """The `attention_copier` without its padding mask."""
    return attention_copier(hidden_size, seed, cell, Unmasked)


@torch.no_grad()
def copied_beside(model, length, width, count=500):
    """Which strings of `length` digits are copied in a batch padded to `width` -> (count,)."""
    strings = digit_strings(count, length, length, torch.Generator().manual_seed(1000 + length))
    padded = F.pad(strings, (0, width - length), value=PAD)
    return exact_sequence(generate(model, padded, limit=length + 1).tokens, strings)


def vocabulary(sentences):
    """The `Vocabulary` of all words in the sentences, in alphabetical order."""
    return Vocabulary(sorted({word for sentence in sentences for word in sentence}))


class BidirectionalEncoder(Encoder):
    """A second GRU reads from the end; each state is the pair of both. Bahdanau et al. (2015).

    source (B, S), mask (B, S) -> `Memory` with states (B, S, 2 H); the final states of both
    directions are mapped to one of H numbers.
    """

    def __init__(self, vocabulary_size, embedding_size, hidden_size):
        super().__init__(vocabulary_size, embedding_size, hidden_size)
        self.rnn = nn.GRU(embedding_size, hidden_size, batch_first=True, bidirectional=True)
        self.bridge = nn.Linear(2 * hidden_size, hidden_size)

    def read(self, vectors, mask):
        memory = super().read(vectors, mask)
        both = torch.cat(tuple(memory.final), dim=-1)  # (B, 2 H)
        return memory._replace(final=self.bridge(both).tanh()[None])


class ScaledDotScore(DotScore):
    """The dot product divided by the root of its length. Vaswani et al. (2017), section 3.2.1."""

    def forward(self, query, keys):
        return super().forward(query, keys) / math.sqrt(query.shape[-1])


class AdditiveScore(nn.Module):
    """A network with one hidden layer of H units. Bahdanau et al. (2015), appendix A.1.2.

    query (B, T, H), keys (B, S, D) -> scores (B, T, S).
    """

    def __init__(self, hidden_size, key_size):
        super().__init__()
        self.from_query = nn.Linear(hidden_size, hidden_size)
        self.from_key = nn.Linear(key_size, hidden_size, bias=False)
        self.score = nn.Linear(hidden_size, 1, bias=False)

    def forward(self, query, keys):
        pairs = self.from_query(query)[:, :, None] + self.from_key(keys)[:, None]  # (B, T, S, H)
        return self.score(pairs.tanh())[..., 0]


def translator(english, french, seed, encoder=BidirectionalEncoder, score=DotScore):
    """A fresh translating model with states of 128; without attention if score is None."""
    torch.manual_seed(seed)
    reader = encoder(len(english), 64, 128)
    sizes = len(french), 64, 128
    if score is None:
        return Seq2Seq(reader, Decoder(*sizes))
    memory_size = 256 if encoder is BidirectionalEncoder else 128
    return Seq2Seq(reader, AttentionDecoder(*sizes, memory_size, score))


def translation_batches(english, french, pairs, seed, batch_size=64):
    """Endless batches (source, labels) of the pairs, in a new random order each time round."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        for rows in torch.randperm(len(pairs), generator=generator).split(batch_size):
            batch = [pairs[row] for row in rows]
            yield (
                english.encode([p.english for p in batch]),
                french.encode([p.french for p in batch]),
            )


@torch.no_grad()
def alignments(model, pairs, source, labels):
    """One matrix (T, S) for each pair: 1 at the English word with the largest weight, else 0.

    The model is teacher-forced with the labels (B, T); the row of END is left out.
    """
    weights = model.decoder(teacher_forcing(labels)[0], model.encode(source))[2]
    links = F.one_hot(weights.argmax(dim=2), weights.shape[2]).float()
    return [links[row, : len(p.french), : len(p.english)] for row, p in enumerate(pairs)]


def alignment_error_rate(pairs, alignments):
    """AER of Och and Ney (2003) over all pairs: 0 is perfect, 1 is all wrong.

    alignments: for each pair a matrix (T, S), whose row holds the share of a French word's link
    that falls on each English word. Raises ValueError for no pairs.
    """
    if not len(pairs):
        raise ValueError("there are no pairs: an alignment error rate needs at least one")
    hits = words = 0
    for pair, alignment in zip(pairs, alignments, strict=True):
        for shares, sure, possible in zip(alignment, pair.sure, pair.possible, strict=True):
            hits += (shares[sure] + shares[list(possible)].sum()).item()
            words += 1
    return 1 - hits / (2 * words)


class BothWays(NamedTuple):
    """What was wanted, and the answers with a teacher and running freely, all (B, T)."""

    targets: torch.Tensor  # END included, then PAD
    forced: torch.Tensor
    free: torch.Tensor


@torch.no_grad()
def answer_both_ways(model, source, labels):
    """The most probable tokens, given the true words and given the model's own: `BothWays`."""
    inputs, targets = teacher_forcing(labels)
    free = generate(model, source, limit=targets.shape[1]).tokens
    free = F.pad(free, (0, targets.shape[1] - free.shape[1]), value=PAD)
    return BothWays(targets, model(source, inputs).argmax(dim=2), free)


@torch.no_grad()
def mixed_inputs(model, source, inputs, probability, generator, whole=False):
    """The decoder's inputs (B, T), words replaced by those that the model writes in their place.

    Every word after START is replaced with this probability, drawn for each word alone, as in
    Bengio et al. (2015), or with whole=True for all words of a sequence at once.
    """
    if probability == 0:
        return inputs
    inputs, words = inputs.clone(), inputs.shape[1] - 1
    chances = torch.rand(len(inputs), 1 if whole else words, generator=generator)
    own = (chances < probability).expand(-1, words)
    memory, state = model.encode(source), None
    for t in range(words):
        logits, state, _ = model.decoder(inputs[:, t : t + 1], memory, state)
        written = logits[:, 0].argmax(dim=-1)
        inputs[:, t + 1] = written.where(own[:, t], inputs[:, t + 1])
    return inputs


OWN_SHARES = {
    "never": lambda progress: 0.0,
    "linear": lambda progress: progress,
    "exponential": lambda progress: 1 - 0.01**progress,
    "inverse sigmoid": lambda progress: 1 - 100 / (100 + math.exp(10 * progress)),
    "linear, to a quarter": lambda progress: progress / 4,
    "always": lambda progress: 1.0,
}


class ScheduledSampling(nn.Module):
    """A model for `train` whose decoder is given more and more of its own words.

    own_share: of `OWN_SHARES`, from the share of `steps` that is done to the share of words that
    are the model's own. whole: as in `mixed_inputs`.
    """

    def __init__(self, model, own_share, steps, seed, whole=False):
        super().__init__()
        self.model, self.own_share, self.steps, self.whole = model, own_share, steps, whole
        self.taken, self.generator = 0, torch.Generator().manual_seed(seed)

    def forward(self, source, inputs):
        share = OWN_SHARES[self.own_share](self.taken / self.steps)
        self.taken += 1
        mixed = mixed_inputs(self.model, source, inputs, share, self.generator, self.whole)
        return self.model(source, mixed)


def short_copies(seed, longest, batch_size=64):
    """Endless batches of the copy task with strings of 1 to `longest` digits."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        strings = digit_strings(batch_size, 1, longest, generator)
        yield strings, strings


def log_probability(model, source, tokens):
    """Nats (B,) that the model gives to the written tokens (B, T), PAD after their END."""
    inputs = F.pad(tokens, (1, 0), value=START)[:, :-1]
    logits = model(source, inputs).transpose(1, 2)  # (B, V, T)
    return -F.cross_entropy(logits, tokens, ignore_index=PAD, reduction="none").sum(dim=1)


@torch.no_grad()
def draw_freely(model, source, limit, generator):
    """As `generate`, but each word is drawn with its probability -> tokens (B, limit)."""
    memory, state = model.encode(source), None
    tokens = torch.full_like(source[:, :1], START)
    ended = torch.zeros_like(tokens, dtype=torch.bool)
    for _ in range(limit):
        logits, state, _ = model.decoder(tokens[:, -1:], memory, state)
        token = logits[:, 0].softmax(dim=-1).multinomial(1, generator=generator)
        token = token.masked_fill(ended, PAD)
        ended = ended | (token == END)
        tokens = torch.cat([tokens, token], dim=1)
    return tokens[:, 1:]


def reinforce_loss(model, source, labels, generator, baseline=True, draws=4):
    """A loss whose gradient is, on average, that of minus the mean reward; and that reward.

    For each source `draws` outputs are drawn; the reward is 1 for an exact one and 0 else. The
    baseline of an output is the mean reward of the others from its source. Williams (1992).
    """
    source, labels = (t.repeat_interleave(draws, dim=0) for t in (source, labels))
    tokens = draw_freely(model, source, labels.shape[1] + 1, generator)
    reward = exact_sequence(tokens, labels).float().unflatten(0, (-1, draws))
    others = (reward.sum(dim=1, keepdim=True) - reward) / (draws - 1)
    weight = reward - others if baseline else reward
    loss = -(weight.flatten() * log_probability(model, source, tokens)).mean()
    return loss, reward.mean().item()


def reinforce(model, batches, steps, seed, baseline=True, learning_rate=1e-4):
    """Train on the reward of `reinforce_loss` with Adam; returns the mean reward of each step."""
    generator = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.Adam(model.parameters(), lr=learning_rate)
    rewards = []
    for _, (source, labels) in zip(range(steps), batches, strict=False):
        loss, reward = reinforce_loss(model, source, labels, generator, baseline)
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        rewards.append(reward)
    return rewards


class Hypotheses(NamedTuple):
    """What `beam_search` returns for B sentences: the best `width` of each, the best first."""

    tokens: torch.Tensor  # (B, width, limit), END included, then PAD
    ended: torch.Tensor  # (B, width) True: stopped at END; False: stopped by the limit
    log_probability: torch.Tensor  # (B, width) nats; -inf where there is no hypothesis
    score: torch.Tensor  # (B, width) the same, divided by the length penalty


def length_penalty(length, alpha):
    """What a log-probability is divided by: 1 for alpha = 0. Wu et al. (2016), equation 14."""
    return ((5 + length) / 6) ** alpha


def pick_rows(state, rows):
    """The state of these rows of the batch; for an LSTM that of both vectors."""
    return tuple(s[:, rows] for s in state) if isinstance(state, tuple) else state[:, rows]


def repeat_memory(memory, width):
    """The memory with `width` equal rows for each sentence."""
    rows = torch.arange(len(memory.mask)).repeat_interleave(width)
    return Memory(memory.states[rows], pick_rows(memory.final, rows), memory.mask[rows])


def check_search(limit, width, vocabulary_size):
    """Raise ValueError for a limit below 1, a width below 1 or above the number of sequences."""
    if limit < 1:
        raise ValueError(f"limit is {limit}: allow at least one token")
    going_on = vocabulary_size - 1  # every token but END
    sequences = sum(going_on**length for length in range(limit)) + going_on**limit
    if not 1 <= width <= sequences:
        raise ValueError(f"width is {width}: with {sequences:,} sequences, keep 1 to {sequences:,}")


@torch.no_grad()
def beam_search(model, source, limit, width, alpha=0.0, keep_greedy=True):
    """Keep the `width` likeliest beginnings at every step: source (B, S) -> `Hypotheses`.

    One that gets END is set apart, and from then on its sentence keeps one beginning fewer, as in
    Sutskever et al. (2014). With keep_greedy no result is worse than the greedy one, see
    `or_greedy`. Raises ValueError for what `check_search` refuses.
    """
    check_search(limit, width, model.decoder.head.out_features)
    memory, state = repeat_memory(model.encode(source), width), None
    first = width * torch.arange(len(source))[:, None]  # each sentence's first row
    tokens = source.new_full((len(source), width, 1), START)
    nats = torch.full((len(source), width), -torch.inf)
    nats[:, 0] = 0  # at first there is one beginning: START
    room, apart = torch.full((len(source), 1), width), []
    for length in range(1, limit + 1):
        logits, state, _ = model.decoder(tokens[..., -1].reshape(-1, 1), memory, state)
        more = logits[:, 0].log_softmax(dim=-1).unflatten(0, (-1, width))  # (B, width, V)
        nats, choice = (nats[..., None] + more).flatten(1).topk(width)
        nats = nats.masked_fill(torch.arange(width) >= room, -torch.inf)
        beam, token = choice // more.shape[-1], choice % more.shape[-1]
        tokens = torch.cat([tokens.take_along_dim(beam[..., None], 1), token[..., None]], dim=2)
        state = pick_rows(state, (first + beam).flatten())
        ended = (token == END) & nats.isfinite()
        closed = nats.where(ended | torch.tensor(length == limit), -torch.inf)
        written = F.pad(tokens[..., 1:], (0, limit - length), value=PAD)
        apart.append((written, ended, closed, closed / length_penalty(length, alpha)))
        room, nats = room - ended.sum(dim=1, keepdim=True), nats.masked_fill(ended, -torch.inf)
        if not nats.isfinite().any():
            break
    found = best_of(apart, width)
    if width == 1 or not keep_greedy:
        return found
    return or_greedy(found, beam_search(model, source, limit, 1, alpha))


def best_of(apart, width):
    """The `Hypotheses` with the highest scores among those set apart at all steps."""
    found = Hypotheses(*(torch.cat(parts, dim=1) for parts in zip(*apart, strict=True)))
    best = found.score.topk(width).indices
    tokens = found.tokens.take_along_dim(best[..., None], dim=1)
    ended, nats, score = (part.take_along_dim(best, dim=1) for part in found[1:])
    return Hypotheses(tokens.masked_fill(score.isinf()[..., None], PAD), ended, nats, score)


def or_greedy(found, greedy):
    """The `Hypotheses` with the greedy one among them, where it is not among them yet."""
    same = (found.tokens == greedy.tokens).all(dim=2) & found.score.isfinite()  # (B, width)
    there = same.any(dim=1, keepdim=True)
    nats, score = (part.masked_fill(there, -torch.inf) for part in greedy[2:])
    return best_of([found, Hypotheses(*greedy[:2], nats, score)], found.score.shape[1])
