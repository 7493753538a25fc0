// What the tests measure in a page.

const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));

const describe = (element) => {
  const name = element.localName + (element.id ? `#${element.id}` : "");
  const classes = [...element.classList].map((one) => `.${one}`).join("");
  return `${name}${classes} ${element.textContent.trim().slice(0, 40)}`.trim();
};

// All elements that match, in the order of the page, those of explorers' shadow roots too.
const all = (selector, root = document) =>
  [...root.querySelectorAll("*")].flatMap((element) => [
    ...(element.matches(selector) ? [element] : []),
    ...(element.shadowRoot ? all(selector, element.shadowRoot) : []),
  ]);
const parentOf = (element) => element.parentElement ?? element.getRootNode().host ?? null;

const openFolds = () => all("details").forEach((fold) => (fold.open = true));

// Explorers begin when one comes near; here they all do, and come to rest.
const beginExplorers = async () => {
  const explorers = [...document.querySelectorAll("main *")].filter((one) => one.begin);
  for (const explorer of explorers) {
    explorer.scrollIntoView();
    while (!explorer.main || explorer.main.ariaBusy) await frame();
  }
  scrollTo(0, 0);
  document.body.tabIndex = -1; // Tab begins at the top again
  document.body.focus();
  document.body.removeAttribute("tabindex");
};

const shown = (element) => element.checkVisibility({ visibilityProperty: true });

// Red, green, blue and alpha of any CSS colour.
const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
const known = {};
const rgba = (colour) => {
  if (!known[colour]) {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, alpha] = canvas.getImageData(0, 0, 1, 1).data;
    known[colour] = [r, g, b, alpha / 255];
  }
  return known[colour];
};

const paperBehind = (element) => {
  for (let at = element; at; at = parentOf(at)) {
    const colour = rgba(getComputedStyle(at).backgroundColor);
    if (colour[3] === 1) return colour;
  }
  return [255, 255, 255, 1];
};

// The contrast ratio of WCAG 2.
const luminance = ([r, g, b]) => {
  const [R, G, B] = [r, g, b].map((value) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * R + 0.7152 * G + 0.0722 * B;
};
const contrast = (one, other) => {
  const [light, dark] = [luminance(one), luminance(other)].sort((a, b) => b - a);
  return (light + 0.05) / (dark + 0.05);
};

// {token class: lowest contrast of its text on what is behind it}
const tokenContrast = () => {
  const lowest = {};
  for (const token of document.querySelectorAll(".highlight pre, .highlight span")) {
    const kind = token.className || token.localName;
    if (lowest[kind] === undefined) {
      lowest[kind] = contrast(rgba(getComputedStyle(token).color), paperBehind(token));
    }
  }
  return lowest;
};

const layoutShift = () =>
  new Promise((done) => {
    let sum = 0;
    const observer = new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) if (!entry.hadRecentInput) sum += entry.value;
    });
    observer.observe({ type: "layout-shift", buffered: true });
    setTimeout(() => done(sum), 100);
  });

// As a reader does, who has seen the top of the page: by then all is laid out.
const scrollThrough = async () => {
  for (let tries = 0; tries < 500 && leftOut.length; tries++) await frame();
  for (let y = 0; y < document.documentElement.scrollHeight; y += 4 * innerHeight) {
    scrollTo({ top: y, behavior: "instant" });
    await frame();
  }
};

const firstPaint = async () => {
  for (let tries = 0; tries < 100; tries++) {
    const [paint] = performance.getEntriesByName("first-contentful-paint");
    if (paint) return paint.startTime;
    await frame();
  }
  return Infinity;
};

// What sticks out at the right of the page, if the page can be scrolled sideways.
const sticksOut = () => {
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= width) return [];
  const scrolls = (element) => getComputedStyle(element).overflowX !== "visible";
  const wide = [...document.body.querySelectorAll("*")].filter((element) => {
    if (element.getBoundingClientRect().right <= width) return false;
    for (let at = element.parentElement; at !== document.body; at = at.parentElement) {
      if (scrolls(at)) return false;
    }
    return true;
  });
  return ["the page", ...wide.slice(0, 4).map(describe)];
};

const BODY_TEXT = "main :is(p, li, dd)";
const NOT_BODY_TEXT = "figcaption, nav, table, footer, .facts, li li";
const bodyTexts = () =>
  [...document.querySelectorAll(BODY_TEXT)].filter(
    (element) => !element.closest(NOT_BODY_TEXT) && shown(element) && element.textContent.trim(),
  );

const smallText = () =>
  bodyTexts()
    .filter((element) => parseFloat(getComputedStyle(element).fontSize) < 16)
    .map(describe);

// Characters in each line of an element's text; where a word stands left of the last, one begins.
const lineLengths = (element) => {
  const lines = [];
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  let left = Infinity;
  while (walker.nextNode()) {
    for (const word of walker.currentNode.data.matchAll(/\S+\s?/g)) {
      range.setStart(walker.currentNode, word.index);
      range.setEnd(walker.currentNode, word.index + 1);
      const at = range.getBoundingClientRect().left;
      if (at <= left) lines.push(0);
      left = at;
      lines[lines.length - 1] += word[0].length;
    }
  }
  return lines;
};

// Texts of at least three lines with more than `most` characters a line, the last left out.
const longLines = (most) =>
  bodyTexts()
    .map((element) => [element, lineLengths(element).slice(0, -1)])
    .filter(([, lines]) => lines.length > 1)
    .map(([element, lines]) => [element, lines.reduce((a, b) => a + b) / lines.length])
    .filter(([, mean]) => mean > most)
    .map(([element, mean]) => `${mean.toFixed(0)} characters: ${describe(element)}`);

const CONTROLS = "a[href], button, summary, input, select, textarea, [tabindex='0']";
const controls = () =>
  all(CONTROLS).filter((one) => shown(one) && !one.matches(":disabled") && one.tabIndex >= 0);

const isClosed = (element) => element.localName === "summary" && !element.parentElement.open;
const allControls = () =>
  controls().map((one) => ({ text: describe(one), number: one.number, closed: isClosed(one) }));

const numberElements = () => all("*").forEach((one, i) => (one.number = i));

const isInView = (element) => {
  const [first] = element.getClientRects();
  if (!first || !shown(element)) return false;
  const { top, bottom, left, right, height } = first;
  if (!height || bottom <= 0 || top >= innerHeight || right <= 0) return false;
  const y = Math.max(top, 0) + Math.min(height, 8) / 2;
  const above = element.getRootNode().elementFromPoint(Math.max(left, 0) + 2, y);
  return !above || element.contains(above) || above.contains(element);
};

// A ring in an accent that stands out from what is behind it, as WCAG 2 asks for.
const showsFocus = (element) => {
  const { outlineStyle, outlineWidth, outlineColor, boxShadow } = getComputedStyle(element);
  if (outlineStyle === "auto") return true;
  if (outlineStyle === "none" || !parseFloat(outlineWidth)) return boxShadow !== "none";
  return contrast(rgba(outlineColor), paperBehind(parentOf(element))) >= 3;
};

const focused = (root = document) => {
  const element = root.activeElement;
  return element?.shadowRoot?.activeElement ? focused(element.shadowRoot) : element;
};

// Where Tab has come to; null where it has left the page.
const stop = () => {
  const element = focused();
  if (!element || element === document.body || element === document.documentElement) return null;
  return {
    text: describe(element),
    number: element.number,
    visible: showsFocus(element) && isInView(element),
    closed: isClosed(element),
  };
};

// The colours of every element.
const looks = () =>
  all("*", document.body).map((element) => {
    const { color, backgroundColor, borderTopColor, filter, mixBlendMode } = getComputedStyle(element);
    const name = `${element.localName}.${element.className}`;
    return `${name}: ${[color, backgroundColor, borderTopColor, filter, mixBlendMode]}`;
  });

// What each copy button copies, and what can be read of it afterwards.
const copyAll = async () => {
  const copied = [];
  for (const button of document.querySelectorAll("main div.code > button.copy")) {
    button.click();
    await frame();
    await frame();
    const status = [...document.querySelectorAll("[role=status], [aria-live]")];
    const said = [button, ...status].map((element) => element.textContent).join(" ");
    copied.push([await navigator.clipboard.readText(), said]);
  }
  return copied;
};

const target = (link) => document.getElementById(decodeURIComponent(link.hash.slice(1)));

const wronglyMarked = async () => {
  const links = [...document.querySelectorAll("nav.contents li > a[href^='#']")];
  if (!links.length) return "no contents";
  const wrong = [];
  for (const link of links) {
    const heading = target(link);
    heading.scrollIntoView({ behavior: "instant", block: "start" });
    if (heading.getBoundingClientRect().top > innerHeight / 4) continue; // the end of the page
    for (let tries = 0; tries < 20 && link.ariaCurrent !== "true"; tries++) await frame();
    const marked = links.filter((one) => one.ariaCurrent === "true");
    if (marked.length !== 1 || marked[0] !== link) {
      wrong.push(`at ${link.hash}: ${marked.map((one) => one.hash).join(" ") || "none"}`);
    }
  }
  return wrong;
};

const misledLinks = async () => {
  document.documentElement.style.scrollBehavior = "auto";
  const hashes = [...document.querySelectorAll("a[href^='#']")].map((link) => link.hash);
  const wrong = [];
  for (const hash of new Set(hashes)) {
    location.hash = hash;
    await frame();
    const found = document.getElementById(decodeURIComponent(hash.slice(1)));
    if (!found) wrong.push(`${hash} is not there`);
    else if (!isInView(found)) wrong.push(`${hash} is not in view`);
  }
  return wrong;
};

const CONTENT = "main :is(h1, h2, h3, p, li, table, figure, figure img, .highlight, pre, math)";
const notShown = () =>
  [...document.querySelectorAll(CONTENT)]
    .filter((element) => element.textContent.trim() || element.localName === "img")
    .filter((element) => !shown(element) || !element.getBoundingClientRect().height)
    .map(describe);

// Figures and tables that a sheet of this height cannot hold, or that may be divided.
const cutFigures = (height) =>
  [...document.querySelectorAll("figure")].flatMap((figure) => {
    const tall = figure.getBoundingClientRect().height;
    if (getComputedStyle(figure).breakInside !== "avoid") return [`divided: ${describe(figure)}`];
    return tall > height ? [`${tall} pixels high: ${describe(figure)}`] : [];
  });

const cutOff = () => {
  const boxes = [...document.body.querySelectorAll("*")].filter(
    (box) =>
      box.clientWidth &&
      getComputedStyle(box).overflow !== "visible" &&
      (box.scrollWidth > box.clientWidth + 1 || box.scrollHeight > box.clientHeight + 1),
  );
  return [...sticksOut(), ...boxes.slice(0, 4).map(describe)];
};

// Texts with less contrast than `least`, on what is behind them or on the paper given.
const faint = (least, paper) =>
  all("*")
    .filter((one) => [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim()))
    .filter((one) => !/^(script|style)$/.test(one.localName) && shown(one))
    .filter((one) => contrast(rgba(getComputedStyle(one).color), paper ?? paperBehind(one)) < least)
    .slice(0, 5)
    .map(describe);

// {what: computed style} of elements that are not part of a fragment.
const PLACE = /^(height|block-size|perspective-origin|transform-origin)$/;
const stylesOutside = () =>
  [...document.querySelectorAll("html, body, .foreign, .foreign *")].map((element) => {
    const style = getComputedStyle(element);
    const names = [...style].filter((name) => !PLACE.test(name));
    const values = names.map((name) => [name, style.getPropertyValue(name)]);
    return [`${element.localName}.${element.className}`, Object.fromEntries(values)];
  });

// Folds whose content takes no room, but not those of code on its own.
const closedFolds = () =>
  [...document.querySelectorAll("main details")]
    .filter((fold) => fold.querySelector("summary").textContent !== "Code")
    .filter((fold) => !fold.lastElementChild.getBoundingClientRect().height)
    .map(describe);
