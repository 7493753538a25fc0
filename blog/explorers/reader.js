// The readers of numbers: the small one of lesson 03, and those with a stem of convolutions.

import { add, argmax, conv2d, gelu, groupNorm, layerNorm, linear } from "./tensor.js";
import { multiHeadAttention, nested, pick, rows, softmax, stack } from "./tensor.js";
import { transpose, windows } from "./tensor.js";

// Tokens: the ten digits, then these.
export const READ_START = 10;
export const READ_END = 11;

/* Position t sees itself and what is before it. */
export const causal = (t, s) => s <= t;

function normed(x, { weight, bias }) {
  return layerNorm(x, weight, bias);
}

function dense(x, { weight, bias }) {
  return linear(x, weight, bias);
}

function feedForward(x, norm, layers) {
  return add(x, dense(gelu(dense(normed(x, norm), layers[0])), layers[2]));
}

function encoderBlock(x, block, heads) {
  const seen = normed(x, block.residuals[0].norm);
  x = add(x, multiHeadAttention(seen, seen, block.attention, heads).output);
  return feedForward(x, block.residuals[1].norm, block.feed_forward);
}

/* x (T, W), memory (P, W) -> {x (T, W), weights (T, P) of the cross-attention}. */
function decoderBlock(x, memory, block, heads, mask) {
  const norms = Object.values(block.residuals).map(({ norm }) => norm);
  const written = normed(x, norms[0]);
  x = add(x, multiHeadAttention(written, written, block.self_attention, heads, mask).output);
  const query = normed(x, norms[1]);
  const { output, weights } = multiHeadAttention(query, memory, block.cross_attention, heads);
  return { x: feedForward(add(x, output), norms[2], block.feed_forward), weights };
}

/* x (C, H, W) -> a vector for each place (H * W, C). */
function vectorsOf({ shape: [channels, height, width], data }) {
  return transpose({ shape: [channels, height * width], data });
}

/* The layers that make of an image (1, H, W) the vectors of a grid (P, width).
   parts: convolution, norm, convolution, norm, ..., convolution. */
function convolutionLayers(strides, parts) {
  const layers = strides.map((stride, i) => (image) => {
    const { weight, bias } = parts[2 * i];
    const norm = parts[2 * i + 1];
    const x = conv2d(image, weight, bias, stride, Math.floor(weight.shape[2] / 2));
    return norm ? gelu(groupNorm(x, norm.weight, norm.bias)) : x;
  });
  return [...layers, vectorsOf];
}

/* tensors: of a pre-norm `Reader` or of a `StemReader`. A stem needs the strides of all its
   convolutions. imageSize: [height, width]. */
export class Reader {
  constructor(tensors, { heads = 4, patch = 7, strides, imageSize }) {
    const { encoder, decoder } = nested(tensors);
    this.heads = heads;
    this.imageSize = imageSize;
    this.decoder = decoder;
    const stem = strides && encoder[0];
    const parts = strides ? { ...stem, blocks: [encoder[1]], norm: encoder[2] } : encoder;
    this.layers = [
      ...(strides
        ? convolutionLayers(strides, Object.values(stem.convolutions))
        : [(image) => dense(windows(image, patch, patch), encoder.embed)]),
      (x) => add(x, parts.position),
      ...Object.values(parts.blocks).map((block) => (x) => encoderBlock(x, block, heads)),
      (x) => normed(x, parts.norm),
    ];
  }

  /* Image (H * W), 0 background to 1 ink -> memory (P, width). It yields after each layer. */
  *encoding(image) {
    const [height, width] = this.imageSize;
    if (image.length !== height * width) {
      const needed = `this reader takes ${height} x ${width}`;
      throw new Error(`The image has ${image.length} pixels: ${needed}.`);
    }
    if (!image.every(Number.isFinite)) throw new Error("The image has pixels that are no numbers.");
    let x = { shape: [1, height, width], data: image };
    for (const layer of this.layers) {
      x = layer(x);
      yield;
    }
    return x;
  }

  encode(image) {
    const work = this.encoding(image);
    for (;;) {
      const { done, value } = work.next();
      if (done) return value;
    }
  }

  /* Tokens (T), memory (P, width), mask(t, s): whether token t may see token s
     -> {logits (T, V), attention (T, P), the last block's cross-attention}. */
  decode(tokens, memory, mask = causal) {
    const { embed, position, blocks, norm, head } = this.decoder;
    if (tokens.length > position.shape[0]) {
      const places = `this reader has ${position.shape[0]} token positions`;
      throw new Error(`${tokens.length} tokens given: ${places}.`);
    }
    let x = add(stack(pick(embed.weight, tokens)), rows(position, 0, tokens.length));
    let attention;
    for (const block of Object.values(blocks)) {
      ({ x, weights: attention } = decoderBlock(x, memory, block, this.heads, mask));
    }
    return { logits: dense(normed(x, norm), head), attention };
  }

  /* Greedy, to END or the limit: one by one {token, probabilities (V), attention (P)}. */
  *read(memory, mask = causal, limit = this.decoder.position.shape[0]) {
    const tokens = [READ_START];
    while (tokens.length <= limit && tokens.at(-1) !== READ_END) {
      const { logits, attention } = this.decode(tokens, memory, mask);
      const last = tokens.length - 1;
      const probabilities = softmax(rows(logits, last, last + 1)).data;
      const token = argmax(probabilities);
      tokens.push(token);
      yield { token, probabilities, attention: rows(attention, last, last + 1).data };
    }
  }
}
