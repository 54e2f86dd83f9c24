// Sections of the report, drawn from their values: the same words as in a terminal and in Markdown.

import { card, h, styled } from "./dom.js";
import { count } from "./figures.js";
import { diffLines } from "./code.js";

const NODE = /^[1-9]\d{0,8}(\.[1-9]\d{0,8})*$/;

export function words(values, session) {
  return values.map((value) => {
    if (value === "\n") return h("br");
    if (typeof value === "string") return linked(value, session);
    if (value.gauge) return gauge(...value.gauge);
    const text = value.number === undefined ? linked(value.text, session) : value.text;
    return h("span", { class: [styled(value.style), value.quote ? "quote" : ""].filter(Boolean).join(" ") || undefined }, text);
  });
}

// A name of a node that stands alone is a way to it; a number may look like one.
function linked(text, session) {
  const name = text.trim();
  return session && name.includes(".") && NODE.test(name) && session.board.place(name) >= 0 ? h("a", { href: `${session.base}/node/${name}` }, text) : text;
}

export function gauge(used, held, cap) {
  if (cap === null || cap === undefined) return null;
  const all = Math.max(1, cap), share = (part) => `${Math.min(100, (100 * part) / all)}%`;
  return h("span", { class: "gauge", role: "presentation" },
    h("span", { class: "gauge-used", style: { width: share(used) } }),
    h("span", { class: "gauge-held", style: { width: share(held) } }));
}

export function section(it, session) {
  const body = [it.line.length ? h("p", {}, words(it.line, session)) : null, ...it.blocks.map((block) => drawn(block, session))];
  const made = card(words(it.title), ...body);
  made.dataset.key = it.key;
  return made;
}

function drawn(block, session) {
  switch (block.kind) {
    case "prose": return h("p", {}, words(block.words, session));
    case "facts": return h("dl", { class: "facts" }, block.rows.map(([name, value]) => [h("dt", {}, name), h("dd", {}, words(value, session))]));
    case "table": return table(block, session);
    case "lines": return h(block.numbered ? "ol" : "ul", { class: "lines" }, block.rows.map((row) => h("li", {}, words(row, session))), more(block));
    case "listing": return h("div", {}, block.language === "diff" ? diffLines(block.lines) : h("pre", {}, block.lines.join("\n")), more(block));
    default: return null; // a series has a plot of its own
  }
}

function table(block, session) {
  const numeric = block.columns.map((_, at) => block.rows.every((row) => row[at].every((it) => it.number !== undefined)));
  const cell = (tag, values, at) => h(tag, { class: numeric[at] ? "number" : undefined, scope: tag === "th" ? "col" : undefined }, words(values, session));
  return h("div", { class: "wide", tabindex: "0", role: "group", "aria-label": "table" }, h("table", {},
    h("thead", {}, h("tr", {}, block.columns.map((it, at) => cell(it.length ? "th" : "td", it, at)))),
    h("tbody", {}, block.rows.map((row) => h("tr", {}, row.map((it, at) => cell("td", it, at)))))), more(block));
}

const more = (block) => (block.more ? h("p", { class: "faint" }, `${count(block.more)} more; the command line shows all of them`) : null);
