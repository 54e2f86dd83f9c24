// Those who propose, live: tokens a second against the floor; and what stalls cost.

import { card, fill, h, spaced } from "./dom.js";
import { count, dollars, duration, score } from "./figures.js";
import { section } from "./sections.js";

export async function show({ session }) {
  const element = h("div", { class: "stack" }), live = h("section", { class: "card" });
  let work = [];
  const drawLive = (told) => {
    const rows = Object.entries(told.pulses);
    fill(live, h("h2", {}, "At work now"), rows.length ? h("div", { class: "wide", tabindex: "0", role: "group", "aria-label": "agents at work" }, h("table", {}, h("thead", {}, h("tr", {}, ["node", "phase", "state", "tokens", "a second", "floor", "cost"].map((it) => h("th", { scope: "col" }, it)))),
      h("tbody", {}, rows.map(([node, it]) => h("tr", {}, h("td", {}, h("a", { href: `${session.base}/node/${node}` }, node)), h("td", {}, it.phase), h("td", { class: it.rate !== null && it.rate < it.floor ? "s-red" : undefined }, it.state), h("td", { class: "number" }, count(it.tokens)),
        h("td", { class: "number" }, it.rate === null ? "–" : score(it.rate, 3), meter(it)), h("td", { class: "number" }, score(it.floor, 3)), h("td", { class: "number" }, dollars(it.usd * 1e6))))))) :
      h("p", { class: "faint" }, work.length ? `No model is asked right now; ${work.length} ${work.length === 1 ? "attempt is" : "attempts are"} open.` : "Nothing is at work."));
  };
  const load = async () => {
    const told = await session.view(["view", "agents"], () => again());
    work = told.work;
    drawLive(told.live);
    const heads = ["agent", "model", "configuration", "goes", "stalls", "found after", "tokens lost", "lost", "saved"];
    fill(element, live, told.agents.length ? card("Stalls, and what they cost", h("div", { class: "wide", tabindex: "0", role: "group", "aria-label": "stalls" }, h("table", {}, h("thead", {}, h("tr", {}, heads.map((it) => h("th", { scope: "col" }, it)))),
      h("tbody", {}, told.agents.map((it) => h("tr", {}, [it.agent, it.model, it.configuration].map((text) => h("td", {}, text)), [count(it.attempts), `${count(it.stalls)} (${Math.round(100 * it.stall_rate)} %)`, duration(it.found_after_s), count(it.lost.tokens), `${it.lost_at_most ? "≤ " : ""}${dollars(it.lost.microdollars)}`, duration(it.saved_s)].map((text) => h("td", { class: "number" }, text)))))))) : null,
      told.sections.map((it) => section(it, session)));
  };
  await load();
  const again = spaced(load, 4000);
  return { element, update(kind, told) { if (kind === "live") drawLive(told); if (kind === "update" || kind === "again") again(); } };
}

// How far above its floor an agent is; the floor is a third of the way.
function meter({ rate, floor }) {
  if (rate === null || !floor) return null;
  const inner = h("span", { class: rate < floor ? "meter-low" : "meter-well" });
  inner.style.setProperty("width", `${Math.min(100, (100 * rate) / (3 * floor))}%`);
  return h("span", { class: "meter", role: "presentation" }, inner);
}
