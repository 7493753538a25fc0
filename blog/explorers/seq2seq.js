// The copiers of lessons 06 and 07, and the encoders of 06 that nobody has trained.

import { argmax, besides, linear, nested, pick, softmax, stack, sumOf } from "./tensor.js";
import { gruStep, lstmStep, rnnStep, weightedMeans } from "./tensor.js";

// Tokens: PAD 0, START 1, END 2, then the ten digits.
export const COPY_START = 1;
export const COPY_END = 2;
export const COPY_ZERO = 3;

const CELLS = {
  RNN: { gates: 1, step: rnnStep },
  GRU: { gates: 3, step: gruStep },
  LSTM: { gates: 4, step: lstmStep },
};

function negative(x) {
  return { shape: x.shape, data: x.data.map((value) => -value) };
}

function distance(some, others) {
  return Math.hypot(...some.map((value, i) => value - others[i]));
}

/* Embeddings and a recurrent cell. Its states are {h, c}, of which only an LSTM uses c. */
class Recurrent {
  constructor({ embed, rnn }, cell) {
    this.embeddings = embed.weight;
    this.rnn = rnn;
    this.inputs = this.project(this.embeddings);
    this.advance = CELLS[cell].step;
  }

  /* Embeddings (V, E) -> what they bring to the gates (V, G * H). */
  project(embeddings) {
    return linear(embeddings, this.rnn.weight_ih_l0, this.rnn.bias_ih_l0);
  }

  start() {
    const size = this.rnn.weight_hh_l0.shape[1];
    return { h: new Float64Array(size), c: new Float64Array(size) };
  }

  step(state, fromInput) {
    return this.advance(fromInput, state, this.rnn.weight_hh_l0, this.rnn.bias_hh_l0);
  }
}

/* tensors: those of a copier whose names begin with "encoder". cell: "RNN", "GRU" or "LSTM". */
export class Encoder {
  constructor(tensors, cell) {
    this.recurrent = new Recurrent(nested(tensors).encoder, cell);
    this.negatedInputs = this.recurrent.project(negative(this.recurrent.embeddings));
  }

  /* Tokens (S) -> {inputs, what each of them brings, states, the S + 1 before and after them}. */
  run(tokens) {
    if (!tokens.length) throw new Error("There is nothing to read: give at least one token.");
    const inputs = pick(this.recurrent.inputs, tokens);
    const states = [this.recurrent.start()];
    for (const fromInput of inputs) states.push(this.recurrent.step(states.at(-1), fromInput));
    return { inputs, states };
  }

  /* Tokens (S) -> {states (S, H), final, the last state {h, c}}. */
  encode(tokens) {
    const { states } = this.run(tokens);
    return { states: stack(states.slice(1).map(({ h }) => h)), final: states.at(-1) };
  }

  /* Tokens (S) -> one by one S distances: how far the final h moves when the embedding of this
     token alone is negated. */
  *influence(tokens) {
    const { inputs, states } = this.run(tokens);
    const negated = pick(this.negatedInputs, tokens);
    for (let t = 0; t < tokens.length; t++) {
      let moved = this.recurrent.step(states[t], negated[t]);
      for (const fromInput of inputs.slice(t + 1)) moved = this.recurrent.step(moved, fromInput);
      yield distance(moved.h, states.at(-1).h);
    }
  }
}

/* tensors: as in data/copier-*.safetensors. cell: "RNN", "GRU" or "LSTM". attention: whether the
   decoder looks back at the states of the encoder. */
export class Copier {
  constructor(tensors, cell, attention) {
    const { decoder } = nested(tensors);
    this.encoder = new Encoder(tensors, cell);
    this.recurrent = new Recurrent(decoder, cell);
    this.head = decoder.head;
    this.score = attention ? decoder.score.project.weight : null;
  }

  encode(tokens) {
    return this.encoder.encode(tokens);
  }

  influence(tokens) {
    return this.encoder.influence(tokens);
  }

  /* Tokens (S) -> {tokens (T), attention (T, S) or null, ended}: greedy, to END or the limit. */
  write(tokens, limit) {
    if (!(limit >= 1)) throw new Error(`The limit is ${limit}: allow at least one token.`);
    const { states, final } = this.encode(tokens);
    const keys = this.score && linear(states, this.score); // (S, H)
    const written = [];
    const attention = [];
    let state = final;
    while (written.length < limit && written.at(-1) !== COPY_END) {
      const [fromInput] = pick(this.recurrent.inputs, [written.at(-1) ?? COPY_START]);
      state = this.recurrent.step(state, fromInput);
      let known = stack([state.h]);
      if (keys) {
        const weights = softmax(linear(known, keys)); // (1, S)
        known = besides([known, weightedMeans(weights, states)]);
        attention.push(weights.data);
      }
      written.push(argmax(linear(known, this.head.weight, this.head.bias).data));
    }
    return {
      tokens: written,
      attention: keys && stack(attention),
      ended: written.at(-1) === COPY_END,
    };
  }
}

/* How many numbers the tensors {name: tensor} of a network hold. */
export function parameterCount(tensors) {
  return sumOf(Object.values(tensors).map(({ data }) => data.length));
}

/* noise (4, 128, W) or (4, 128) -> the first H rows of each gate, and of these the first numbers,
   within 1 / sqrt(H), where PyTorch begins (G * H, columns). */
function corner(noise, gates, hiddenSize, columns) {
  const [, height, width = 1] = noise.shape;
  const lists = [];
  for (let gate = 0; gate < gates; gate++) {
    for (let row = 0; row < hiddenSize; row++) {
      const start = (gate * height + row) * width;
      const numbers = noise.data.subarray(start, start + columns);
      lists.push(numbers.map((value) => value / Math.sqrt(hiddenSize)));
    }
  }
  return stack(lists);
}

/* noise: {embed (V, E), normal; input (4, 128, E), recurrent (4, 128, 128), biasInput (4, 128) and
   biasRecurrent (4, 128), uniform in [-1, 1]} -> the tensors of an `Encoder`. gateBias is added to
   the gate that keeps the state: the GRU's update gate, the LSTM's forget gate. */
export function untrainedEncoder(noise, cell, hiddenSize, gateBias) {
  const { gates } = CELLS[cell];
  const weight = (part, columns) => corner(part, gates, hiddenSize, columns);
  const bias = (part) => ({ shape: [gates * hiddenSize], data: weight(part, 1).data });
  const biasRecurrent = bias(noise.biasRecurrent);
  for (let i = hiddenSize; gates > 1 && i < 2 * hiddenSize; i++) biasRecurrent.data[i] += gateBias;
  return {
    "encoder.embed.weight": noise.embed,
    "encoder.rnn.weight_ih_l0": weight(noise.input, noise.input.shape[2]),
    "encoder.rnn.weight_hh_l0": weight(noise.recurrent, hiddenSize),
    "encoder.rnn.bias_ih_l0": bias(noise.biasInput),
    "encoder.rnn.bias_hh_l0": biasRecurrent,
  };
}

function meanOf(values) {
  return sumOf(values) / values.length;
}

/* Bars (S) -> the mean of the last third over the mean of the first. */
export function lastThirdOverFirst(bars) {
  const third = Math.floor(bars.length / 3);
  if (!third) throw new Error(`${bars.length} bars have no thirds: give at least three.`);
  return meanOf(bars.slice(-third)) / meanOf(bars.slice(0, third));
}
