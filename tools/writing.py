"""How long it takes to write tokens, by the article's loop and with a cache. CPU seconds."""

import statistics
import time

import torch

import seq2seq
import transformer

WIDTH, HEADS, LAYERS, PATCHES = 96, 4, 2, 48  # those of the article's reader
MOST_TOKENS = 256  # tokens
LOOPS = {"article": transformer.generate_without_cache, "ours": seq2seq.generate}
SIZES = {  # name: how many texts at once, tokens in each, repetitions
    "ms_for_20": (16, 20, 11),
    "ms_for_20_by_500": (500, 20, 5),
    "ms_for_256": (16, MOST_TOKENS, 1),
}


def endless(texts, seed):
    """An untrained network that never writes END, and its source: (model, source (B, S)).

    The source is read only once, here, so that what is timed afterwards is the loop alone.
    """
    torch.manual_seed(seed)
    sizes = (WIDTH, HEADS, LAYERS, MOST_TOKENS, "sinusoidal")
    vocabulary_size = len(seq2seq.DIGITS)
    encoder = transformer.TransformerEncoder(vocabulary_size, *sizes)
    decoder = transformer.TransformerDecoder(vocabulary_size, *sizes)
    model = seq2seq.Seq2Seq(encoder, decoder)
    torch.nn.init.constant_(decoder.head.bias[seq2seq.END], -torch.inf)
    source = seq2seq.digit_strings(texts, PATCHES, PATCHES, torch.Generator().manual_seed(seed))
    with torch.no_grad():
        memory = model.encode(source)
    model.encode = lambda source: memory
    return model, source


def milliseconds(loop, model, source, tokens):
    start = time.process_time()
    loop(model, source, tokens)
    return 1000 * (time.process_time() - start)


def writing(name, seed):
    """Median milliseconds of the loop of this name for each of SIZES."""
    found = {}
    for size, (texts, tokens, repetitions) in SIZES.items():
        model, source = endless(texts, seed)
        found[size] = statistics.median(
            milliseconds(LOOPS[name], model, source, tokens) for _ in range(repetitions)
        )
    return found
