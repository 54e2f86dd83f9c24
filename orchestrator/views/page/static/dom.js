// Elements are made here and nowhere else. Text is always a text node: nothing that anybody wrote can become markup.

export function h(tag, props = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, one] of Object.entries(value)) made.style.setProperty(key, one);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  add(made, children);
  return made;
}

export function add(parent, children) {
  for (const child of children.flat(3)) {
    if (child === undefined || child === null || child === false) continue;
    parent.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

export function fill(parent, ...children) {
  parent.replaceChildren();
  add(parent, children);
  return parent;
}

export const card = (title, ...children) =>
  h("section", { class: "card" }, title ? h("h2", {}, title) : null, ...children);

export function button(text, onclick, props = {}) {
  return h("button", { type: "button", onclick, ...props }, text);
}

// Runs at most once a frame, however often it is asked for.
export function framed(work) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => { asked = false; work(); });
  };
}

// Runs at most once in so many milliseconds, the last time for sure.
export function spaced(work, gap) {
  let last = -Infinity, waiting = 0;
  return () => {
    if (waiting) return;
    const rest = Math.max(0, last + gap - performance.now());
    waiting = setTimeout(() => { waiting = 0; last = performance.now(); work(); }, rest);
  };
}

const STYLES = new Set(["bold", "green", "blue", "cyan", "magenta", "red", "yellow", "bright_black", "dim", "italic"]);

export const styled = (style) =>
  (style || "").split(" ").filter((word) => STYLES.has(word)).map((word) => `s-${word}`).join(" ") || undefined;

const colours = new Map();
export function colour(name) {
  if (!colours.has(name)) colours.set(name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());
  return colours.get(name);
}
export const forgetColours = () => colours.clear();

// The colour of a look: the last word of its style.
export const colourOf = (style) => colour((style || "").split(" ").pop() || "ink");

export function canvas(holder, label) {
  const made = h("canvas", { role: "img", "aria-label": label });
  holder.append(made);
  return made;
}

// As many pixels as the screen has, and a context in units of CSS.
export function sized(made, width, height) {
  const ratio = Math.min(3, window.devicePixelRatio || 1);
  const wide = Math.max(1, Math.round(width * ratio)), high = Math.max(1, Math.round(height * ratio));
  if (made.width !== wide || made.height !== high) {
    made.width = wide;
    made.height = high;
    made.style.setProperty("width", `${width}px`);
    made.style.setProperty("height", `${height}px`);
  }
  const context = made.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return { context, ratio };
}
