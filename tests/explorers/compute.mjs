// What the explorers compute, for test_explorer_numbers.py.
// stdin: {name: request} as JSON; stdout: {name: {result} or {error}}, tensors as {shape, data}.

import { readFileSync } from "node:fs";
import { Copier, Encoder, lastThirdOverFirst } from "../../blog/explorers/seq2seq.js";
import { parameterCount, untrainedEncoder } from "../../blog/explorers/seq2seq.js";
import { Reader } from "../../blog/explorers/reader.js";
import { fromBase64, readSafetensors } from "../../blog/explorers/safetensors.js";
import * as arithmetic from "../../blog/explorers/tensor.js";

const load = (path) => readSafetensors(readFileSync(path));

function plain(value) {
  if (ArrayBuffer.isView(value)) return Array.from(value);
  if (Array.isArray(value)) return value.map(plain);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, plain(part)]));
}

/* mask: rows of booleans -> what the readers ask. */
const asked = (mask) => mask && ((t, s) => mask[t][s]);

function images(path) {
  const { shape, data } = load(path).images;
  const size = data.length / shape[0];
  return Array.from({ length: shape[0] }, (_, n) => data.subarray(n * size, (n + 1) * size));
}

/* Milliseconds that this thread computes: what other processes take does not count. */
function clock() {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

function milliseconds(repetitions, run) {
  return Array.from({ length: repetitions }, () => {
    const start = clock();
    run();
    return clock() - start;
  });
}

const requests = {
  copier({ weights, cell, attention, strings, limit }) {
    const tensors = load(weights);
    const copier = new Copier(tensors, cell, attention);
    const copies = strings.map((tokens) => ({
      ...copier.encode(tokens),
      influence: [...copier.influence(tokens)],
      written: copier.write(tokens, limit),
    }));
    return { parameters: parameterCount(tensors), copies };
  },

  untrained({ noise, cell, hiddenSize, gateBias, strings }) {
    const tensors = untrainedEncoder(load(noise), cell, hiddenSize, gateBias);
    const encoder = new Encoder(tensors, cell);
    return strings.map((tokens) => [...encoder.influence(tokens)]);
  },

  ratio({ bars }) {
    return lastThirdOverFirst(bars);
  },

  decode({ weights, options, inputs, tokens, masks = [] }) {
    const reader = new Reader(load(weights), options);
    return images(inputs).map((image, n) =>
      reader.decode(tokens[n], reader.encode(image), asked(masks[n])));
  },

  read({ weights, options, inputs, limit }) {
    const reader = new Reader(load(weights), options);
    return images(inputs).map((image) => [...reader.read(reader.encode(image), undefined, limit)]);
  },

  encode({ weights, options, image }) {
    return new Reader(load(weights), options).encode(Float32Array.from(image, (v) => v ?? NaN));
  },

  call({ name, tensors, more = [] }) {
    return arithmetic[name](...Object.values(load(tensors)), ...more);
  },

  attend({ tensors, heads, mask }) {
    const { x, memory, ...part } = load(tensors);
    const weights = arithmetic.nested(part);
    return arithmetic.multiHeadAttention(x, memory, weights, heads, asked(mask));
  },

  mask({ scores, mask }) {
    return arithmetic.softmax(arithmetic.stack(scores), asked(mask));
  },

  step({ name, tensors }) {
    const { x, h, c, weight_ih, weight_hh, bias_ih, bias_hh } = load(tensors);
    const state = { h: Float64Array.from(h.data), c: Float64Array.from(c.data) };
    const fromInput = arithmetic.linear(x, weight_ih, bias_ih).data;
    return arithmetic[name](fromInput, state, weight_hh, bias_hh);
  },

  parse({ text }) {
    return readSafetensors(fromBase64(text));
  },

  bytes({ text }) {
    return fromBase64(text);
  },

  influenceTime({ weights, cell, tokens, repetitions }) {
    const copier = new Copier(load(weights), cell, false);
    return milliseconds(repetitions, () => [...copier.influence(tokens)]);
  },

  readingTime({ weights, options, inputs, repetitions }) {
    const reader = new Reader(load(weights), options);
    const [image] = images(inputs);
    const memory = reader.encode(image);
    return {
      encode: milliseconds(repetitions, () => reader.encode(image)),
      decode: milliseconds(repetitions, () => reader.decode([10, 1, 2, 3], memory)),
      reading: milliseconds(repetitions, () => [...reader.read(reader.encode(image))]),
    };
  },
};

const answers = {};
for (const [name, { run, ...request }] of Object.entries(JSON.parse(readFileSync(0, "utf8")))) {
  try {
    answers[name] = { result: plain(requests[run](request)) };
  } catch (error) {
    answers[name] = { error: error.message };
  }
}
process.stdout.write(JSON.stringify(answers));
