// What all explorers share: an element with a shadow root of its own, and work in small portions.

import { fromBase64, readSafetensors } from "./safetensors.js";

const NEAR = "150%"; // of the screen's height, above and below it: there an explorer begins
const PORTION = 12; // milliseconds of work, then the page may paint

// The first thing that a reader does with the page: before it, no weights are worth loading.
const signOfLife = new Promise((done) => {
  if (navigator.userActivation?.hasBeenActive || scrollY) done();
  for (const sign of ["scroll", "pointermove", "pointerdown", "keydown", "focusin"])
    addEventListener(sign, done, { once: true, passive: true, capture: true });
});

const pause = () => new Promise((resolve) => setTimeout(resolve));

function loaded(file) {
  return new Promise((resolve, reject) => {
    const script = h("script", { src: file });
    script.onload = resolve;
    script.onerror = () => reject(new Error(`The weights are missing: ${file} cannot be loaded.`));
    document.head.append(script);
  });
}

// Advance a generator for a portion of time.
function portionOf(work) {
  const start = performance.now();
  for (;;) {
    const step = work.next();
    const milliseconds = performance.now() - start;
    if (step.done || milliseconds > PORTION) return { ...step, milliseconds };
  }
}

// A new element: h("p", { className: "note" }, "text", child).
export function h(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key in element) element[key] = value;
    else element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

// An explorer builds its controls in start(tensors), from the weights that _explorer.py has put
// into the page, and shows errors by fail(error). What stands between its tags, a figure and a
// table, is folded away, or shown in its place where it cannot work: without scripts, on paper.
export class Explorer extends HTMLElement {
  connectedCallback() {
    if (this.shadowRoot) return;
    const whenNear = new IntersectionObserver(
      (entries) => {
        if (!entries.some((entry) => entry.isIntersecting)) return;
        whenNear.disconnect();
        signOfLife.then(() => this.begin());
      },
      { rootMargin: NEAR },
    );
    whenNear.observe(this);
  }

  // In one go once the weights are there, so that nothing moves before and little after.
  async begin() {
    const weights = await this.weights().catch((error) => error);
    const style = h("style", {}, STYLE);
    this.main = h("div", { className: "explorer", ariaBusy: "true" });
    this.message = h("p", { className: "message", role: "alert" });
    this.static = h(
      "details",
      { className: "static", hidden: !this.children.length },
      h("summary", {}, "As a figure and a table"),
      h("slot"),
    );
    this.static.style.visibility = "hidden"; // until its place is known
    this.attachShadow({ mode: "open" }).append(style, this.main, this.message, this.static);
    addEventListener("hashchange", () => this.unfold());
    this.attempt(() => {
      if (weights instanceof Error) throw weights;
      this.start(weights);
    });
    this.unfold();
  }

  // The tensors of the script that holds this explorer's weights, or names a file that fills it.
  async weights() {
    const script = document.querySelector(`script[data-weights="${this.localName}"]`);
    if (!script) throw new Error("The weights are missing: run the cell above again.");
    if (!script.textContent) await loaded(script.dataset.file);
    return readSafetensors(fromBase64(script.textContent));
  }

  // A link to the figure or the table opens the fold around it.
  unfold() {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target || !this.contains(target)) return;
    this.static.open = true;
    target.scrollIntoView();
  }

  fail(error) {
    this.message.textContent = error.message;
    this.atRest();
  }

  async attempt(work) {
    try {
      await work();
    } catch (error) {
      this.fail(error);
    }
  }

  // End what is being run, if anything is.
  stop() {
    this.run = undefined;
    this.atRest();
  }

  atRest() {
    this.main.ariaBusy = null;
    this.static.style.visibility = "";
  }

  // Run a generator to its end in portions, so that no frame waits for it. The newest run of an
  // explorer ends the one before. Resolves to what it returns, or to undefined if it was ended.
  async inPortions(work) {
    const run = (this.run = Symbol("run"));
    this.message.textContent = "";
    this.main.ariaBusy = "true";
    const portions = [];
    try {
      for (;;) {
        const { done, value, milliseconds } = portionOf(work);
        portions.push(milliseconds);
        this.portions = portions;
        if (done) return value;
        await pause();
        if (run !== this.run) return undefined;
      }
    } catch (error) {
      this.fail(error);
      return undefined;
    } finally {
      if (run === this.run) this.atRest();
    }
  }
}

// Run in JupyterLab again, a cell defines its element again: the first definition stays.
export function define(name, explorer) {
  if (!customElements.get(name)) customElements.define(name, explorer);
}
