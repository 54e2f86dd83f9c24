// Differences and code in colours. A line is cut into pieces by a pattern, and each piece is a text node.

import { h } from "./dom.js";

const WORDS = "and as assert async await break case catch class const continue def del do elif else enum except export extends extern final finally fn for from func function global if impl import in interface is lambda let match mod mut new nonlocal not or package pass pub raise return self static struct super switch this throw trait try type typedef use var void while with yield None True False null true false";
const KEYWORDS = new Set(WORDS.split(" "));
const PIECES = /(#[^\n]*|\/\/[^\n]*)|("(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?|`(?:[^`\\]|\\.)*`?)|(\b\d[\w.]*\b)|([A-Za-z_]\w*)/g;
const LONGEST = 500;

export function coloured(line) {
  if (line.length > LONGEST) return [line];
  const found = [];
  let at = 0;
  for (const match of line.matchAll(PIECES)) {
    const [text, comment, string, number, word] = match;
    const kind = comment ? "c-comment" : string ? "c-string" : number ? "c-number" : KEYWORDS.has(word) ? "c-word" : "";
    if (!kind) continue;
    if (match.index > at) found.push(line.slice(at, match.index));
    found.push(h("span", { class: kind }, text));
    at = match.index + text.length;
  }
  if (at < line.length) found.push(line.slice(at));
  return found;
}

export function diffLines(lines) {
  let inside = false, before = 0, after = 0;
  const rows = lines.map((line) => {
    const hunk = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/.exec(line);
    if (hunk) {
      inside = true;
      [before, after] = [Number(hunk[1]), Number(hunk[2])];
      return row("d-hunk", "", "", [line]);
    }
    if (line.startsWith("diff ")) inside = false;
    if (!inside) return row("d-head", "", "", [line]);
    const [sign, rest] = [line[0], line.slice(1)];
    if (sign === "+") return row("d-new", "", after++, ["+", ...coloured(rest)]);
    if (sign === "-") return row("d-old", before++, "", ["-", ...coloured(rest)]);
    if (sign === "\\") return row("d-head", "", "", [line]);
    return row("", before++, after++, [" ", ...coloured(rest)]);
  });
  return h("div", { class: "code wide", tabindex: "0", role: "group", "aria-label": "difference" }, h("div", { class: "code-inner" }, rows));
}

function row(kind, before, after, pieces) {
  return h("div", { class: `code-row ${kind}` }, h("span", { class: "code-at" }, before), h("span", { class: "code-at" }, after), h("span", { class: "code-text" }, pieces));
}
