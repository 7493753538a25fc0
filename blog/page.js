"use strict";

const root = document.documentElement;

// The switch of colours

function isDark() {
  const theme = root.dataset.theme;
  return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function label(button) {
  button.textContent = isDark() ? "Light" : "Dark";
  button.setAttribute("aria-label", `${button.textContent} colours`);
}

const themeSwitch = document.querySelector("button.theme");
themeSwitch.hidden = false;
label(themeSwitch);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => label(themeSwitch));
themeSwitch.addEventListener("click", () => {
  root.dataset.theme = isDark() ? "light" : "dark";
  label(themeSwitch);
  try {
    localStorage.setItem("reading-in-order:theme", root.dataset.theme);
  } catch {
    // Storage is forbidden: the choice lasts for this page.
  }
});

// Code that is copied

async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea"); // pages on plain http have no clipboard
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

for (const code of document.querySelectorAll("div.code")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.setAttribute("aria-live", "polite");
  button.addEventListener("click", async () => {
    await copy(code.querySelector("pre").textContent.trimEnd());
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
  code.prepend(button);
}

// Contents that follow the reading

const contents = document.querySelector("nav.contents details");

if (contents) {
  const wide = matchMedia("(min-width: 72rem)");
  const unfold = () => (contents.open = wide.matches);
  wide.addEventListener("change", unfold);
  unfold();

  const links = [...contents.querySelectorAll("a")];
  const headings = links.map((link) => document.getElementById(link.hash.slice(1)));
  const follow = () => {
    const atEnd = scrollY + innerHeight >= root.scrollHeight - 1; // where no heading gets higher
    const line = atEnd ? innerHeight / 4 : 40;
    const read = headings.filter((heading) => heading.getBoundingClientRect().top < line);
    links.forEach((link, i) => {
      if (i === read.length - 1) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    });
  };
  addEventListener("scroll", follow, { passive: true });
}

// What was left out of the first paint is laid out when there is time, before one gets there

const leftOut = [...document.querySelectorAll(".cell, .cell ~ .text")];

function layOut(deadline) {
  while (leftOut.length && deadline.timeRemaining() > 0) {
    const section = leftOut.shift();
    section.style.contentVisibility = "visible";
    section.getBoundingClientRect();
  }
  if (leftOut.length) requestIdleCallback(layOut);
}

window.requestIdleCallback?.(layOut); // Safari goes on as it began

// A link into a fold opens it, and paper has no folds

function openAround(element) {
  for (let fold = element?.closest("details"); fold; fold = fold.parentElement.closest("details"))
    fold.open = true;
}

const openTarget = () => openAround(document.getElementById(decodeURIComponent(location.hash.slice(1))));
addEventListener("hashchange", openTarget);
openTarget();
addEventListener("beforeprint", () => {
  for (const fold of document.querySelectorAll("main details")) fold.open = true;
});
