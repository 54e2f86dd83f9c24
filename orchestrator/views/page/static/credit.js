// What each choice of the search was worth.

import { card, fill, h, spaced } from "./dom.js";
import { bars } from "./charts.js";
import { section } from "./sections.js";

export async function show({ session }) {
  const element = h("div", { class: "stack" });
  const load = async () => {
    const told = await session.view(["view", "credit"], () => again());
    const arms = told.credit?.arms || [], slots = [...new Set(arms.map((arm) => arm.slot))];
    const of = (slot) => arms.filter((arm) => arm.slot === slot).sort((a, b) => b.lift - a.lift).slice(0, 40);
    fill(element, h("div", { class: "masonry" }, slots.map((slot) => card(`Lift by ${slot}`, bars(of(slot).map((arm) => ({ name: arm.arm, value: arm.lift, text: `${arm.lift >= 0 ? "+" : "−"}${Math.abs(arm.lift).toFixed(2)} (${arm.attempts})`, kind: arm.lift < 0 ? "red" : "green" })), { signed: true })))), told.sections.map((it) => section(it, session)));
  };
  await load();
  const again = spaced(load, 5000);
  return { element, update(kind) { if (kind === "update" || kind === "again") again(); } };
}
