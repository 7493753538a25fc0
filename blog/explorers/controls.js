// The controls of explorers. Each returns an element; `read` tells what is chosen.

import { h } from "./element.js";

// A slider with its value beside it.
export function slider(label, { min, max, step = 1, value, name = String }, changed) {
  const input = h("input", { type: "range", min, max, step, value });
  input.setAttribute("aria-valuetext", name(value));
  const shown = h("span", { className: "value", ariaHidden: "true" }, name(value));
  input.addEventListener("input", () => {
    shown.textContent = name(Number(input.value));
    input.setAttribute("aria-valuetext", shown.textContent);
    changed();
  });
  const control = h("label", { className: "control" }, h("span", {}, label, " "), shown, input);
  control.read = () => Number(input.value);
  control.set = (properties) => {
    Object.assign(input, properties);
    shown.textContent = name(Number(input.value));
    input.setAttribute("aria-valuetext", shown.textContent);
  };
  return control;
}

// A line of text to type.
export function field(label, value, changed) {
  const input = h("input", { type: "text", value, autocomplete: "off", spellcheck: false });
  input.addEventListener("input", changed);
  const control = h("label", { className: "control" }, h("span", {}, label), input);
  control.read = () => input.value;
  control.set = (properties) => Object.assign(input, properties);
  return control;
}

// One of a few: { value: text }.
export function choice(label, options, chosen, changed) {
  const select = h("select", {});
  for (const [value, text] of Object.entries(options)) select.append(h("option", { value }, text));
  select.value = chosen;
  select.addEventListener("change", changed);
  const control = h("label", { className: "control" }, h("span", {}, label), select);
  control.read = () => select.value;
  control.set = (properties) => Object.assign(select, properties);
  return control;
}

// On or off.
export function tick(label, checked, changed) {
  const input = h("input", { type: "checkbox", checked });
  input.addEventListener("change", changed);
  const control = h("label", { className: "control tick" }, input, h("span", {}, label));
  control.read = () => input.checked;
  control.set = (properties) => Object.assign(input, properties);
  return control;
}

export function press(label, pressed) {
  const button = h("button", { type: "button" }, label);
  button.addEventListener("click", pressed);
  return button;
}
