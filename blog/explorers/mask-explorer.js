// Lesson 03: the causal mask, cell by cell, and what trained readers make of it.

import { choice, press, tick } from "./controls.js";
import { Explorer, define, h } from "./element.js";
import { blackOnWhite } from "./picture.js";
import { READ_END, READ_START, Reader, causal } from "./reader.js";
import { argmax, rows } from "./tensor.js";

const PLACES = [0, 1, 2, 3]; // of START and three digits, each to be answered by the next
const MOVED = 1e-6; // a logit that changes by more has moved
const MASKS = { causal, "all open": () => true, "only itself": (t, s) => t === s };
const READERS = { reader: "with the causal mask", unmasked: "without a mask" };
const NOTHING = "–";

const tokenName = (token) => ({ [READ_START]: "START", [READ_END]: "END" })[token] ?? `${token}`;
const isFuture = (t, s) => s > t;

// How far a logit has moved, in four characters at most.
function inShort(change) {
  if (change <= MOVED) return "0";
  return change < 0.01 ? "<.01" : change.toFixed(change < 10 ? 2 : 1);
}

// The composites to read, each {image, given, asked}: tokens given and to be answered.
function questionsOf({ composites, labels }) {
  if (!composites || !labels) throw new Error("The weights are damaged: no composites are there.");
  const row = (tensor, i) => rows(tensor, i, i + 1).data;
  return Array.from({ length: composites.shape[0] }, (_, i) => {
    const digits = [...row(labels, i)];
    const image = Float32Array.from(row(composites, i), (value) => value / 255);
    return { image, given: [READ_START, ...digits], asked: [...digits, READ_END] };
  });
}

// The reader of those tensors whose names begin with a prefix; it encodes each image once.
class SmallReader extends Reader {
  constructor(tensors, prefix) {
    const own = Object.entries(tensors).filter(([name]) => name.startsWith(prefix));
    const weights = own.map(([name, tensor]) => [name.slice(prefix.length), tensor]);
    super(Object.fromEntries(weights), { imageSize: tensors.composites.shape.slice(1) });
    this.memories = new Map();
  }

  memory({ image }) {
    if (!this.memories.has(image)) this.memories.set(image, this.encode(image));
    return this.memories.get(image);
  }
}

// The first position that sees none of the first count(t) tokens, or undefined.
const blindPosition = (sees, count) =>
  PLACES.find((t) => !PLACES.some((s) => s < count(t) && sees(t, s)));

// What the reader answers at each position when it is given the true tokens.
function taughtAnswers(reader, question, sees) {
  const { logits } = reader.decode(question.given, reader.memory(question), sees);
  return PLACES.map((t) => argmax(rows(logits, t, t + 1).data));
}

function* freeAnswers(reader, question, sees) {
  const written = [];
  for (const { token } of reader.read(reader.memory(question), sees)) {
    written.push(token);
    yield;
  }
  return written;
}

function farthest(one, other) {
  return one.reduce((most, value, i) => Math.max(most, Math.abs(value - other[i])), 0);
}

// How far a logit of position t moves at most when token s is, in turn, each digit: [t][s].
function* dependence(reader, question, sees) {
  const { given } = question;
  const memory = reader.memory(question);
  const before = reader.decode(given, memory, sees).logits;
  const most = PLACES.map(() => PLACES.map(() => 0));
  for (const s of PLACES) {
    for (let digit = 0; digit < 10; digit++) {
      const edited = given.map((token, place) => (place === s ? digit : token));
      const after = reader.decode(edited, memory, sees).logits;
      for (const t of PLACES) {
        const [old, now] = [before, after].map((logits) => rows(logits, t, t + 1).data);
        most[t][s] = Math.max(most[t][s], farthest(old, now));
      }
      yield;
    }
  }
  return most;
}

// A table of four positions (rows) by four tokens (columns). cell(t, s): what stands there.
function squareTable(caption, cell) {
  const tokens = PLACES.map(() => h("th", { scope: "col" }));
  const positions = PLACES.map(() => h("th", { scope: "row" }));
  const line = (t) =>
    PLACES.map((s) => h("td", { className: isFuture(t, s) ? "future" : "" }, cell(t, s)));
  const table = h(
    "table",
    { className: "square" },
    h("caption", {}, caption),
    h("thead", {}, h("tr", {}, h("td"), ...tokens)),
    h("tbody", {}, ...PLACES.map((t) => h("tr", {}, positions[t], ...line(t)))),
  );
  table.label = ({ given, asked }) => {
    PLACES.forEach((place) => {
      tokens[place].textContent = tokenName(given[place]);
      positions[place].textContent = `${tokenName(given[place])} → ${tokenName(asked[place])}`;
    });
  };
  return table;
}

// The arrow keys move among buttons [t][s].
const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

function moveFocus(event, buttons, t, s) {
  if (!(event.key in STEPS)) return;
  event.preventDefault();
  const [down, right] = STEPS[event.key];
  buttons[t + down]?.[s + right]?.focus();
}

// Of two counts of right numbers: whether they differ, and whether that is the future's doing.
function compared(taught, free, leaks) {
  if (free === null) return "Running freely, nothing can be counted under this mask.";
  if (taught !== free) {
    const counts = `${taught} numbers are right with a teacher, ${free} running freely`;
    return `${counts}: a gap, for in free running the future is not there yet.`;
  }
  const agreed = `With a teacher and running freely the same count of numbers is right, ${free}`;
  return leaks
    ? `${agreed}: answers depend on the future, and here it shows in no count.`
    : `${agreed}: no gap, and no answer depends on the future.`;
}

class MaskExplorer extends Explorer {
  start(tensors) {
    this.questions = questionsOf(tensors);
    const names = Object.keys(READERS);
    this.readers = new Map(names.map((name) => [name, new SmallReader(tensors, `${name}.`)]));
    this.mask = PLACES.map((t) => PLACES.map((s) => causal(t, s)));
    this.sees = (t, s) => this.mask[t][s];
    this.main.append(this.controls(), this.grids(), this.composite(), this.marks());
    this.changed();
  }

  controls() {
    const change = () => this.changed();
    this.which = choice("The reader was trained", READERS, "reader", change);
    const digits = ({ given }) => given.slice(1).join(" ");
    const options = this.questions.map((question, i) => `${i + 1}: ${digits(question)}`);
    this.chosen = choice("Composite", { ...options }, 0, change);
    this.exactly = tick("Show the largest change", false, () => this.showDependence());
    const presets = Object.keys(MASKS).map((name) => press(name, () => this.preset(MASKS[name])));
    const group = h("div", { className: "presets", role: "group", "aria-label": "Set the mask" });
    group.append(h("span", {}, "Set the mask"), ...presets);
    return h("div", { className: "controls" }, this.which, this.chosen, group, this.exactly);
  }

  grids() {
    this.buttons = PLACES.map((t) => PLACES.map((s) => this.toggle(t, s)));
    this.moves = PLACES.map((t) =>
      PLACES.map((s) => {
        return h("span", { className: "moves", "data-name": `moves-${t + 1}-${s + 1}` });
      }),
    );
    this.tables = [
      squareTable("The mask: may this position see this token?", (t, s) => this.buttons[t][s]),
      squareTable("Measured: do its logits move with this token?", (t, s) => this.moves[t][s]),
    ];
    this.leaks = h("p", { className: "note", "data-name": "leaks" });
    const legend = "✓ may see, – hidden; dashed: the future. Rows: token → its right answer.";
    return h(
      "div",
      { className: "side-by-side" },
      h("div", {}, this.tables[0], h("p", { className: "note" }, legend)),
      h("div", {}, this.tables[1], this.leaks),
    );
  }

  toggle(t, s) {
    const future = isFuture(t, s) ? ", the future" : "";
    const label = `position ${t + 1} may see token ${s + 1}${future}`;
    const button = press("", () => {
      this.mask[t][s] = !this.mask[t][s];
      this.changed();
    });
    button.setAttribute("aria-label", label);
    button.addEventListener("keydown", (event) => moveFocus(event, this.buttons, t, s));
    return button;
  }

  composite() {
    const [height, width] = this.readers.get("reader").imageSize;
    this.canvas = h("canvas", { width, height, className: "composite", role: "img" });
    this.lines = ["asked", "taught", "free"].map((name) =>
      PLACES.map((t) => h("td", { "data-name": `${name}-${t + 1}` })),
    );
    const names = ["label", "with a teacher", "running freely"];
    const table = h(
      "table",
      { className: "answers" },
      h("caption", {}, "What the reader writes under this mask; ✗ is wrong"),
      ...names.map((name, i) => h("tr", {}, h("th", { scope: "row" }, name), ...this.lines[i])),
    );
    return h("div", { className: "side-by-side" }, this.canvas, table);
  }

  marks() {
    const marks = [
      ["tokens", "tokens right with a teacher"],
      ["taught", "numbers right with a teacher"],
      ["free", "numbers right running freely, END included"],
    ];
    const list = h("dl", {});
    this.counts = marks.map(([name, text]) => {
      const count = h("dd", { "data-name": name });
      list.append(h("div", {}, h("dt", {}, text), count));
      return count;
    });
    this.said = h("p", { role: "status", "data-name": "said" });
    return h("div", { className: "marks" }, list, this.said);
  }

  preset(sees) {
    this.mask = PLACES.map((t) => PLACES.map((s) => sees(t, s)));
    this.changed();
  }

  changed() {
    this.reader = this.readers.get(this.which.read());
    this.question = this.questions[this.chosen.read()];
    this.tables.forEach((table) => table.label(this.question));
    this.showMask();
    this.showImage();
    this.inPortions(this.measure());
  }

  // Everything that depends on the mask. Without a number where a position sees nothing.
  *measure() {
    const blind = blindPosition(this.sees, () => PLACES.length);
    if (blind !== undefined) {
      this.forget();
      throw new Error(this.sightless(blind));
    }
    const late = blindPosition(this.sees, (t) => t + 1);
    this.most = yield* dependence(this.reader, this.question, this.sees);
    this.showDependence();
    yield* this.showAnswers(late === undefined);
    yield* this.showMarks(late === undefined);
    if (late !== undefined) throw new Error(this.tooEarly(late));
  }

  sightless(t) {
    return (
      `Position ${t + 1} (${tokenName(this.question.given[t])}) may see nothing, and a softmax ` +
      "over nothing is zero divided by zero: open a cell in its row."
    );
  }

  tooEarly(t) {
    return (
      `Running freely, position ${t + 1} (${tokenName(this.question.given[t])}) sees nothing: ` +
      "all that it may see comes later and is not written yet."
    );
  }

  forget() {
    this.most = null;
    this.showDependence();
    this.showTokens(1, []);
    this.showTokens(2, []);
    for (const text of [...this.counts, this.leaks]) text.textContent = NOTHING;
    this.said.textContent = "";
  }

  showMask() {
    PLACES.forEach((t) =>
      PLACES.forEach((s) => {
        this.buttons[t][s].textContent = this.mask[t][s] ? "✓" : "–";
        this.buttons[t][s].setAttribute("aria-pressed", this.mask[t][s]);
      }),
    );
  }

  showImage() {
    const { image, asked } = this.question;
    const { width, height } = this.canvas;
    this.canvas.getContext("2d").putImageData(blackOnWhite(image, width, height), 0, 0);
    const digits = asked.slice(0, -1).join(", ");
    this.canvas.setAttribute("aria-label", `Three handwritten digits side by side: ${digits}`);
    this.showTokens(0, asked);
  }

  showDependence() {
    PLACES.forEach((t) => PLACES.forEach((s) => this.showMove(this.moves[t][s], t, s)));
    if (!this.most) return;
    const future = PLACES.flatMap((t) => this.most[t].filter((_, s) => isFuture(t, s)));
    this.leaking = future.filter((change) => change > MOVED).length;
    const where = `of the ${future.length} places of the future`;
    this.leaks.textContent = `Logits move in ${this.leaking} ${where} (dashed).`;
  }

  showMove(cell, t, s) {
    const change = this.most?.[t][s];
    const moves = change > MOVED;
    const word = moves ? "moves" : "same";
    cell.textContent = !this.most ? NOTHING : this.exactly.read() ? inShort(change) : word;
    cell.classList.toggle("moved", moves);
    cell.dataset.value = change ?? "";
  }

  showTokens(line, tokens) {
    const { asked } = this.question;
    this.lines[line].forEach((cell, t) => {
      const token = tokens[t];
      cell.textContent = token === undefined ? NOTHING : tokenName(token);
      const wrong = token !== undefined && token !== asked[t];
      cell.classList.toggle("wrong", wrong);
      if (wrong) cell.append(h("span", { role: "img", "aria-label": "wrong" }, " ✗"));
    });
  }

  *showAnswers(freely) {
    this.showTokens(1, taughtAnswers(this.reader, this.question, this.sees));
    const written = freely ? yield* freeAnswers(this.reader, this.question, this.sees) : [];
    this.showTokens(2, written);
  }

  // How many tokens and numbers of all composites are right.
  *showMarks(freely) {
    let [tokens, taught, free] = [0, 0, 0];
    for (const question of this.questions) {
      const { asked } = question;
      const right = taughtAnswers(this.reader, question, this.sees);
      const count = right.filter((token, t) => token === asked[t]).length;
      tokens += count;
      taught += count === asked.length;
      yield;
      if (!freely) continue;
      const written = yield* freeAnswers(this.reader, question, this.sees);
      free += written.join() === asked.join();
    }
    const numbers = this.questions.length;
    this.showCount(0, tokens, PLACES.length * numbers);
    this.showCount(1, taught, numbers);
    if (freely) this.showCount(2, free, numbers);
    else this.counts[2].textContent = NOTHING;
    this.said.textContent = compared(taught, freely ? free : null, this.leaking > 0);
  }

  showCount(place, right, all) {
    this.counts[place].textContent = `${right} of ${all}`;
    this.counts[place].dataset.value = right;
  }
}

define("mask-explorer", MaskExplorer);
