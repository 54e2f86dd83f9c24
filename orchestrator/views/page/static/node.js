// One node: what it changed, what it scored, what ran for it, what it printed, and all that is on record.

import { address, ask, query } from "./data.js";
import { button, card, fill, h, spaced, styled } from "./dom.js";
import { score } from "./figures.js";
import { bars } from "./charts.js";
import { diffLines } from "./code.js";
import { section } from "./sections.js";
import { Text } from "./texts.js";

const SIDE = new Set(["proposal", "verdict", "fingerprint", "certified", "heldout", "answer", "review", "instructions", "minimal", "members", "channel"]);

export async function show({ session, words, asked }) {
  const name = words[0] || "";
  let texts = [];
  const head = h("div", { class: "card node-head" }), left = h("div", { class: "stack grow" }), right = h("div", { class: "side" });
  const live = h("div", { class: "stack" }), logs = h("div", { class: "stack" }), lower = h("div", { class: "stack" });
  const diff = new Difference(session, name, asked.get("from") || "");

  async function load() {
    const it = await ask(address(session.id, "node", name));
    const link = (id, text) => h("a", { href: `${session.base}/node/${id}` }, text || id);
    fill(head, h("h1", {}, `Node ${it.node}`, " ", h("span", { class: styled(it.look.style) }, `${it.look.sign} ${it.look.word}`)), h("p", { class: "quote" }, it.description),
      h("p", { class: "faint" }, it.parent ? ["from ", link(it.parent), " · "] : "", it.children.length ? ["led to ", ...it.children.slice(0, 12).flatMap((id) => [link(id), " "]), it.children.length > 12 ? `and ${it.children.length - 12} more ` : "", "· "] : "",
        h("a", { href: `${session.base}/compare?nodes=${[it.node, it.parent, session.summary.best_node].filter((id, at, all) => id && all.indexOf(id) === at).join(",")}` }, "compare with its parent and the best")));
    if (!left.childElementCount) {
      fill(left, it.has_diff ? diff.element : null, live, logs, lower);
      diff.begin(it.parent);
      texts = it.texts.map((text) => new Text(session, { ...text, open: text.what === "trial" && it.texts.filter((other) => other.what === "trial").pop() === text }));
      fill(logs, texts.length ? card("Logs and answers", texts.map((text) => text.element)) : card("Logs and answers", h("p", { class: "faint" }, it.open ? "It is at work; what it prints is shown while it does." : "Its trials printed nothing that is stored.")));
    }
    const tasks = Object.entries(it.scores.tasks).filter(([, value]) => value !== null);
    fill(right, tasks.length > 1 ? card("Scores by task", bars(tasks.slice(0, 60).map(([task, value]) => ({ name: task, value, text: score(value) })))) : null,
      it.sections.filter((one) => SIDE.has(one.key)).map((one) => section(one, session)));
    fill(lower, it.sections.filter((one) => !SIDE.has(one.key) && one.key !== "node").map((one) => section(one, session)));
    if (it.open) follow(await ask(address(session.id, "live")));
  }

  // Logs of its chambers that are at work.
  function follow(told) {
    for (const trial of Object.keys(told.logs)) {
      if (trial.slice(0, trial.lastIndexOf("-")) !== name || texts.some((it) => it.what === "live" && it.name === trial)) continue;
      const made = new Text(session, { what: "live", name: trial, title: `${trial} prints now`, open: true });
      texts.push(made);
      live.append(h("section", { class: "card" }, made.element));
    }
    texts.forEach((it) => it.grown(told.logs));
    const pulse = told.pulses[name];
    if (pulse) fill(pulsing, `${pulse.phase || pulse.state} · ${pulse.tokens.toLocaleString("en")} tokens${pulse.rate === null ? "" : ` · ${score(pulse.rate, 3)} a second, floor ${score(pulse.floor, 3)}`}`);
  }
  const pulsing = h("p", { class: "faint", role: "status" });
  await load();
  const again = spaced(load, 1000);
  const steps = (event) => {
    if (/input|select|textarea/i.test(event.target.tagName) || event.ctrlKey || event.metaKey || event.altKey) return;
    const place = session.board.place(name), next = { "[": place - 1, "]": place + 1 }[event.key];
    if (event.key === "u" && session.board.columns.parent[place] >= 0) location.hash = `${session.base.slice(1)}/node/${session.board.id(session.board.columns.parent[place])}`;
    else if (next >= 0 && next < session.board.count) location.hash = `${session.base.slice(1)}/node/${session.board.id(next)}`;
  };
  addEventListener("keydown", steps);
  return {
    element: h("div", { class: "stack" }, head, pulsing, h("div", { class: "columns" }, left, right), h("p", { class: "faint" }, "Keys: [ and ] go to the node before and after, u goes up to its parent.")),
    close() { removeEventListener("keydown", steps); },
    update(kind, told) {
      if (kind === "live") follow(told);
      if (kind === "again") again();
      if (kind === "update" && told.rows.some(([place]) => session.board.id(place) === name)) again();
    },
  };
}

// What a node changed against its parent, or any other.
export class Difference {
  constructor(session, node, from) {
    Object.assign(this, { session, node, from });
    this.body = h("div", { class: "stack" });
    this.choice = h("span", { class: "filters" });
    this.element = h("section", { class: "card" }, h("div", { class: "card-head" }, h("h2", {}, "What it changed"), this.choice), this.body);
  }

  begin(parent) {
    const root = this.node.split(".")[0], best = this.session.summary.best_node;
    const known = [["its parent", ""], ["the baseline", root], ["the best", best]].filter(([, id], at, all) => (at === 0 ? parent : id && id !== this.node && id !== parent) && all.findIndex(([, other]) => other === id) === at);
    const other = h("input", { "aria-label": "Another node to compare with", placeholder: "another node", size: 10, onchange: (event) => this.load(event.target.value.trim()) });
    fill(this.choice, "against ", known.map(([text, id]) => button(text, () => this.load(id), { class: "small" })), other);
    this.load(this.from);
  }

  async load(from, page = 0) {
    try {
      const told = await ask(`${address(this.session.id, "diff")}${query({ node: this.node, from, page })}`);
      const more = page + 1 < told.pages ? button(`next page, ${page + 2} of ${told.pages}`, () => this.load(from, page + 1)) : null;
      const before = page ? button("page before", () => this.load(from, page - 1)) : null;
      fill(this.body, h("p", { class: "faint" }, told.from ? `${this.node} against ${told.from}` : this.node), told.lines.length ? diffLines(told.lines) : h("p", { class: "faint" }, "No difference."), h("div", { class: "filters" }, before, more));
    } catch (error) {
      fill(this.body, h("p", { class: "notice" }, error.message));
    }
  }
}
