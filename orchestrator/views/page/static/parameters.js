// What parameters do to the score: how much each explains alone, slices, all of them at once, and fronts of two metrics.

import { card, fill, h, spaced } from "./dom.js";
import { count, score } from "./figures.js";
import { bars, cloud, parallel } from "./charts.js";

export async function show({ session }) {
  const element = h("div", { class: "stack" });
  const load = async () => {
    const told = await session.view(["parameters"], () => again());
    fill(element, drawn(session, told), pareto(session));
  };
  await load();
  const again = spaced(load, 5000);
  return { element, update(kind) { if (["update", "again", "theme"].includes(kind)) again(); } };
}

function drawn(session, told) {
  if (!told.parameters.length) return card("Parameters", h("p", { class: "faint" }, "No attempt with a score has parameters on record: its changes are told by their differences."));
  const ranked = [...told.parameters].sort((a, b) => (b.importance ?? -1) - (a.importance ?? -1));
  const open = (at) => { location.hash = `${session.base.slice(1)}/node/${told.nodes[at]}`; };
  const higher = told.goal === "higher", best = told.scores.length ? (higher ? Math.max : Math.min)(...told.scores.slice(0, 50000)) : null;
  const kinds = told.scores.map((value) => (value === best ? "green" : "blue"));
  return [
    h("div", { class: "columns" },
      h("div", { class: "side" }, card("How much each explains alone", bars(ranked.map((it) => ({ name: it.name, value: it.importance ?? 0, text: it.importance === null ? "too few" : `${Math.round(100 * it.importance)} %` })), { whole: 1 }),
        h("p", { class: "faint" }, `The share of the variance of ${told.metric} between groups of a parameter's values, less what chance explains; ${count(told.nodes.length)} nodes. What parameters do together is not in it.`))),
      h("div", { class: "grow" }, card("All at once", parallel({ label: "Parallel coordinates: each line is a node, from its parameters to its score", axes: [...ranked.slice(0, 8), { name: told.metric, values: told.scores }], scores: told.scores, higher })))),
    card("Slices", h("div", { class: "slices" }, ranked.slice(0, 24).map((it) => h("figure", {}, h("figcaption", {}, it.name), cloud({ label: `${told.metric} over ${it.name}`, xs: it.values, ys: told.scores, xName: it.name, yName: told.metric, kinds, open }))))),
    told.left_out ? h("p", { class: "faint" }, `${count(told.left_out)} more parameters are not shown.`) : null,
  ];
}

// For two metrics each: who is beaten in neither.
function pareto({ board, base }) {
  if (board.metrics.length < 2) return null;
  const plots = [];
  for (let a = 0; a < board.metrics.length; a += 1) for (let b = a + 1; b < Math.min(board.metrics.length, 4); b += 1) {
    const places = [], xs = [], ys = [];
    for (let at = 0; at < board.count; at += 1) {
      const x = board.columns[`metric ${a}`][at], y = board.columns[`metric ${b}`][at];
      if (x !== null && y !== null) { places.push(at); xs.push(x); ys.push(y); }
    }
    const better = (metric, value) => (board.metrics[metric].goal === "higher" ? value : -value);
    const order = [...xs.keys()].sort((i, j) => better(a, xs[j]) - better(a, xs[i]) || better(b, ys[j]) - better(b, ys[i]));
    const front = [];
    let most = -Infinity;
    for (const at of order) if (better(b, ys[at]) > most) { most = better(b, ys[at]); front.push(at); }
    const inside = new Set(front);
    plots.push(h("figure", {}, h("figcaption", {}, `${board.metrics[a].name} and ${board.metrics[b].name}: ${count(front.length)} on the front, up to ${score(xs[front[0]])} and ${score(ys[front.at(-1)])}`),
      cloud({ label: `${board.metrics[b].name} over ${board.metrics[a].name}, with the Pareto front`, xs, ys, xName: board.metrics[a].name, yName: board.metrics[b].name, height: 300, line: front, kinds: xs.map((_, at) => (inside.has(at) ? "green" : "blue")), open: (at) => { location.hash = `${base.slice(1)}/node/${board.id(places[at])}`; } })));
  }
  return card("Pareto fronts", h("div", { class: "slices" }, plots));
}
