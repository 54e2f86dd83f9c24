// One campaign: figures, every node's score, every attempt in a table, and what happened last.

import { button, colourOf, fill, h, spaced } from "./dom.js";
import { count, dollars, duration, score, signed } from "./figures.js";
import { Scatter } from "./scatter.js";
import { gauge, section } from "./sections.js";
import { Attempts } from "./attempts.js";

const LONG = 20000;

export async function show({ session }) {
  const go = (place) => { location.hash = `${session.base.slice(1)}/node/${session.board.id(place)}`; };
  const tiles = h("div", { class: "tiles" }), legend = h("div", { class: "legend", role: "group", "aria-label": "Show only nodes of these kinds" });
  const plot = new Scatter({ open: go, label: "Score of every node in the order of opening" });
  const table = new Attempts(session, go, changed);
  const events = h("ol", { class: "events" }), told = h("div", { class: "stack" });
  const draw = () => { plot.set(session.board, session.mask); };

  function changed() {
    session.sieve();
    drawLegend();
    draw();
    table.refresh();
  }

  function drawLegend() {
    const { columns, looks } = session.board, counts = new Uint32Array(looks.length);
    for (let at = 0; at < session.board.count; at += 1) counts[columns.look[at]] += 1;
    const keys = looks.map((look, at) => [look, at]).filter(([, at]) => counts[at] || session.filter.looks.has(at));
    const focus = document.activeElement?.dataset?.look;
    fill(legend, keys.map(([look, at]) => {
      const made = button([h("span", { class: "sign" }, look.sign), ` ${look.word} `, h("span", { class: "faint" }, count(counts[at]))],
        () => { const { looks } = session.filter; if (!looks.delete(at)) looks.add(at); changed(); }, { class: "key", "aria-pressed": session.filter.looks.has(at), "data-look": look.word });
      made.firstChild.style.setProperty("color", colourOf(look.style));
      return made;
    }), h("span", { class: "key-line s-green" }, "━ best kept"), session.summary.control ? h("span", { class: "key-line s-cyan" }, "╌ best of the control") : null);
    if (focus) [...legend.querySelectorAll("button")].find((it) => it.dataset.look === focus)?.focus();
  }

  const drawTiles = () => fill(tiles, tilesOf(session));
  const drawEvents = () => fill(events, [...session.said].reverse().slice(0, 40).map(([at, line, node]) =>
    h("li", {}, h("time", { class: "faint", datetime: at }, at.slice(11, 19)), " ", node ? h("a", { href: `${session.base}/node/${node}` }, line) : line)));
  // To say all that there is to say of a very long campaign takes the server long; who wants it asks for it.
  let wanted = session.board.count <= LONG;
  const sections = spaced(async () => {
    if (!wanted) {
      fill(told, h("section", { class: "card" }, button("load what else there is to say", () => { wanted = true; sections(); })));
      return;
    }
    const found = await session.view(["view", "campaign"], sections);
    fill(told, found.sections.map((it) => section(it, session)));
  }, 5000);
  const slow = spaced(() => { drawLegend(); table.refresh(); }, 500);
  drawTiles();
  drawLegend();
  drawEvents();
  const element = h("div", { class: "stack" }, tiles,
    h("section", { class: "card" }, h("h2", { class: "hidden" }, "Scores"), legend, plot.element),
    h("div", { class: "columns" },
      h("section", { class: "card grow" }, h("h2", {}, "Attempts"), table.element),
      h("div", { class: "side" }, told, h("section", { class: "card" }, h("h2", {}, "What happened last"), events))));
  return {
    element,
    // What takes the server long is asked for when the rest is on the screen.
    shown() { draw(); table.refresh(); requestAnimationFrame(() => setTimeout(sections)); },
    update(kind, told) {
      if (kind === "update" && session.board.present) table.take(told.words);
      if (kind === "again") table.texts.clear();
      if (kind === "theme") { drawLegend(); draw(); return; }
      if (kind !== "update" && kind !== "again") return;
      drawTiles();
      drawEvents();
      draw();
      slow();
      sections();
    },
  };
}

function tile(name, value, more, extra) {
  return h("div", { class: "tile" }, h("div", { class: "tile-name" }, name), h("div", { class: "tile-value" }, value), extra || null, h("div", { class: "tile-more faint" }, more || "\u00a0"));
}

function tilesOf({ summary: it, base, board }) {
  const gain = it.best && it.baseline ? it.best.value - it.baseline.value : null;
  const better = gain !== null && gain !== 0 && (gain > 0) === (it.goal === "higher");
  const ended = board.columns.ended.reduce((sum, at) => sum + (at >= 0 ? 1 : 0), 0);
  return [
    tile(`best ${it.metric}`, [it.best?.text ?? "–", " ", gain ? h("span", { class: `gain ${better ? "s-green" : "s-red"}` }, signed(gain)) : null],
      it.best_node ? ["at ", h("a", { href: `${base}/node/${it.best_node}` }, it.best_node), `; ${count(it.since_improvement)} attempts since`] : "nothing is kept yet"),
    tile("baseline", it.baseline?.text ?? "–", `${it.goal} is better`),
    tile("attempts", count(it.attempts.used), it.attempts.cap ? `of ${count(it.attempts.cap)}, ${count(it.attempts.held)} open` : `${count(it.attempts.held)} open`, gauge(it.attempts.used, it.attempts.held, it.attempts.cap)),
    tile("money", dollars(it.usd.used), it.usd.cap ? `of ${dollars(it.usd.cap)}, ${dollars(it.usd.held)} reserved` : `${dollars(it.usd.held)} reserved`, it.usd.cap ? gauge(it.usd.used, it.usd.held, it.usd.cap) : null),
    tile("pace", it.rate ? `${score(it.rate, 3)}/h` : "–", `${duration(it.elapsed_s)} of work, ${count(ended)} nodes ended`),
    tile("proposer", it.proposer, it.control ? `beside ${it.control}` : "no control"),
  ];
}
