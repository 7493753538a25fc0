// The reader of lesson 05 reads what one draws: token by token, with what it looks at.

import { press } from "./controls.js";
import { imageOf } from "./drawing.js";
import { Explorer, define, h } from "./element.js";
import { Pad } from "./pad.js";
import { blackOnWhite } from "./picture.js";
import { READ_END, Reader } from "./reader.js";

const HEIGHT = 28;
const WIDTH = 140;
const STRIDES = [2, 2, 2, 2];
const ACROSS = [0, ...Array.from({ length: 8 }, (_, i) => 8 + 16 * i), WIDTH]; // the grid's cells:
const DOWN = [0, 8, HEIGHT]; // what is nearest to each of its vectors
const FULL_GLOW = 0.5; // the attention that is drawn as green as it gets
const HOW =
  "Draw one to five digits, with gaps between them. As MNIST's were, each is scaled to 20 pixels " +
  "and its centre of mass is brought to the middle.";
const NAMES = [..."0123456789", "START", "END"];
const SHOWN = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, READ_END];

const percent = (share) => `${(100 * share).toFixed(1)} %`;

// An image (28 x 140) with black ink on white paper.
function paperOf(image) {
  const paper = new OffscreenCanvas(WIDTH, HEIGHT);
  paper.getContext("2d").putImageData(blackOnWhite(image, WIDTH, HEIGHT), 0, 0);
  return paper;
}

// The paper under the attention (2 x 9) on it.
function picture(paper, attention, label) {
  const canvas = h("canvas", { width: 4 * WIDTH, height: 4 * HEIGHT, role: "img" });
  canvas.setAttribute("aria-label", label);
  const context = canvas.getContext("2d");
  context.scale(4, 4);
  context.imageSmoothingEnabled = false;
  context.drawImage(paper, 0, 0);
  attention.forEach((share, i) => {
    const [row, column] = [Math.floor(i / 9), i % 9];
    const [x, y] = [ACROSS[column], DOWN[row]];
    context.fillStyle = `rgb(0 158 115 / ${0.75 * Math.min(1, share / FULL_GLOW)})`;
    context.fillRect(x, y, ACROSS[column + 1] - x, DOWN[row + 1] - y);
  });
  return canvas;
}

// The probabilities of the digits and of END as bars; the likeliest three are said.
function bars(probabilities) {
  const likeliest = [...SHOWN].sort((a, b) => probabilities[b] - probabilities[a]).slice(0, 3);
  const said = likeliest.map((token) => `${NAMES[token]} ${percent(probabilities[token])}`);
  const chart = h("div", { className: "probabilities", role: "img" });
  chart.setAttribute("aria-label", `Probabilities: ${said.join(", ")}`);
  for (const token of SHOWN) {
    const bar = h("i");
    bar.style.height = `${100 * probabilities[token]}%`;
    const column = h("span", {}, h("b", {}, bar), NAMES[token]);
    column.dataset.value = probabilities[token];
    chart.append(column);
  }
  return chart;
}

class LiveReader extends Explorer {
  start({ numbers, labels, hard, hardLabels, ...weights }) {
    this.reader = new Reader(weights, { strides: STRIDES, imageSize: [HEIGHT, WIDTH] });
    this.numbers = { images: numbers, labels, next: 0 };
    this.hard = { images: hard, labels: hardLabels, next: 0 };
    this.pad = new Pad(() => this.readDrawing());
    this.answer = h("p", { className: "answer", role: "status" });
    this.steps = h("ol", { className: "steps" });
    const buttons = [
      press("Undo", () => this.pad.undo()),
      press("Clear", () => this.clear()),
      press("A test number", () => this.readNext(this.numbers)),
      press("Stump me", () => this.readNext(this.hard)),
    ];
    this.main.append(
      h("p", { className: "note" }, HOW),
      this.pad.element,
      h("div", { className: "controls" }, ...buttons),
      this.answer,
      this.steps,
    );
    this.readNext(this.numbers);
  }

  clear() {
    this.pad.clear();
    this.readDrawing();
  }

  // The next of some stored test numbers.
  readNext(stored) {
    const [count, pixels] = [stored.images.shape[0], HEIGHT * WIDTH];
    const i = stored.next++ % count;
    const image = Float32Array.from(
      stored.images.data.subarray(i * pixels, (i + 1) * pixels),
      (value) => value / 255,
    );
    const longest = stored.labels.shape[1];
    const label = stored.labels.data.subarray(i * longest, (i + 1) * longest);
    this.pad.clear();
    this.read(image, `The test number ${[...label].filter((digit) => digit < 10).join(" ")}`);
  }

  readDrawing() {
    this.stop();
    this.answer.textContent = "";
    this.steps.replaceChildren();
    this.attempt(() => this.read(imageOf(this.pad.strokes, WIDTH), "Your drawing"));
  }

  async read(image, what) {
    const tokens = await this.inPortions(this.reading(image));
    if (!tokens) return;
    const ended = tokens.at(-1) === READ_END;
    const written = tokens.map((token) => NAMES[token]).join(" ");
    const stop = ended ? "and stops" : "and has no place for more";
    this.answer.textContent = `${what}: the reader writes ${written}, ${stop}.`;
    if (this.pad.outside && this.pad.strokes.length)
      this.fail(new Error("The pen left the pad: what lay outside was not read."));
  }

  // Encode, then write token by token -> the tokens.
  *reading(image) {
    const memory = yield* this.reader.encoding(image);
    const paper = paperOf(image);
    this.steps.replaceChildren();
    const tokens = [];
    for (const { token, probabilities, attention } of this.reader.read(memory)) {
      tokens.push(token);
      this.steps.append(this.step(paper, token, probabilities, attention));
      yield;
    }
    return tokens;
  }

  step(paper, token, probabilities, attention) {
    const name = NAMES[token];
    const written = h("strong", {}, name, h("small", {}, percent(probabilities[token])));
    written.dataset.value = probabilities[token];
    const seen = picture(paper, attention, `Where the reader looks as it writes ${name}`);
    return h("li", {}, written, seen, bars(probabilities));
  }
}

define("live-reader", LiveReader);
