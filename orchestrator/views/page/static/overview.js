// All campaigns: where each stands, its best, its pace, its money, and how its last attempt ended.

import { fill, h } from "./dom.js";
import { ask, Stream } from "./data.js";
import { ago, count, dollars, score, signed } from "./figures.js";
import { gauge } from "./sections.js";

export async function show() {
  const rows = new Map((await ask("campaigns")).map((row) => [row.id, row]));
  const body = h("tbody"), none = h("p", { class: "notice" }, "No campaign is here yet. blastdoor run starts one; it shows up by itself.");
  const tally = h("p", { class: "faint tally" });
  const draw = () => {
    const all = [...rows.values()].sort((a, b) => (b.at || 0) - (a.at || 0));
    none.hidden = all.length > 0;
    fill(body, all.map(drawn));
    const running = all.filter((row) => row.status === "running").length, spent = all.reduce((sum, row) => sum + (row.usd?.used || 0), 0);
    fill(tally, `${count(all.length)} ${all.length === 1 ? "campaign" : "campaigns"}, ${count(running)} running, ${dollars(spent)} spent`);
  };
  draw();
  const stream = new Stream(null, null, (kind, told) => {
    if (kind !== "rows") return;
    told.forEach((row) => rows.set(row.id, row));
    draw();
  });
  const timer = setInterval(draw, 15000);
  const heads = ["Campaign", "State", "Best", "Attempts", "An hour", "Money", "Last ending", ""];
  const element = h("div", { class: "stack" }, h("h1", { class: "hidden" }, "Campaigns"), tally, none,
    h("div", { class: "card wide", tabindex: "0", role: "group", "aria-label": "campaigns" }, h("table", { class: "overview" }, h("thead", {}, h("tr", {}, heads.map((it) => (it ? h("th", { scope: "col" }, it) : h("td"))))), body)));
  return { element, close() { stream.close(); clearInterval(timer); } };
}

function drawn(row) {
  const name = h("td", { "data-head": "Campaign" }, row.status === "not readable" ? h("b", {}, row.name) : h("a", { href: `#/c/${row.id}` }, row.name), h("div", { class: "faint path" }, row.folder));
  const state = h("td", { "data-head": "State" }, h("span", { class: `pill p-${row.status.replaceAll(" ", "-")}` }, row.status), h("div", { class: "faint why" }, row.why));
  if (row.status === "not readable") return h("tr", {}, name, state, h("td", { colspan: 6 }));
  const gain = row.best && row.baseline ? row.best.value - row.baseline.value : 0;
  return h("tr", {}, name, state,
    h("td", { "data-head": "Best" }, h("b", { class: "big" }, row.best?.text ?? "–"), " ", gain ? h("span", { class: (gain > 0) === (row.goal === "higher") ? "s-green" : "s-red" }, signed(gain)) : null,
      h("div", { class: "faint" }, row.metric, row.best_node ? [" at ", h("a", { href: `#/c/${row.id}/node/${row.best_node}` }, row.best_node)] : "")),
    h("td", { "data-head": "Attempts" }, count(row.attempts.used), row.attempts.cap ? h("span", { class: "faint" }, ` of ${count(row.attempts.cap)}`) : null, gauge(row.attempts.used, row.attempts.held, row.attempts.cap)),
    h("td", { "data-head": "An hour" }, row.rate ? score(row.rate, 3) : "–"),
    h("td", { "data-head": "Money" }, dollars(row.usd.used), row.usd.cap ? [h("span", { class: "faint" }, ` of ${dollars(row.usd.cap)}`), gauge(row.usd.used, row.usd.held, row.usd.cap)] : null),
    h("td", { "data-head": "Last ending", class: "last" }, row.last || "–"), h("td", { class: "faint when" }, ago(row.at)));
}
