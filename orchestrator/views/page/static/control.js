// What a person can ask of a campaign or a node, where the server was started to be acted with.

import { address, ask, query } from "./data.js";
import { button, fill, h, spaced } from "./dom.js";

const NODE = {
  accept: ["Accept", "may become the best"], decline: ["Decline", "does not become the best"],
  release: ["Release from quarantine", "its stalls are counted from zero"], requeue: ["Run again", "now"],
  cancel: ["Cancel…", "it is not charged; what it spent stays spent"],
};
const NAME = "blastdoor-name";

class Panel {
  constructor(acting, session, node) {
    Object.assign(this, { acting, session, node });
    this.said = h("p", { role: "status", class: "act-said" });
    this.body = h("div", { class: "stack" });
    this.name = h("input", { value: localStorage.getItem(NAME) || "", maxlength: 60, size: 16, placeholder: "for the ledger", onchange: (event) => localStorage.setItem(NAME, event.target.value.trim()) });
    this.element = h("section", { class: "card no-print control", "aria-label": "Act" },
      h("div", { class: "card-head" }, h("h2", {}, node ? `Act on ${node}` : "Act on this campaign"), h("label", { class: "faint" }, "your name ", this.name)), this.body, this.said);
    this.shownActs = "";
    this.refresh = spaced(() => this.load(), 500);
    this.load();
  }

  async load() {
    try {
      const told = await ask(`${address(this.session.id, "acts")}${query({ node: this.node })}`);
      const acts = JSON.stringify([told.acts, told.unheard]);
      // What somebody is writing in stays as it is while nothing else can be done than before.
      if (acts === this.shownActs) return;
      this.shownActs = acts;
      fill(this.body, this.node ? this.ofNode(told) : this.ofCampaign(told));
    } catch (error) {
      this.tell(error.message, true);
    }
  }

  update(kind, told) {
    if (kind !== "update" && kind !== "again") return;
    this.refresh();
    const line = this.request && told?.said?.map(([, text]) => text).find((text) => text.startsWith(`request ${this.request}, `));
    if (line) this.tell(line, line.includes(": refused: "));
  }

  tell(text, bad = false) {
    this.said.className = bad ? "act-said bad" : "act-said";
    fill(this.said, text);
  }

  // Sends what the command line would, and what the person sees: another campaign may be there by now. True when it
  // was taken.
  async act(kind, body, from, seen = this.session.board.mark) {
    if (from) from.disabled = true;
    this.tell(kind === "resume" ? "starting it…" : "asking…");
    try {
      const answer = await fetch(`api/${address(this.session.id, "ask", kind)}`, {
        method: "POST", credentials: "same-origin", headers: { "content-type": "application/json", "x-blastdoor-key": this.acting.key },
        body: JSON.stringify({ ...body, name: this.name.value.trim(), seen }),
      });
      const told = await answer.json().catch(() => null);
      if (!answer.ok) throw new Error(told?.error || `the server answered ${answer.status}`);
      this.request = told.request;
      this.tell(told.said);
      return true;
    } catch (error) {
      this.tell(error.message, true);
      return false;
    } finally {
      if (from) from.disabled = false;
      this.refresh();
    }
  }

  ofNode({ acts }) {
    if (!acts.length) return h("p", { class: "faint" }, "Nothing can be asked about this node now.");
    const why = acts.includes("accept") ? h("input", { maxlength: 500, placeholder: "why, for the ledger", "aria-label": "Why, for the ledger" }) : null;
    const node = this.node;
    const made = acts.map((kind) => button(NODE[kind][0], (event) => {
      const seen = this.session.board.mark;
      if (kind === "cancel") confirmed(`Cancel ${node}?`, `${node}: ${NODE.cancel[1]}.`, `Cancel ${node}`, () => this.act(kind, { node }, event.target, seen));
      else this.act(kind, why && (kind === "accept" || kind === "decline") ? { node, why: why.value } : { node }, event.target);
    }, { title: NODE[kind][1] }));
    return h("div", { class: "filters" }, why, made);
  }

  ofCampaign({ acts, unheard, caps }) {
    const can = (kind) => acts.includes(kind);
    return [
      h("div", { class: "filters" },
        can("pause") ? button("Pause", (event) => this.act("pause", {}, event.target), { title: "No new attempt is opened; the open ones end as usual" }) : null,
        can("go-on") ? button("Go on", (event) => this.act("go-on", {}, event.target)) : null),
      can("resume") ? this.resuming(caps) : null,
      can("steer") ? this.steering() : h("p", { class: "faint" }, unheard),
      this.injecting(),
    ];
  }

  resuming(caps) {
    const inputs = Object.entries(caps).map(([name, help]) => [name, h("input", { size: 8, placeholder: "as before", "aria-label": help, title: help })]);
    return form("Resume", "Nobody works on it. Resume starts a process for it on the server's machine; a cap that you give replaces the old one.",
      inputs.map(([name, input]) => h("label", {}, `${name} `, input)),
      (from) => this.act("resume", { caps: Object.fromEntries(inputs.map(([name, input]) => [name, input.value.trim()])) }, from));
  }

  steering() {
    const text = h("textarea", { rows: 1, maxlength: 2000, "aria-label": "Instruction to every later proposal", placeholder: "an instruction to every later proposal, like: prefer numpy over loops" });
    return form("Steer", "", text, async (from) => { if (await this.act("steer", { text: text.value }, from)) text.value = ""; });
  }

  injecting() {
    const text = h("textarea", { rows: 6, "aria-label": "Diff, search/replace blocks or labelled whole files", placeholder: "a diff, search/replace blocks or labelled whole files", spellcheck: "false", class: "mono" });
    const on = h("input", { size: 10, placeholder: "the best", "aria-label": "Node to apply it to" }), words = h("input", { maxlength: 500, value: "by hand, at the page", "aria-label": "Short description" });
    return h("details", {}, h("summary", {}, "Inject a change of your own"), form("Inject", "", [text, h("label", {}, "on ", on), h("label", {}, "described as ", words)],
      async (from) => { if (await this.act("inject", { text: text.value, on: on.value, description: words.value }, from)) text.value = ""; }));
  }
}

function form(title, help, inputs, send) {
  const submit = h("button", { type: "submit" }, title);
  return h("form", { class: "act-form", onsubmit: (event) => { event.preventDefault(); send(submit); } }, help ? h("p", { class: "faint" }, help) : null, inputs, submit);
}

// Escape, or the second button, leaves everything as it is.
function confirmed(title, text, yes, act) {
  const dialog = h("dialog", { class: "card", "aria-label": title, onclose: () => dialog.remove() }, h("h2", {}, title), h("p", {}, text),
    h("div", { class: "filters" }, button(yes, () => { dialog.close(); act(); }), button("No", () => dialog.close(), { autofocus: true })));
  document.body.append(dialog);
  dialog.showModal();
}

// For the views that there is something to ask in; null for the others.
export function panel(acting, session, view, words) {
  return view === "" || view === "node" ? new Panel(acting, session, view === "node" ? words[0] || "" : "") : null;
}
