// Several nodes side by side: scores, tasks and parameters, what differs marked, and their differences.

import { address, ask, query } from "./data.js";
import { button, card, fill, h } from "./dom.js";
import { dollars, duration, score, signed } from "./figures.js";
import { Difference } from "./node.js";

export async function show({ session, asked }) {
  const best = session.summary.best_node, root = String(session.run);
  const names = (asked.get("nodes") || [root, best].filter(Boolean).filter((id, at, all) => all.indexOf(id) === at).join(",")).split(",").filter(Boolean);
  const input = h("input", { value: names.join(", "), "aria-label": "Nodes to compare, with commas between them", size: 40 });
  const go = () => { location.hash = `${session.base.slice(1)}/compare?nodes=${input.value.split(/[\s,]+/).filter(Boolean).join(",")}`; };
  input.addEventListener("keydown", (event) => { if (event.key === "Enter") go(); });
  const choose = h("div", { class: "filters" }, input, button("compare", go), h("span", { class: "faint" }, "up to 8 nodes; the first is what the others are compared with"));
  const body = h("div", { class: "stack" });
  try {
    if (names.length) fill(body, drawn(session, (await ask(`${address(session.id, "compare")}${query({ nodes: names.join(",") })}`)).nodes));
  } catch (error) {
    fill(body, h("p", { class: "notice" }, error.message));
  }
  return { element: h("div", { class: "stack" }, card("Compare", choose), body) };
}

function drawn(session, nodes) {
  const [first] = nodes;
  const group = (title, key, text, shows) => {
    const names = [...new Set(nodes.flatMap((node) => Object.keys(node[key] || {})))].slice(0, 300);
    if (!names.length) return [];
    return [h("tr", {}, h("th", { colspan: nodes.length + 1, class: "group", scope: "colgroup" }, title)), ...names.map((name) => {
      const base = first[key]?.[name];
      const cells = nodes.map((node, at) => {
        const value = node[key]?.[name], other = at > 0 && value !== base;
        return h("td", { class: other ? "other" : undefined }, value === undefined || value === null ? "–" : text(value), other && shows && typeof value === "number" && typeof base === "number" ? h("span", { class: "faint" }, ` ${signed(value - base)}`) : null);
      });
      return h("tr", {}, h("th", { scope: "row" }, name), cells);
    })];
  };
  const about = nodes.map((node) => ({ ...node, about: { ending: node.look, operator: node.operator, "what it tried": node.description, cost: dollars(node.spent.microdollars), time: duration(node.spent.milliseconds / 1000) } }));
  const plain = (title) => {
    const names = Object.keys(about[0].about);
    return [h("tr", {}, h("th", { colspan: nodes.length + 1, class: "group", scope: "colgroup" }, title)), ...names.map((name) => h("tr", {}, h("th", { scope: "row" }, name), about.map((node, at) => h("td", { class: at && node.about[name] !== about[0].about[name] ? "other" : undefined }, node.about[name]))))];
  };
  const table = h("div", { class: "wide", tabindex: "0", role: "group", "aria-label": "comparison" }, h("table", { class: "compare" },
    h("thead", {}, h("tr", {}, h("td"), nodes.map((node) => h("th", { scope: "col" }, h("a", { href: `${session.base}/node/${node.node}` }, node.node))))),
    h("tbody", {}, group("Metrics", "metrics", (value) => score(value), true), group("Tasks", "tasks", (value) => score(value), true), group("Parameters", "params", String, false), plain("The rest"))));
  const differences = nodes.slice(1).map((node) => {
    const made = new Difference(session, node.node, first.node);
    made.load(first.node);
    fill(made.element.querySelector("h2"), `${node.node} against ${first.node}`);
    return made.element;
  });
  return [card("Side by side", table), ...differences];
}
