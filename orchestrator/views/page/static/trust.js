// Whether the scores can be believed: the judge's tier, findings, the held-out split, and the chain of records.

import { address, ask } from "./data.js";
import { card, fill, h, spaced } from "./dom.js";
import { count } from "./figures.js";
import { gauge, section } from "./sections.js";

export async function show({ session }) {
  const chain = h("p", { role: "status" }), body = h("div", { class: "masonry" });
  let open = true;
  const load = async () => {
    const told = await session.view(["view", "trust"], () => again());
    fill(body, card("Chain of records", chain),
      card("What verdicts are worth", Object.keys(told.tiers).length ? h("dl", { class: "facts" }, Object.entries(told.tiers).map(([tier, number]) => [h("dt", {}, tier), h("dd", {}, `${count(number)} verdicts`)])) : h("p", { class: "faint" }, "No verdict yet.")),
      told.heldout ? card("Queries of the held-out split", h("p", {}, gauge(told.heldout.asked, 0, told.heldout.askable), ` ${count(told.heldout.asked)} asked, ${count(Math.max(0, told.heldout.askable - told.heldout.asked))} left of ${count(told.heldout.askable)}`)) : null,
      card("Findings", told.count ? h("ul", { class: "lines" }, told.findings.map((it) => h("li", {}, h("a", { href: `${session.base}/node/${it.node}` }, it.node), ` ${it.look}: `, h("span", { class: "quote" }, it.why))), told.count > told.findings.length ? h("li", { class: "faint" }, `and ${count(told.count - told.findings.length)} more`) : null) : h("p", { class: "s-green" }, "Nothing was tampered with, nothing is disbelieved, nothing was flagged.")),
      told.sections.map((it) => section(it, session)));
  };
  // The server walks some thousand records for each question.
  const walk = async () => {
    while (open) {
      const it = await ask(address(session.id, "chain"));
      chain.className = it.broken ? "s-red" : it.verified === it.head ? "s-green" : "";
      fill(chain, it.broken ? `BROKEN: ${it.broken}` : `Verified up to record ${count(it.verified)} of ${count(it.head)}${it.rows ? ", which seals every row" : "; rows are not compared"}.`, " ", gauge(it.verified, 0, it.head));
      if (it.broken || it.verified >= it.head) return;
    }
  };
  await load();
  walk();
  const again = spaced(() => { load(); walk(); }, 5000);
  return { element: body, close() { open = false; }, update(kind) { if (kind === "update" || kind === "again") again(); } };
}
