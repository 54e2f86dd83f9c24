// The tree as an outline: who came from whom, the way to the best, islands and what was combined. Families fold; what
// matters stays: the way to the best, what is open, what was kept, then the newest.

import { address, ask, query } from "./data.js";
import { button, fill, h, spaced, styled } from "./dom.js";
import { count, score } from "./figures.js";
import { List } from "./list.js";

const FAMILY = 5;
const SIZES = [7, 14, 22, 30];

export async function show({ session }) {
  const folded = new Set(), whole = new Set(), texts = new Map();
  let rows = [], size = 2, path = new Set(), children = [], asking = false, everything = false;

  const list = new List({
    row: SIZES[size], role: "tree", label: "Tree of nodes; arrow keys move, left and right fold, Enter opens",
    draw: (index) => drawn(rows[index]), open: (index) => { if (rows[index].place >= 0) location.hash = `${session.base.slice(1)}/node/${session.board.id(rows[index].place)}`; },
  });
  list.seen = (first, last) => fetchTexts(first, last);
  list.element.classList.add("tree");

  function build() {
    const { board } = session, { parent, look, opened } = board.columns;
    children = Array.from({ length: board.count }, () => []);
    const roots = [];
    for (let at = 0; at < board.count; at += 1) (parent[at] < 0 ? roots : children[parent[at]]).push(at);
    path = new Set();
    for (let at = board.champion; at >= 0; at = parent[at]) path.add(at);
    const kept = board.looks.findIndex((it) => it.word === "kept");
    const weight = (at) => (path.has(at) ? 3 : board.columns.ended[at] < 0 ? 2 : look[at] === kept ? 1 : 0);
    rows = [];
    // Not by calling itself: a tree may be a hundred deep, and a stack of our own has no end.
    const stack = roots.reverse().map((at) => ({ place: at, depth: 0 }));
    while (stack.length) {
      const row = stack.pop();
      rows.push(row);
      const family = row.place < 0 || folded.has(row.place) ? [] : children[row.place];
      let chosen = family;
      if (!everything && !whole.has(row.place) && family.length > FAMILY + 1) {
        const best = new Set([...family].sort((a, b) => weight(b) - weight(a) || opened[b] - opened[a]).slice(0, FAMILY));
        chosen = family.filter((at) => best.has(at));
        stack.push({ place: -1, of: row.place, left: family.length - chosen.length, depth: row.depth + 1 });
      }
      for (const at of [...chosen].reverse()) stack.push({ place: at, depth: row.depth + 1 });
    }
    list.set(rows.length);
  }

  function drawn(row) {
    const { board } = session, small = SIZES[size] < 14;
    const made = h("div", { class: "row leaf", role: "treeitem", "aria-level": row.depth + 1 });
    made.style.setProperty("padding-left", `${8 + row.depth * (small ? 10 : 18)}px`);
    made.style.setProperty("--depth", row.depth);
    if (row.place < 0) {
      made.append(button(`… ${count(row.left)} more`, () => { whole.add(row.of); build(); }, { class: "small", tabindex: "-1" }));
      return made;
    }
    const look = board.look(row.place), own = children[row.place].length;
    made.classList.toggle("on-path", path.has(row.place));
    if (own) made.setAttribute("aria-expanded", String(!folded.has(row.place)));
    const dot = h("span", { class: `sign ${styled(look.style)}` }, look.sign);
    if (small) { made.append(dot); made.title = board.id(row.place); return made; }
    const { columns } = board, role = board.roles[columns.role[row.place]];
    made.append(own ? button(folded.has(row.place) ? "▸" : "▾", () => fold(row.place), { class: "fold", tabindex: "-1", "aria-label": `fold ${board.id(row.place)}` }) : h("span", { class: "fold" }), dot);
    for (const part of [h("a", { href: `${session.base}/node/${board.id(row.place)}`, tabindex: "-1" }, board.id(row.place)),
      row.place === board.champion ? h("b", { class: "s-green" }, "best") : null, h("b", {}, board.score[row.place] === null ? "" : score(board.score[row.place])),
      ["control", "injected", "baseline", "minimised"].includes(role) ? h("span", { class: "s-cyan" }, role) : null, board.combines && role === "search" ? h("span", { class: "tag" }, `combination of run ${board.combines}`) : null, columns.island[row.place] ? h("span", { class: "tag" }, `island ${columns.island[row.place]}`) : null,
      own && folded.has(row.place) ? h("span", { class: "tag" }, `${count(own)} folded`) : null, h("span", { class: "faint text" }, texts.get(row.place) || "")]) if (part) made.append(part);
    return made;
  }

  function fold(place) {
    if (!folded.delete(place)) folded.add(place);
    build();
  }

  function fetchTexts(first, last) {
    const wanted = rows.slice(first, last).filter((row) => row.place >= 0 && !texts.has(row.place)).map((row) => row.place);
    if (asking || !wanted.length || SIZES[size] < 14) return;
    asking = true;
    setTimeout(async () => {
      try {
        const found = await ask(`${address(session.id, "rows")}${query({ nodes: wanted.map((place) => session.board.id(place)).join(",") })}`);
        for (const place of wanted) texts.set(place, found[session.board.id(place)]?.description || "");
        list.again();
      } finally { asking = false; }
    }, 30);
  }

  function zoom(by) {
    size = Math.max(0, Math.min(SIZES.length - 1, size + by));
    list.height = SIZES[size];
    list.element.classList.toggle("tiny", SIZES[size] < 14);
    list.set(rows.length);
  }

  list.element.addEventListener("keydown", (event) => {
    const row = rows[list.at];
    if (event.key === "+") zoom(1);
    else if (event.key === "-") zoom(-1);
    else if (!row || row.place < 0) return;
    else if (event.key === "ArrowLeft" && !folded.has(row.place) && children[row.place].length) fold(row.place);
    else if (event.key === "ArrowLeft") list.go(rows.findIndex((it) => it.place === session.board.columns.parent[row.place]));
    else if (event.key === "ArrowRight" && folded.has(row.place)) fold(row.place);
    else if (event.key === "ArrowRight") list.go(list.at + 1);
    else return;
    event.preventDefault();
  });
  list.element.addEventListener("wheel", (event) => { if (event.ctrlKey) { event.preventDefault(); zoom(event.deltaY > 0 ? -1 : 1); } }, { passive: false });

  const all = button("show every node", () => { everything = !everything; fill(all, everything ? "show what matters" : "show every node"); build(); });
  const element = h("section", { class: "card full" }, h("h2", {}, "Tree"),
    h("div", { class: "filters" }, button("−", () => zoom(-1), { "aria-label": "smaller" }), button("+", () => zoom(1), { "aria-label": "larger" }), all,
      button("go to the best", () => { const index = rows.findIndex((row) => row.place === session.board.champion); if (index >= 0) { list.go(index); list.element.focus(); } }),
      button("fold all", () => { children.forEach((own, at) => { if (own.length && !path.has(at)) folded.add(at); }); build(); }), button("unfold", () => { folded.clear(); build(); })), list.element);
  const slow = spaced(build, 1000);
  return { element, shown: build, update(kind) { if (kind === "update" || kind === "again") slow(); } };
}
