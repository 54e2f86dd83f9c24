// Every attempt in a table of any length: sorted, filtered, and walked through with the keyboard.

import { address, ask, query, Refused } from "./data.js";
import { button, fill, h, spaced, styled } from "./dom.js";
import { count, dollars, duration, score } from "./figures.js";
import { List } from "./list.js";

const ROW = 26;
const COLUMNS = [
  ["node", "node", null], ["look", "ending", "look"], ["score", "score", "metric 0"], ["operator", "operator", "operator"], ["model", "model", "model"],
  ["cost", "cost", "microdollars"], ["took", "time", "milliseconds"], ["text", "what it tried", null],
];

// Places by their values; what has none stands last, whichever way, and among equals the newest first. Numbers that are
// sorted by themselves, without a function that compares two, take a tenth of the time: each place then finds its own.
function ordered(places, values, down) {
  const valued = new Float64Array(places.length), without = [];
  let size = 0;
  for (const place of places) {
    const value = values[place] ?? null;
    if (value === null) without.push(place);
    else valued[size++] = value;
  }
  const sorted = valued.subarray(0, size).sort(), taken = new Uint32Array(size), found = new Uint32Array(places.length);
  for (let turn = 0; turn < places.length; turn += 1) {
    const place = places[down ? turn : places.length - 1 - turn], value = values[place] ?? null;
    if (value === null) continue;
    let low = 0, high = size;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (sorted[middle] < value) low = middle + 1;
      else high = middle;
    }
    const at = low + taken[low]++;
    found[down ? size - 1 - at : at] = place;
  }
  found.set(without.reverse(), size);
  return found;
}

export class Attempts {
  constructor(session, open, changed) {
    this.session = session;
    this.changed = changed;
    this.sorted = { column: null, down: true };
    this.texts = new Map();
    this.order = new Uint32Array(0);
    this.list = new List({ row: ROW, role: "grid", label: "Attempts; arrow keys move, Enter opens, / filters", draw: (index) => this.row(this.order[index]), open: (index) => open(this.order[index]) });
    this.list.seen = (first, last) => this.fetch(first, last);
    this.heads = h("div", { class: "row heads", role: "row" });
    this.list.element.prepend(this.heads);
    this.said = h("span", { class: "faint", role: "status" });
    this.element = h("div", { class: "attempts" }, this.filters(), this.list.element);
    this.drawHeads();
  }

  filters() {
    const { board, filter } = this.session;
    this.input = h("input", { type: "search", placeholder: "find words  ( / )", "aria-label": "Find attempts by words", value: filter.text });
    const search = spaced(async () => {
      filter.text = this.input.value.trim();
      filter.places = filter.text ? new Set((await ask(`${address(this.session.id, "search")}${query({ text: filter.text, run: this.session.run })}`)).places) : null;
      this.changed();
    }, 250);
    this.input.addEventListener("input", search);
    this.key = (event) => {
      if (event.key === "/" && !/input|select|textarea/i.test(event.target.tagName)) { event.preventDefault(); this.input.focus(); }
      if (!this.element.isConnected) removeEventListener("keydown", this.key);
    };
    addEventListener("keydown", this.key);
    const choose = (name, list) => list.length < 2 ? null : h("select", { "aria-label": name, onchange: (event) => { filter[name] = Number(event.target.value); this.changed(); } },
      h("option", { value: -1 }, `every ${name}`), list.map((it, at) => h("option", { value: at, selected: filter[name] === at }, it)));
    return h("div", { class: "filters" }, this.input, choose("operator", board.operators), choose("model", board.models), choose("cohort", board.cohorts), choose("role", board.roles),
      button("best first", () => this.sort("metric 0", this.session.board.higher)), this.said);
  }

  // A campaign that asks no model has none to show.
  get shows() { return COLUMNS.filter(([name]) => name !== "model" || this.session.board.models.length); }

  drawHeads() {
    this.headed = this.shows.length;
    fill(this.heads, this.shows.map(([name, title, column]) => {
      const active = this.sorted.column === (column ?? name);
      const way = active ? (this.sorted.down ? "descending" : "ascending") : "none";
      return h("span", { class: `c-${name}`, role: "columnheader", "aria-sort": name === "text" ? undefined : way },
        name === "text" ? title : button(`${title}${active ? (this.sorted.down ? " ▾" : " ▴") : ""}`, () => this.sort(column ?? name)));
    }));
  }

  sort(column, down) {
    const same = this.sorted.column === column;
    this.sorted = { column, down: down ?? (same ? !this.sorted.down : true) };
    this.drawHeads();
    this.refresh();
    this.list.element.scrollTop = 0;
  }

  refresh() {
    const { board, mask } = this.session, chosen = this.order[this.list.at], { column, down } = this.sorted;
    const all = new Uint32Array(board.count);
    let size = 0;
    for (let at = 0; at < board.count; at += 1) if (mask[at]) all[size++] = at;
    let found = all.subarray(0, size);
    if (column && column !== "node") found = ordered(found, board.columns[column], down);
    else if (!column || down) found.reverse();
    this.order = found;
    if (this.headed !== this.shows.length) this.drawHeads();
    fill(this.said, `${count(found.length)} of ${count(board.count)}${board.missing ? `; ${count(board.missing)} more are not shown` : ""}`);
    this.list.element.setAttribute("aria-rowcount", String(found.length + 1));
    const at = chosen === undefined ? -1 : found.indexOf(chosen);
    this.list.at = at;
    this.list.set(found.length);
  }

  row(place) {
    const { board, base } = this.session, { columns } = board, look = board.look(place), id = board.id(place);
    const role = board.roles[columns.role[place]], text = this.texts.get(place);
    const cell = (name, ...children) => h("span", { class: `c-${name}`, role: "gridcell" }, ...children);
    return h("div", { class: `row${board.champion === place ? " champion" : ""}`, role: "row" },
      cell("node", h("a", { href: `${base}/node/${id}`, tabindex: "-1" }, id)),
      cell("look", h("span", { class: styled(look.style) }, `${look.sign} ${look.word}`), board.champion === place ? h("b", { class: "s-green" }, " best") : null, role !== "search" && role !== look.word ? h("span", { class: "s-cyan" }, ` ${role}`) : null, columns.island[place] ? h("span", { class: "faint" }, ` i${columns.island[place]}`) : null),
      cell("score", board.score[place] === null ? "" : `${columns.screened[place] ? "~" : ""}${score(board.score[place])}`),
      cell("operator", board.operators[columns.operator[place]] || ""), board.models.length ? cell("model", board.models[columns.model[place]] || "") : null,
      cell("cost", columns.microdollars[place] ? dollars(columns.microdollars[place]) : ""), cell("took", duration(columns.milliseconds[place] / 1000)),
      cell("text", text ?? ""));
  }

  // Those of nodes that changed come with the change, so that many viewers ask for nothing.
  take(words) {
    for (const [place, text] of words) this.texts.set(place, text);
  }

  // Words are many and few are seen: those of the rows on the screen are asked for.
  fetch(first, last) {
    this.span = [first, last];
    const wanted = Array.from(this.order.slice(first, last)).filter((place) => !this.texts.has(place));
    if (!wanted.length || this.asking) return;
    this.asking = true;
    const { board, id } = this.session;
    setTimeout(async () => {
      try {
        const found = await ask(`${address(id, "rows")}${query({ nodes: wanted.map((place) => board.id(place)).join(",") })}`);
        for (const place of wanted) {
          const told = found[board.id(place)];
          this.texts.set(place, told ? told.description || told.why : "");
          const row = [...this.list.shown].find(([index]) => this.order[index] === place)?.[1];
          if (row && told) fill(row.lastChild, told.description || told.why);
        }
      } catch (error) {
        if (!(error instanceof Refused) && !(error instanceof TypeError)) throw error; // the server is gone: its line says so
        return;
      } finally {
        this.asking = false;
      }
      this.fetch(...this.span); // others may be seen by now
    }, 30);
  }
}
