// The arithmetic of the networks. A tensor is {shape, data}: data is a Float32Array, row by row.
// Sums are taken in double precision. Weights have PyTorch's names and layout.

const EPSILON = 1e-5; // keeps norms from dividing by 0

function zeros(...shape) {
  return { shape, data: new Float32Array(shape.reduce((product, n) => product * n, 1)) };
}

/* N lists of W numbers -> (N, W). */
export function stack(lists) {
  const width = lists[0].length;
  const out = zeros(lists.length, width);
  lists.forEach((list, n) => out.data.set(list, n * width));
  return out;
}

/* Rows start to end of x, which share its memory. */
export function rows(x, start, end) {
  const size = x.data.length / x.shape[0];
  const data = x.data.subarray(start * size, end * size);
  return { shape: [end - start, ...x.shape.slice(1)], data };
}

/* The rows of x (N, W) with these numbers, such as the embeddings of tokens: a list of T rows. */
export function pick(x, numbers) {
  const count = x.shape[0];
  return Array.from(numbers, (number) => {
    if (Number.isInteger(number) && number >= 0 && number < count) {
      return rows(x, number, number + 1).data;
    }
    throw new Error(`Token ${number} is not among the ${count} tokens.`);
  });
}

/* (N, A), (N, B), ... -> (N, A + B + ...). */
export function besides(parts) {
  const count = parts[0].shape[0];
  const out = zeros(count, parts.reduce((sum, part) => sum + part.shape[1], 0));
  let place = 0;
  for (let n = 0; n < count; n++) {
    for (const part of parts) {
      out.data.set(rows(part, n, n + 1).data, place);
      place += part.shape[1];
    }
  }
  return out;
}

/* (N, M) -> (M, N). */
export function transpose(x) {
  const [height, width] = x.shape;
  const out = zeros(width, height);
  for (let n = 0; n < height; n++) {
    for (let m = 0; m < width; m++) out.data[m * height + n] = x.data[n * width + m];
  }
  return out;
}

/* The place of the largest of a list of numbers. */
export function argmax(values) {
  return values.reduce((best, value, i) => (value > values[best] ? i : best), 0);
}

function assertSame(what, some, others) {
  if (some.join() !== others.join()) {
    throw new Error(`The ${what} do not agree: ${some.join(" x ")} and ${others.join(" x ")}.`);
  }
}

/* Two tensors of one shape -> their sum. */
export function add(x, y) {
  assertSame("shapes", x.shape, y.shape);
  return { shape: x.shape, data: x.data.map((value, i) => value + y.data[i]) };
}

/* N rows of I numbers, weight (O, I), bias (O) or null -> N rows of O numbers: weight times each
   row, plus bias. Both lists are Float64Arrays. All the time goes here: four sums at once keep the
   processor busy. */
function product(x, weight, bias) {
  const [size, width] = weight.shape;
  const { data } = weight;
  const out = new Float64Array((x.length / width) * size);
  for (let start = 0, place = 0; start < x.length; start += width, place += size) {
    if (bias) out.set(bias.data, place);
    let o = 0;
    for (; o + 3 < size; o += 4) {
      const a = o * width;
      const b = a + width;
      const c = b + width;
      const d = c + width;
      let p = 0;
      let q = 0;
      let r = 0;
      let s = 0;
      for (let i = 0; i < width; i++) {
        const value = x[start + i];
        p += value * data[a + i];
        q += value * data[b + i];
        r += value * data[c + i];
        s += value * data[d + i];
      }
      out[place + o] += p;
      out[place + o + 1] += q;
      out[place + o + 2] += r;
      out[place + o + 3] += s;
    }
    for (; o < size; o++) {
      for (let i = 0; i < width; i++) out[place + o] += x[start + i] * data[o * width + i];
    }
  }
  return out;
}

/* x (N, I), weight (O, I), bias (O) or null -> x times the transposed weight, plus bias (N, O). */
export function linear(x, weight, bias = null) {
  assertSame("widths", [x.shape[1]], [weight.shape[1]]);
  const found = product(new Float64Array(x.data), weight, bias);
  return { shape: [x.shape[0], weight.shape[0]], data: new Float32Array(found) };
}

/* The sum of a list of numbers. */
export function sumOf(values) {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += values[i];
  return sum;
}

/* A list of numbers, moved and stretched to mean 0 and variance 1 (Float64Array). */
function normalised(values) {
  const mean = sumOf(values) / values.length;
  const out = new Float64Array(values);
  let squares = 0;
  for (let i = 0; i < out.length; i++) {
    out[i] -= mean;
    squares += out[i] * out[i];
  }
  const scale = 1 / Math.sqrt(squares / out.length + EPSILON);
  for (let i = 0; i < out.length; i++) out[i] *= scale;
  return out;
}

/* x (N, W), weight (W), bias (W) -> each row normalised (N, W). */
export function layerNorm(x, weight, bias) {
  const [count, width] = x.shape;
  const out = zeros(count, width);
  for (let n = 0; n < count; n++) {
    const row = normalised(rows(x, n, n + 1).data);
    for (let i = 0; i < width; i++) {
      out.data[n * width + i] = row[i] * weight.data[i] + bias.data[i];
    }
  }
  return out;
}

/* x (C, H, W), weight (C), bias (C) -> all of x normalised together (C, H, W). */
export function groupNorm(x, weight, bias) {
  const size = x.data.length / x.shape[0];
  const data = new Float32Array(normalised(x.data));
  for (let i = 0; i < data.length; i++) {
    const channel = Math.floor(i / size);
    data[i] = data[i] * weight.data[channel] + bias.data[channel];
  }
  return { shape: x.shape, data };
}

/* Abramowitz and Stegun, 7.1.26: wrong by 1.5e-7 at most. */
function erf(x) {
  const t = 1 / (1 + 0.3275911 * Math.abs(x));
  const series =
    t * (0.254829592 +
    t * (-0.284496736 +
    t * (1.421413741 +
    t * (-1.453152027 +
    t * 1.061405429))));
  return Math.sign(x) * (1 - series * Math.exp(-x * x));
}

/* x -> x times the share of a normal distribution below x. */
export function gelu(x) {
  return { shape: x.shape, data: x.data.map((v) => 0.5 * v * (1 + erf(v * Math.SQRT1_2))) };
}

const everything = () => true;

/* scores (T, S) -> rows that sum to 1. maySee(t, s) says which places count; the others get 0. */
export function softmax(scores, maySee = everything) {
  const [height, width] = scores.shape;
  const out = zeros(height, width);
  for (let t = 0; t < height; t++) {
    const seen = rows(scores, t, t + 1).data.map((score, s) => (maySee(t, s) ? score : -Infinity));
    const largest = Math.max(...seen);
    if (largest === -Infinity) throw new Error(`Row ${t} of the attention may see nothing.`);
    const powers = seen.map((score) => Math.exp(score - largest));
    const total = sumOf(powers);
    out.data.set(powers.map((power) => power / total), t * width);
  }
  return out;
}

/* weights (T, S), x (S, W) -> the weighted means of the rows of x (T, W). */
export function weightedMeans(weights, x) {
  return linear(weights, transpose(x));
}

function scaled(x, factor) {
  return { shape: x.shape, data: x.data.map((value) => value * factor) };
}

/* As nn.MultiheadAttention: x (T, W) looks at memory (S, W), position t at s if maySee(t, s).

   part: {in_proj_weight, in_proj_bias, out_proj: {weight, bias}}
   -> {output (T, W), weights (T, S), the mean over the heads}. */
export function multiHeadAttention(x, memory, part, heads, maySee = everything) {
  const width = x.shape[1];
  const size = width / heads;
  const found = [];
  let mean = zeros(x.shape[0], memory.shape[0]);
  for (let head = 0; head < heads; head++) {
    const [query, keys, values] = [x, memory, memory].map((from, i) => {
      const start = i * width + head * size;
      const weight = rows(part.in_proj_weight, start, start + size);
      return linear(from, weight, rows(part.in_proj_bias, start, start + size));
    });
    const scores = scaled(linear(query, keys), 1 / Math.sqrt(size));
    const weights = softmax(scores, maySee);
    found.push(weightedMeans(weights, values));
    mean = add(mean, scaled(weights, 1 / heads));
  }
  const output = linear(besides(found), part.out_proj.weight, part.out_proj.bias);
  return { output, weights: mean };
}

/* How often a window fits into a length of pixels. */
function steps(length, kernel, stride, padding) {
  return Math.floor((length + 2 * padding - kernel) / stride) + 1;
}

/* x (C, H, W) -> its windows of kernel x kernel pixels, in reading order (P, C * kernel²). */
export function windows(x, kernel, stride, padding = 0) {
  const [channels, height, width] = x.shape;
  const down = steps(height, kernel, stride, padding);
  const across = steps(width, kernel, stride, padding);
  const out = zeros(down * across, channels * kernel * kernel);
  let place = 0;
  for (let top = -padding; top < down * stride - padding; top += stride) {
    for (let left = -padding; left < across * stride - padding; left += stride) {
      for (let c = 0; c < channels; c++) {
        for (let i = top; i < top + kernel; i++) {
          for (let j = left; j < left + kernel; j++, place++) {
            const inside = i >= 0 && i < height && j >= 0 && j < width;
            if (inside) out.data[place] = x.data[(c * height + i) * width + j];
          }
        }
      }
    }
  }
  return out;
}

/* x (C, H, W), weight (O, C, kernel, kernel), bias (O) -> (O, H', W'). */
export function conv2d(x, weight, bias, stride, padding) {
  const [size, channels, kernel] = weight.shape;
  const [height, width] = x.shape.slice(1).map((n) => steps(n, kernel, stride, padding));
  const flat = { shape: [size, channels * kernel * kernel], data: weight.data };
  const found = linear(windows(x, kernel, stride, padding), flat, bias);
  return { shape: [size, height, width], data: transpose(found).data };
}

// Recurrent cells of G gates. fromInput (G * H): what the token brings to the gates, W_ih x + b_ih.
// State: Float64Arrays h (H) and, in an LSTM, c (H). weight (G * H, H) is W_hh, bias (G * H) b_hh.

const sigmoid = (x) => 1 / (1 + Math.exp(-x));

/* fromInput (H) -> the new state {h}. */
export function rnnStep(fromInput, { h }, weight, bias) {
  return { h: product(h, weight, bias).map((value, i) => Math.tanh(fromInput[i] + value)) };
}

/* fromInput (3 H): reset, update, new -> the new state {h}. */
export function gruStep(fromInput, { h }, weight, bias) {
  const size = h.length;
  const gates = product(h, weight, bias);
  const next = new Float64Array(size);
  for (let i = 0, u = size, n = 2 * size; i < size; i++, u++, n++) {
    const reset = sigmoid(fromInput[i] + gates[i]);
    const update = sigmoid(fromInput[u] + gates[u]);
    next[i] = (1 - update) * Math.tanh(fromInput[n] + reset * gates[n]) + update * h[i];
  }
  return { h: next };
}

/* fromInput (4 H): input, forget, cell, output -> the new state {h, c}. */
export function lstmStep(fromInput, { h, c }, weight, bias) {
  const size = h.length;
  const gates = product(h, weight, bias);
  const next = { h: new Float64Array(size), c: new Float64Array(size) };
  for (let i = 0, f = size, g = 2 * size, o = 3 * size; i < size; i++, f++, g++, o++) {
    const input = sigmoid(fromInput[i] + gates[i]);
    const forget = sigmoid(fromInput[f] + gates[f]);
    const output = sigmoid(fromInput[o] + gates[o]);
    next.c[i] = forget * c[i] + input * Math.tanh(fromInput[g] + gates[g]);
    next.h[i] = output * Math.tanh(next.c[i]);
  }
  return next;
}

/* {"a.b": tensor, "a.c.0": tensor} -> {a: {b: tensor, c: {0: tensor}}}. */
export function nested(tensors) {
  const tree = {};
  for (const [name, tensor] of Object.entries(tensors)) {
    const path = name.split(".");
    const last = path.pop();
    let branch = tree;
    for (const step of path) branch = branch[step] ??= {};
    branch[last] = tensor;
  }
  return tree;
}
