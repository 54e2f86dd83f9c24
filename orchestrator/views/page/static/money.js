// What was spent on what, against the caps; and where the time of attempts went.

import { card, fill, h, spaced } from "./dom.js";
import { dollars, duration } from "./figures.js";
import { bars, growing, parts } from "./charts.js";
import { gauge, section } from "./sections.js";

const TIME = "Of attempts that ended. queue: until the first trial, less the time in which models answered. provision: what a trial took beyond the time for which its chamber was held. run: that time. judge: judging, guards, and what lies between two trials.";

// The reserve is what open attempts can still cost.
const booked = ({ used, held, cap }) => h("p", {}, gauge(used, held, cap), " ", h("b", {}, dollars(used)), " booked, ", h("b", {}, dollars(held)), " reserved for open attempts", cap ? `, of ${dollars(cap)}` : ", no cap");

export async function show({ session }) {
  const element = h("div", { class: "stack" });
  const load = async () => {
    const told = await session.view(["view", "money"], () => again());
    const { board, summary } = session, spent = board.columns.microdollars;
    const sum = (key) => {
      const found = new Map();
      for (const it of told.models) found.set(key(it), (found.get(key(it)) || 0) + it.microdollars);
      return [...found].sort((a, b) => b[1] - a[1]).map(([name, value]) => ({ name, value, text: dollars(value) }));
    };
    const time = Object.entries(told.time).map(([name, value]) => ({ name, value, text: duration(value) }));
    const paid = told.providers.map((it) => ({ name: it.provider, value: it.microdollars, text: dollars(it.microdollars) })).sort((a, b) => b.value - a.value);
    fill(element, h("div", { class: "masonry" },
      card("Spent, attempt by attempt", growing({ label: "Dollars spent over attempts", values: spent, text: (micro) => dollars(micro), cap: summary.usd.cap }), booked(summary.usd)),
      told.models.length ? card("Dollars by model", bars(sum((it) => it.model))) : null, told.models.length ? card("Dollars by role", bars(sum((it) => it.role))) : null,
      paid.length ? card("Dollars by provider", bars(paid)) : null,
      time.some((it) => it.value > 0) ? card("Where the time of attempts went", parts(time), h("p", { class: "faint" }, TIME)) : null,
      told.sections.map((it) => section(it, session))));
  };
  await load();
  const again = spaced(load, 4000);
  return { element, update(kind) { if (["update", "again", "theme"].includes(kind)) again(); } };
}
