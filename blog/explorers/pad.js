// A pad to draw on with a mouse, a finger, a pen or the keyboard.

import { h } from "./element.js";

const WIDE = 300; // hundredths of the height, which is 100
const STEP = 3;
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

const svg = (name, attributes) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
};

// Calls drawn() whenever a stroke has ended or has been taken back.
export class Pad {
  constructor(drawn) {
    this.drawn = drawn;
    this.strokes = [];
    this.pen = [20, 50]; // of the keyboard
    this.outside = false; // whether the last stroke left the pad
    this.lines = svg("path", { class: "ink" });
    this.cursor = svg("circle", { class: "pen", r: 3 });
    this.sheet = svg("svg", { viewBox: `0 0 ${WIDE} 100`, "aria-hidden": true });
    this.sheet.append(this.lines, this.cursor);
    this.element = h("div", { className: "pad", tabIndex: 0, role: "application" }, this.sheet);
    this.element.setAttribute("aria-label", "Pad: arrow keys move the pen, space sets it down");
    this.element.addEventListener("pointerdown", (event) => this.down(event));
    this.element.addEventListener("pointermove", (event) => this.move(event));
    for (const end of ["pointerup", "pointercancel"])
      this.element.addEventListener(end, () => this.up());
    this.element.addEventListener("keydown", (event) => this.key(event));
    this.show();
  }

  at(event) {
    const box = this.sheet.getBoundingClientRect();
    return this.within([
      ((event.clientX - box.left) / box.width) * WIDE,
      ((event.clientY - box.top) / box.height) * 100,
    ]);
  }

  within([x, y]) {
    const inside = [Math.min(Math.max(x, 0), WIDE), Math.min(Math.max(y, 0), 100)];
    if (inside[0] !== x || inside[1] !== y) this.outside = true;
    return inside;
  }

  begin(point) {
    this.outside = false;
    this.stroke = [point];
    this.strokes.push(this.stroke);
  }

  down(event) {
    if (!event.isPrimary || event.button) return;
    this.up();
    this.element.setPointerCapture(event.pointerId);
    this.begin(this.at(event));
    this.show();
  }

  move(event) {
    if (!this.stroke || !event.isPrimary) return;
    for (const each of event.getCoalescedEvents?.() ?? [event]) this.stroke.push(this.at(each));
    this.show();
  }

  up() {
    if (!this.stroke) return;
    this.stroke = null;
    this.show();
    this.drawn();
  }

  key(event) {
    const arrow = ARROWS[event.key];
    if (arrow) {
      this.pen = this.within(this.pen.map((value, axis) => value + STEP * arrow[axis]));
      this.stroke?.push(this.pen);
    } else if (event.key === " ") {
      if (this.stroke) this.up();
      else this.begin(this.pen);
    } else return;
    event.preventDefault();
    this.show();
  }

  undo() {
    this.stroke = null;
    this.strokes.pop();
    this.show();
    this.drawn();
  }

  clear() {
    this.stroke = null;
    this.strokes = [];
    this.show();
  }

  show() {
    const lines = this.strokes.map((stroke) => `M${[...stroke, stroke.at(-1)].join("L")}`);
    this.lines.setAttribute("d", lines.join(""));
    this.cursor.setAttribute("cx", this.pen[0]);
    this.cursor.setAttribute("cy", this.pen[1]);
    this.cursor.classList.toggle("down", Boolean(this.stroke));
  }
}
