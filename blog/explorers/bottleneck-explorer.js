// How much of a string reaches the vector between an encoder and a decoder. Lessons 06 and 07.

import { choice, field, slider, tick } from "./controls.js";
import { Explorer, define, h } from "./element.js";
import { COPY_END, COPY_ZERO, Copier, Encoder } from "./seq2seq.js";
import { lastThirdOverFirst, parameterCount, untrainedEncoder } from "./seq2seq.js";

const FEWEST_DIGITS = 3;
const MOST_DIGITS = 40;
const MOST_TRAINED_DIGITS = 20;
const PI_DIGITS = "3141592653589793238462643383279502884197"; // a longer string goes on with them

const RECURRENT_NAMES = [
  "embed.weight",
  "rnn.weight_ih_l0",
  "rnn.weight_hh_l0",
  "rnn.bias_ih_l0",
  "rnn.bias_hh_l0",
];
const COPIER_NAMES = [
  ...RECURRENT_NAMES.map((name) => `encoder.${name}`),
  ...RECURRENT_NAMES.map((name) => `decoder.${name}`),
  "decoder.head.weight",
  "decoder.head.bias",
];
const NOISE_NAMES = ["embed", "input", "recurrent", "biasInput", "biasRecurrent"];

const KEEPING_GATES = { RNN: "Update", GRU: "Update", LSTM: "Forget" };

const WITHOUT_BREAK = 8e6; // multiplications: less than a frame of the screen takes

const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";

const threeFigures = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 3 });
const wholeNumber = new Intl.NumberFormat("en-US");

/* The tensors PREFIX.NAME as {NAME: tensor}. */
function tensorsOf(tensors, prefix, names) {
  const found = {};
  for (const name of names) {
    found[name] = tensors[`${prefix}.${name}`];
    if (!found[name]) throw new Error(`The weights are damaged: ${prefix}.${name} is missing.`);
  }
  return found;
}

/* What was typed -> its digits. */
function readDigits(text) {
  const digits = text.replace(/\s/g, "");
  const [foreign] = digits.match(/[^0-9]/u) ?? [];
  if (foreign) throw new Error(`“${foreign}” is no digit: use 0 to 9.`);
  const count = digits.length;
  if (count < FEWEST_DIGITS || count > MOST_DIGITS) {
    const given = count === 1 ? "This is 1 digit" : `These are ${count} digits`;
    throw new Error(`${given}: give ${FEWEST_DIGITS} to ${MOST_DIGITS}.`);
  }
  return digits;
}

function tokenName(token) {
  return ["PAD", "START", "END"][token] ?? String(token - COPY_ZERO);
}

/* A generator: it measures what a network does with digits, with a break now and then. */
function* throughNetwork({ network, ...about }, digits) {
  const tokens = [...digits].map((digit) => COPY_ZERO + Number(digit));
  const products = about.tensors["encoder.rnn.weight_hh_l0"].data.length; // in one step of the cell
  const bars = [];
  let done = 0;
  for (const bar of network.influence(tokens)) {
    bars.push(bar);
    done += (tokens.length - bars.length) * products;
    if (done < WITHOUT_BREAK) continue;
    done = 0;
    yield;
  }
  const written = about.trained ? network.write(tokens, tokens.length + 1) : null;
  return { ...about, digits, bars, written, targets: [...tokens, COPY_END] };
}

function powerOfTen(exponent) {
  const digits = [...String(Math.abs(exponent))].map((digit) => SUPERSCRIPTS[digit]);
  return `10${exponent < 0 ? "⁻" : ""}${digits.join("")}`;
}

function nameOfShape(shape) {
  return shape.join("\u00a0×\u00a0");
}

/* Bars -> their heights in per cent, the two ends of the scale, and how many parts it has. */
function scaleOf(bars, logarithmic) {
  const largest = Math.max(...bars);
  if (!logarithmic) {
    const heights = bars.map((bar) => (100 * bar) / largest);
    return { heights, ends: ["0", largest.toPrecision(3)], decades: 1 };
  }
  const smallest = Math.min(...bars.filter((bar) => bar > 0));
  const top = Math.ceil(Math.log10(largest));
  const bottom = Math.min(Math.floor(Math.log10(smallest)), top - 1);
  const decades = top - bottom;
  const height = (bar) => Math.max(0, (100 * (Math.log10(bar) - bottom)) / decades);
  return { heights: bars.map(height), ends: [bottom, top].map(powerOfTen), decades };
}

/* A row of spans, one for each digit and one for END. */
function digitCells(className, count, fill) {
  return Array.from({ length: count }, (_, i) => {
    const span = h("span", { className });
    span.classList.toggle("untrained", i === MOST_TRAINED_DIGITS && i < count - 1);
    fill(span, i);
    return span;
  });
}

function digitBars(className, count, heights) {
  return digitCells(className, count, (span, i) => {
    if (i < heights.length) span.append(h("i", { style: `height: ${heights[i].toFixed(2)}%` }));
  });
}

/* A number that is shown, with its name and all its figures. */
function shownNumber(name, value, text) {
  return h("b", { "data-name": name, "data-value": value }, text);
}

/* The same in a table, or a dash where there is none. */
function numberInTable(name, value, textOf) {
  if (value === undefined) return h("td", {}, "–");
  return h("td", { "data-name": name, "data-value": value }, textOf(value));
}

class BottleneckExplorer extends Explorer {
  start(tensors) {
    this.noise = tensorsOf(tensors, "noise", NOISE_NAMES);
    this.copiers = {
      RNN: tensorsOf(tensors, "copier-rnn", COPIER_NAMES),
      GRU: tensorsOf(tensors, "copier-gru", COPIER_NAMES),
      LSTM: tensorsOf(tensors, "copier-lstm", COPIER_NAMES),
      attention: tensorsOf(tensors, "copier-gru-attention", [
        ...COPIER_NAMES,
        "decoder.score.project.weight",
      ]),
    };
    this.digits = readDigits(this.getAttribute("digits") ?? "");
    this.controls = this.makeControls();
    this.reasons = h("p", { className: "note reasons" });
    this.said = h("p", { className: "said", role: "status" });
    this.columns = h("div", { className: "columns", role: "img" });
    this.facts = h("dl", { className: "facts" });
    this.numbers = this.makeNumbers();
    const strip = h(
      "div",
      { className: "strip", tabIndex: 0, role: "region", "aria-label": "Digit by digit" },
      this.columns,
    );
    const controls = h("div", { className: "controls level" }, ...Object.values(this.controls));
    const remarks = h("div", {}, this.reasons, this.message);
    this.main.append(controls, remarks, this.said, strip, this.facts, this.numbers);
    this.changed();
  }

  makeControls() {
    const changed = () => this.changed();
    const controls = {
      digits: field("Digits, 3 to 40", this.digits, changed),
      length: slider(
        "Length",
        { min: FEWEST_DIGITS, max: MOST_DIGITS, value: this.digits.length },
        () => this.lengthChanged(),
      ),
      weights: choice(
        "Weights",
        { untrained: "untrained", trained: "trained" },
        "untrained",
        changed,
      ),
      cell: choice("Cell", { RNN: "RNN", GRU: "GRU", LSTM: "LSTM" }, "GRU", changed),
      size: choice(
        "Hidden size H",
        { 8: "8", 16: "16", 32: "32", 64: "64", 96: "96", 128: "128" },
        "64",
        changed,
      ),
      bias: slider(
        "Update gate bias",
        { min: 0, max: 4, step: 0.5, value: 0, name: (bias) => `+${bias.toFixed(1)}` },
        changed,
      ),
      attention: tick("Attention", false, changed),
      step: slider("Decoder step", { min: 1, max: 21, value: 1 }, () => this.stepChanged()),
      logarithmic: tick("Logarithmic scale", false, () => this.draw()),
    };
    controls.digits.set({ inputMode: "numeric" });
    controls.digits.classList.add("wide");
    controls.length.append(h("small", { className: "trained" }, "1 to 20: trained"));
    return controls;
  }

  makeNumbers() {
    const numbers = h("details", {}, h("summary", {}, "All numbers"));
    this.rows = h("div", {
      className: "strip",
      tabIndex: 0,
      role: "region",
      "aria-label": "All numbers",
    });
    numbers.append(this.rows);
    numbers.addEventListener("toggle", () => this.result && this.drawNumbers());
    return numbers;
  }

  lengthChanged() {
    const length = this.controls.length.read();
    this.digits = this.digits.slice(0, length) + PI_DIGITS.slice(this.digits.length, length);
    this.controls.digits.set({ value: this.digits });
    this.changed();
  }

  stepChanged() {
    if (!this.result) return;
    this.draw();
    this.said.textContent = this.aboutStep();
  }

  // The string or the network is another one.
  async changed() {
    this.problem = null;
    try {
      this.digits = readDigits(this.controls.digits.read());
      this.controls.length.set({ value: this.digits.length });
    } catch (error) {
      this.problem = new Error(`${error.message} What is shown is still of ${this.digits}.`);
    }
    this.controls.digits.set({ ariaInvalid: String(this.problem !== null) });
    this.enable();
    const working = this.inPortions(this.measured());
    const { run } = this;
    const result = await working;
    if (run !== this.run) return;
    if (this.problem) this.fail(this.problem);
    if (!result) return;
    this.result = result;
    if (result.written) this.controls.step.set({ max: result.written.tokens.length });
    this.draw();
    this.said.textContent = this.aboutInfluence();
  }

  *measured() {
    return yield* throughNetwork(this.chosenNetwork(), this.digits);
  }

  chosenNetwork() {
    const cell = this.controls.cell.read();
    const trained = this.isTrained();
    const attention = this.hasAttention();
    const tensors = trained
      ? this.copiers[attention ? "attention" : cell]
      : untrainedEncoder(
          this.noise,
          cell,
          Number(this.controls.size.read()),
          this.controls.bias.read(),
        );
    const network = trained ? new Copier(tensors, cell, attention) : new Encoder(tensors, cell);
    const size = tensors["encoder.rnn.weight_hh_l0"].shape[1];
    return { network, tensors, cell, trained, attention, size };
  }

  isTrained() {
    return this.controls.weights.read() === "trained";
  }

  hasAttention() {
    const { cell, attention } = this.controls;
    return this.isTrained() && cell.read() === "GRU" && attention.read();
  }

  // Which controls apply, and why the others do not.
  enable() {
    const { size, bias, attention, step } = this.controls;
    const trained = this.isTrained();
    const cell = this.controls.cell.read();
    bias.querySelector("span").textContent = `${KEEPING_GATES[cell]} gate bias `;
    size.set({ disabled: trained });
    bias.set({ disabled: trained || cell === "RNN" });
    attention.set({ disabled: !trained || cell !== "GRU" });
    step.set({ disabled: !trained });
    const reasons = trained
      ? ["Size and gate bias are those of the training."]
      : ["Attention and decoder step need a trained decoder: an untrained one writes noise."];
    if (!trained && cell === "RNN") reasons.push("An RNN has no gate to bias.");
    if (trained && cell !== "GRU") reasons.push("Attention was trained with the GRU only.");
    this.reasons.textContent = reasons.join(" ");
  }

  draw() {
    if (!this.result) return;
    this.drawColumns();
    this.drawFacts();
    this.drawNumbers();
  }

  drawColumns() {
    const { digits, bars, written, targets } = this.result;
    const { heights, ends, decades } = scaleOf(bars, this.controls.logarithmic.read());
    const count = digits.length + 1;
    const looks = this.attentionOfStep();
    const step = this.controls.step.read() - 1;
    this.columns.style.setProperty("--count", count);
    this.columns.style.setProperty("--decades", decades);
    this.columns.ariaLabel =
      `Influence of ${digits.length} digits, from ${bars[0].toPrecision(3)} for the first ` +
      `to ${bars.at(-1).toPrecision(3)} for the last.`;
    this.columns.replaceChildren(
      h("p", {}, this.captionOfInfluence(ends)),
      ...digitBars("up", count, heights),
      ...digitCells("read", count, (span, i) => (span.textContent = digits[i] ?? "")),
      ...digitBars("down", count, looks.map((weight) => 100 * weight)),
      h("p", {}, this.captionOfAttention()),
      h("p", {}, this.captionOfCopy()),
      ...digitCells("written", count, (span, i) => {
        if (i >= (written?.tokens.length ?? 0)) return;
        span.textContent = tokenName(written.tokens[i])[0];
        span.classList.toggle("wrong", written.tokens[i] !== targets[i]);
        span.classList.toggle("step", i === step);
      }),
    );
  }

  captionOfInfluence(ends) {
    const beyond = this.result.digits.length > MOST_TRAINED_DIGITS;
    const mark = beyond ? ` Dashed: ${MOST_TRAINED_DIGITS} digits, the longest in training.` : "";
    return (
      `Influence, ${ends.join(" to ")}: how far the final state moves when this digit’s ` +
      `embedding is negated.${mark}`
    );
  }

  captionOfAttention() {
    if (this.result.attention) {
      return "Attention of the chosen step, 0 to 1: how much of each state it takes.";
    }
    return "Attention is off: the decoder starts from the final state and sees no other.";
  }

  captionOfCopy() {
    const { trained } = this.result;
    if (!trained) return "Written back is noise, not shown: this decoder is untrained.";
    return "Written back, E for END. Filled: wrong at this place. Framed: the chosen step.";
  }

  // The weights of the chosen step, or [].
  attentionOfStep() {
    const { attention, written, digits } = this.result;
    if (!attention) return [];
    const start = (this.controls.step.read() - 1) * digits.length;
    return Array.from(written.attention.data.subarray(start, start + digits.length));
  }

  aboutInfluence() {
    const { digits, bars, trained, cell, size, attention } = this.result;
    const ratio = this.ratioText(lastThirdOverFirst(bars));
    return [
      trained ? `Trained ${cell}` : `Untrained ${cell}`,
      attention ? " with attention" : "",
      `, H = ${size}: the last third counts ${ratio} times as much as the first`,
      trained ? `, and ${this.right()} of ${digits.length} digits come back right` : "",
      ".",
    ].join("");
  }

  aboutStep() {
    const { written, targets } = this.result;
    const step = this.controls.step.read();
    const [is, should] = [written.tokens, targets].map((tokens) => tokenName(tokens[step - 1]));
    const verdict = is === should ? "right" : `wrong: it should be ${should}`;
    return `Step ${step} of ${written.tokens.length} writes ${is}, ${verdict}.`;
  }

  ratioText(ratio) {
    return Number.isFinite(ratio) ? threeFigures.format(ratio) : "more than can be computed";
  }

  right() {
    const { written, targets, digits } = this.result;
    return [...digits].filter((_, i) => written.tokens[i] === targets[i]).length;
  }

  drawFacts() {
    const facts = {
      "Last third over first": this.factOfThirds(),
      "Crosses to the decoder": this.factOfChannel(),
      "Written back": this.factOfCopy(),
      "Chosen step": this.factOfStep(),
      Shapes: this.factOfShapes(),
      Parameters: this.factOfParameters(),
    };
    const rows = Object.entries(facts).flatMap(([term, parts]) => [
      h("dt", {}, term),
      h("dd", {}, ...parts),
    ]);
    this.facts.replaceChildren(...rows);
  }

  factOfThirds() {
    const { bars } = this.result;
    const ratio = lastThirdOverFirst(bars);
    const third = Math.floor(bars.length / 3);
    const means = third === 1 ? "influence of 1 digit" : `mean influence of ${third} digits`;
    return [
      shownNumber("ratio", ratio, this.ratioText(ratio)),
      ` (${means} each; at 1 all count alike)`,
    ];
  }

  factOfChannel() {
    const { digits, size, cell, attention } = this.result;
    const own = cell === "LSTM" ? 2 * size : size;
    const all = digits.length * size;
    const channel = shownNumber("channel", own, wholeNumber.format(own));
    const memory = shownNumber("memory", all, wholeNumber.format(all));
    const inState = cell === "LSTM" ? " (two vectors of H)" : " (H)";
    const inStates = ` (n × H = ${nameOfShape([digits.length, size])})`;
    return attention
      ? [memory, " numbers", inStates, "; without attention ", channel, inState]
      : [channel, " numbers", inState, "; all states: ", memory, inStates];
  }

  factOfCopy() {
    const { trained, written, digits } = this.result;
    if (!trained) return ["not shown"];
    const text = written.tokens.map(tokenName).join("").replace("END", " END");
    const right = this.right();
    return [
      h("b", { "data-name": "written", "data-value": written.tokens.join(" ") }, text),
      written.ended ? "; " : ", no END; ",
      shownNumber("right", right, `${right} of ${digits.length}`),
      " digits right",
    ];
  }

  factOfStep() {
    if (!this.result.trained) return ["none"];
    if (!this.result.attention) return [this.aboutStep()];
    const looks = this.attentionOfStep();
    const sum = looks.reduce((total, weight) => total + weight, 0);
    const most = looks.indexOf(Math.max(...looks));
    return [
      `${this.aboutStep()} Attention to digit ${most + 1}: `,
      shownNumber("attention-highest", looks[most], looks[most].toFixed(2)),
      ", to all: ",
      shownNumber("attention-sum", sum, sum.toFixed(3)),
    ];
  }

  factOfShapes() {
    const { tensors, digits, size } = this.result;
    const shape = (name) => nameOfShape(tensors[`encoder.${name}`].shape);
    return [
      `embeddings ${shape("embed.weight")}, weights ${shape("rnn.weight_ih_l0")} and `,
      `${shape("rnn.weight_hh_l0")}, states ${nameOfShape([digits.length, size])}`,
    ];
  }

  factOfParameters() {
    const { tensors, trained } = this.result;
    const isOfEncoder = ([name]) => name.startsWith("encoder.");
    const encoder = Object.fromEntries(Object.entries(tensors).filter(isOfEncoder));
    const counted = (name, some) => {
      const count = parameterCount(some);
      return shownNumber(name, count, wholeNumber.format(count));
    };
    return [
      "encoder ",
      counted("encoder-parameters", encoder),
      ...(trained ? [", with decoder ", counted("parameters", tensors)] : []),
    ];
  }

  drawNumbers() {
    if (!this.numbers.open) return;
    const { bars, written, targets } = this.result;
    const looks = this.attentionOfStep();
    const heads = ["place", "read", "influence", "attention", "written"];
    const row = (target, i) =>
      h(
        "tr",
        {},
        h("th", { scope: "row" }, i + 1),
        h("td", {}, tokenName(target)),
        numberInTable("influence", bars[i], (bar) => bar.toPrecision(3)),
        numberInTable("attention", looks[i], (weight) => weight.toFixed(3)),
        numberInTable("written", written?.tokens[i], (token) =>
          token === target ? tokenName(token) : `${tokenName(token)} (wrong)`,
        ),
      );
    this.rows.replaceChildren(
      h(
        "table",
        {},
        h("thead", {}, h("tr", {}, ...heads.map((head) => h("th", { scope: "col" }, head)))),
        h("tbody", {}, ...targets.map(row)),
      ),
    );
  }
}

define("bottleneck-explorer", BottleneckExplorer);
