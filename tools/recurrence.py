"""The runs behind lesson 09: the tasks of lessons 06 and 07 without a recurrence."""

import grammar
import seq2seq
import transformer

COPY_STEPS = 500
COPY_BATCH = 32
TRANSLATION_STEPS_WITHOUT_RECURRENCE = 600
SENTENCE_LENGTHS = [(1, 7), (8, 11), (12, 15), (16, 30)]  # English words
EVERY = 50  # steps, over which the losses are averaged


def averaged(losses):
    """Losses -> their means over EVERY steps."""
    parts = (losses[i : i + EVERY] for i in range(0, len(losses), EVERY))
    return [sum(part) / len(part) for part in parts]


def transformer_copy(positions, seed):
    """Train a transformer to copy; its losses, and its accuracy by length."""
    network = transformer.transformer_copier(positions, seed)
    losses = seq2seq.train(network, seq2seq.copy_batches(seed, COPY_BATCH), COPY_STEPS)
    tests = [seq2seq.measure_copying(network, length, 200) for length in range(1, 31)]
    return {
        "losses": averaged(losses),
        "exact": [100 * test.exact.float().mean().item() for test in tests],
        "digits": [100 * test.right.float().mean().item() for test in tests],
    }


def transformer_translation(positions, seed):
    """Train a transformer to translate; its losses, exact translations, alignment error rate."""
    corpus = grammar.pairs(20_000, seed=0)
    english = seq2seq.vocabulary(pair.english for pair in corpus)
    french = seq2seq.vocabulary(pair.french for pair in corpus)
    network = transformer.transformer(len(english), len(french), seed, positions)
    batches = seq2seq.translation_batches(english, french, corpus, seed)
    losses = seq2seq.train(network, batches, TRANSLATION_STEPS_WITHOUT_RECURRENCE)

    pairs = grammar.pairs(1_000, seed=1, held_out=True)
    source = english.encode([pair.english for pair in pairs])
    labels = french.encode([pair.french for pair in pairs])
    written = seq2seq.generate(network, source, limit=labels.shape[1] + 1)
    exact = seq2seq.exact_sequence(written.tokens, labels)
    found = seq2seq.alignments(network, pairs, source, labels)
    lengths = seq2seq.padding_mask(source).sum(dim=1)
    parts = [exact[(lengths >= low) & (lengths <= high)] for low, high in SENTENCE_LENGTHS]
    return {
        "losses": averaged(losses),
        "exact": 100 * exact.float().mean().item(),
        "exact_by_length": [100 * part.float().mean().item() for part in parts],
        "aer": seq2seq.alignment_error_rate(pairs, found),
    }
