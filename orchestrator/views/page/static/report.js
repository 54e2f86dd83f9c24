// All that is said of a run, to read and to print.

import { button, h } from "./dom.js";
import { section } from "./sections.js";
import { Scatter } from "./scatter.js";

export async function show({ session }) {
  const told = await session.view(["view", "report"]);
  const plot = new Scatter({ open: (place) => { location.hash = `${session.base.slice(1)}/node/${session.board.id(place)}`; }, label: "Score of every node in the order of opening" });
  const all = new Uint8Array(session.board.count).fill(1);
  const drawn = told.sections.map((it) => {
    const made = section(it, session);
    if (it.blocks.some((block) => block.kind === "series")) made.append(plot.element);
    return made;
  });
  const element = h("article", { class: "stack report" }, h("div", { class: "filters no-print" }, button("print", () => window.print()), h("span", { class: "faint" }, "As it was when this page was opened; blastdoor report writes the same as Markdown.")), drawn);
  return { element, shown() { plot.set(session.board, all); }, update(kind) { if (kind === "theme") plot.draw(); } };
}
