// Which view is shown, by the address after the #; and the campaign that is looked at, with its stream.

import { fill, forgetColours, h } from "./dom.js";
import { address, ask, Board, query, Refused, Stream } from "./data.js";
import { isExported, recordedAt } from "./exported.js";
import { ago } from "./figures.js";

const VIEWS = [
  ["", "Campaign", "./campaign.js"], ["tree", "Tree", "./tree.js"], ["parameters", "Parameters", "./parameters.js"],
  ["money", "Money and time", "./money.js"], ["agents", "Agents", "./agents.js"], ["credit", "Credit", "./credit.js"],
  ["trust", "Trust", "./trust.js"], ["compare", "Compare", "./compare.js"], ["report", "Report", "./report.js"],
];
const OTHERS = { node: "./node.js", overview: "./overview.js" };
const [where, views, main, line] = ["where", "views", "main", "line"].map((id) => document.getElementById(id));

let session = null, shown = null, turn = 0, control = null, failing = false;
// One who was let in to act is told what each act has to show; for the others the page only shows.
const acting = ask("me").then((it) => (it.acts ? it : null), () => null);

// One campaign: what is known of it, and who wants to hear of changes.
class Session {
  constructor(id, run) {
    this.id = id;
    this.asked = run;
    this.base = `#/c/${id}`;
  }

  async open() {
    const [summary, board] = await Promise.all([ask(address(this.id)), ask(`${address(this.id, "board")}${query({ run: this.asked })}`)]);
    this.take(summary, board);
    this.stream = new Stream(this.id, board.mark, (kind, told) => this.hear(kind, told));
    return this;
  }

  take(summary, board) {
    this.summary = summary;
    this.said = summary.said;
    this.board = new Board(board);
    this.run = this.board.run;
    this.filter = this.filter || { looks: new Set(), text: "", operator: -1, model: -1, cohort: -1, role: -1, places: null };
    this.sieve();
  }

  // Which places are seen; a set of looks that is empty hides none.
  sieve(from = 0) {
    const { columns, count } = this.board, { looks, operator, model, cohort, role, places } = this.filter;
    if (!this.mask || this.mask.length < count) {
      const grown = new Uint8Array(Math.max(1024, count * 2));
      if (this.mask && from) grown.set(this.mask.subarray(0, from));
      this.mask = grown;
    }
    for (let at = from; at < count; at += 1) {
      this.mask[at] = (!looks.size || looks.has(columns.look[at])) && (operator < 0 || columns.operator[at] === operator)
        && (model < 0 || columns.model[at] === model) && (cohort < 0 || columns.cohort[at] === cohort)
        && (role < 0 || columns.role[at] === role) && (!places || places.has(at)) ? 1 : 0;
    }
  }

  hear(kind, told) {
    if (kind === "update") {
      this.summary = { ...told.summary, said: this.said };
      this.said = [...this.said, ...told.said].slice(-100);
      // One that was sent while the board was on its way has been counted already.
      if (told.seq > this.board.seq && this.board.present) {
        this.board.apply(told);
        this.sieve();
      }
      head();
    }
    if (kind === "again") {
      this.again();
      return;
    }
    if (kind === "failed") { failing = true; say(told.error, true); }
    if (kind === "update") this.recovered();
    if (kind === "lost") say("the server does not answer; trying again", true);
    if (kind === "closed") say("not followed any more: the server refused or ended; load the page again", true);
    if (kind === "open") say("");
    shown?.update?.(kind, told);
    control?.update(kind, told);
    if (kind === "update") document.documentElement.dataset.seq = String(told.seq);
  }

  async again() {
    const [summary, board] = await Promise.all([ask(address(this.id)), ask(`${address(this.id, "board")}${query({ run: this.asked })}`)]);
    this.take(summary, board);
    this.recovered();
    head();
    shown?.update?.("again");
    control?.update("again");
  }

  // What the server makes seldom may be older than the last change: it is asked for again when it may be made.
  async view(path, again) {
    const mine = turn, told = await ask(`${address(this.id, ...path)}${query({ run: this.run })}`);
    if (told.older_s !== undefined && again) setTimeout(() => { if (mine === turn) again(); }, told.older_s * 1000);
    return told;
  }

  recovered() {
    if (failing) say("");
    failing = false;
  }

  close() { this.stream?.close(); }
}

function parse() {
  const [path, asked] = location.hash.replace(/^#\/?/, "").split("?");
  const words = path.split("/").filter(Boolean).map(decodeURIComponent);
  return { words, asked: new URLSearchParams(asked || "") };
}

async function route() {
  const mine = ++turn, { words, asked } = parse();
  const campaign = words[0] === "c" ? words[1] : null, view = campaign ? words[2] || "" : "overview";
  try {
    const run = asked.get("run") ? Number(asked.get("run")) : undefined;
    if (session && (session.id !== campaign || (run !== undefined && run !== session.run))) {
      session.close();
      session = null;
    }
    const code = VIEWS.find(([name]) => name === view)?.[2] || OTHERS[view];
    if (!code) throw new Refused("there is no such page");
    const [module, me] = await Promise.all([import(code), acting, campaign && !session ? begin(campaign, run, mine) : null]);
    if (mine !== turn) return;
    shown?.close?.();
    head();
    tabs(view);
    main.className = `view-${view || "campaign"}`;
    shown = await module.show({ session, words: words.slice(3), asked, say });
    if (mine !== turn) { shown?.close?.(); return; }
    control = me && campaign ? (await import("./control.js")).panel(me, session, view, words.slice(3)) : null;
    if (mine !== turn) return;
    fill(main, control?.element, shown.element);
    shown.shown?.();
    window.scrollTo(0, 0);
  } catch (error) {
    if (mine !== turn) return;
    shown?.close?.();
    shown = null;
    fill(main, h("p", { class: "notice" }, error instanceof Refused ? error.message : `this page cannot be shown: ${error.message}`));
    if (!(error instanceof Refused)) throw error;
  }
  document.documentElement.dataset.ready = String(mine);
}

async function begin(id, run, mine) {
  const made = await new Session(id, run).open();
  if (mine === turn) session = made;
  else made.close();
}

function head() {
  document.title = session ? `${session.summary.best ? `${session.summary.best.text} · ` : ""}${session.summary.name} - Blastdoor` : "Blastdoor";
  if (!session) {
    fill(where);
    return;
  }
  const { name, status, why, runs, at } = session.summary;
  const chosen = runs.length < 2 ? ` run ${session.run}` : h("select", { "aria-label": "Run", onchange: (event) => { location.hash = `${session.base.slice(1)}?run=${event.target.value}`; } },
    runs.map((number) => h("option", { value: number, selected: number === session.run }, `run ${number}`)));
  fill(where, h("a", { href: session.base }, name), " ", chosen, " ", h("span", { class: `pill p-${status.replaceAll(" ", "-")}`, title: why }, status), " ", h("span", { class: "faint when" }, ago(at)));
}

function tabs(view) {
  views.hidden = !session;
  if (session) fill(views, VIEWS.map(([name, title]) => h("a", { href: `${session.base}${name ? `/${name}` : ""}`, "aria-current": name === view ? "page" : undefined }, title)));
}

function say(text, bad = false) {
  line.className = bad ? "bad" : "";
  fill(line, text);
}

function themed() {
  const button = document.getElementById("theme"), root = document.documentElement, kept = localStorage.getItem("theme");
  if (kept === "light" || kept === "dark") root.dataset.theme = kept;
  const changed = () => { forgetColours(); shown?.update?.("theme"); };
  button.addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    localStorage.setItem("theme", root.dataset.theme);
    changed();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
}

// The token has done its work: what stays in the address bar or in a picture of it opens nothing.
if (location.search) history.replaceState(null, "", `${location.pathname}${location.hash}`);

if (isExported) recordedAt().then((at) => say(`as it was on ${new Date(at * 1000).toISOString().slice(0, 16).replace("T", " at ")} UTC`));
themed();
addEventListener("hashchange", route);
// What a view asks for while it is shown may be refused for a moment; that is told in one place, until it works again.
addEventListener("unhandledrejection", (event) => {
  if (!(event.reason instanceof Refused)) return;
  event.preventDefault();
  failing = true;
  say(event.reason.message, true);
});
setInterval(() => { if (session) head(); }, 10000);
route();
