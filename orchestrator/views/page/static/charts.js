// Small plots: bars, slices of a parameter, parallel coordinates, two metrics against each other, a sum that grows.

import { canvas, colour, framed, h, sized } from "./dom.js";
import { score, ticks } from "./figures.js";

export function bars(rows, { signed = false, whole = 1e-12 } = {}) {
  const most = Math.max(...rows.map((row) => Math.abs(row.value)), whole);
  return h("div", { class: `bars${signed ? " signed" : ""}` }, rows.map((row) => {
    const fillOf = h("span", { class: `bar${row.value < 0 ? " minus" : ""}${row.kind ? ` b-${row.kind}` : ""}` });
    fillOf.style.setProperty("width", `${(100 * Math.abs(row.value)) / most / (signed ? 2 : 1)}%`);
    return [h("span", { class: "bar-name" }, row.name), h("span", { class: "bar-track" }, fillOf), h("span", { class: "bar-text" }, row.text)];
  }));
}

// Parts of a whole, one beside the other.
export function parts(rows) {
  const all = rows.reduce((sum, row) => sum + row.value, 0) || 1;
  return h("div", {}, h("div", { class: "parts" }, rows.map((row, at) => {
    const made = h("span", { class: `part part-${at % 6}` });
    made.style.setProperty("width", `${(100 * row.value) / all}%`);
    return made;
  })), h("ul", { class: "keys" }, rows.map((row, at) => h("li", {}, h("span", { class: `dot part-${at % 6}` }), ` ${row.name} `, h("b", {}, row.text), h("span", { class: "faint" }, ` ${Math.round((100 * row.value) / all)} %`)))));
}

// A canvas that is drawn when it has a size, and again when that changes.
function drawnOn(label, height, draw) {
  const box = h("div", { class: "small-plot" }), made = canvas(box, label);
  box.style.setProperty("height", `${height}px`);
  const paint = framed(() => {
    if (!box.isConnected || box.clientWidth < 20) return;
    const { context } = sized(made, box.clientWidth, height);
    context.clearRect(0, 0, box.clientWidth, height);
    context.font = "11px system-ui, sans-serif";
    draw(context, box.clientWidth, height);
  });
  new ResizeObserver(paint).observe(box);
  box.paint = paint;
  return box;
}

// Points by two columns. `kinds` names a colour for each; words stand beside each other in the order in which they come.
export function cloud({ label, xs, ys, xName, yName, kinds, height = 190, line, open }) {
  const x = scaleOf(xs), y = scaleOf(ys);
  const spots = [];
  const box = drawnOn(label, height, (context, width) => {
    const [left, right, top, bottom] = [48, width - 22, 8, height - 30];
    const px = (value) => left + x.share(value) * (right - left), py = (value) => bottom - y.share(value) * (bottom - top);
    context.strokeStyle = colour("line");
    context.fillStyle = colour("faint");
    context.textBaseline = "middle";
    context.textAlign = "right";
    for (const at of y.ticks(4)) {
      const where = Math.round(py(at.value)) + 0.5;
      context.beginPath(); context.moveTo(left, where); context.lineTo(right, where); context.stroke();
      context.fillText(at.text, left - 6, where);
    }
    context.textAlign = "center";
    for (const at of x.ticks(Math.max(3, Math.floor((right - left) / 45)))) context.fillText(at.text, px(at.value), bottom + 11);
    context.fillText(`${xName}`, (left + right) / 2, bottom + 24);
    void yName;
    spots.length = 0;
    xs.forEach((value, at) => {
      if (value === null || ys[at] === null) return;
      context.fillStyle = colour(kinds?.[at] || "blue");
      context.globalAlpha = xs.length > 400 ? 0.5 : 0.85;
      const [cx, cy] = [px(value), py(ys[at])];
      spots.push([cx, cy, at]);
      context.beginPath(); context.arc(cx, cy, xs.length > 2000 ? 1.5 : 2.8, 0, 7); context.fill();
    });
    context.globalAlpha = 1;
    if (line?.length) {
      context.strokeStyle = colour("green");
      context.lineWidth = 2;
      context.beginPath();
      line.forEach((at, index) => (index ? context.lineTo(px(xs[at]), py(ys[at])) : context.moveTo(px(xs[at]), py(ys[at]))));
      context.stroke();
    }
  });
  if (open) box.addEventListener("click", (event) => {
    const area = box.getBoundingClientRect(), [cx, cy] = [event.clientX - area.left, event.clientY - area.top];
    const near = spots.reduce((best, spot) => (Math.hypot(spot[0] - cx, spot[1] - cy) < Math.hypot(best[0] - cx, best[1] - cy) ? spot : best), [1e9, 1e9, -1]);
    if (Math.hypot(near[0] - cx, near[1] - cy) < 10) open(near[2]);
  });
  return box;
}

function scaleOf(values) {
  const there = values.filter((value) => value !== null && value !== undefined);
  if (there.every((value) => typeof value === "number")) {
    let low = Infinity, high = -Infinity;
    for (const value of there) { low = Math.min(low, value); high = Math.max(high, value); }
    const logs = low > 0 && high / low > 500, turn = logs ? Math.log10 : (value) => value;
    const [from, to] = [turn(low), turn(high)], span = to - from || 1;
    return {
      share: (value) => (to === from ? 0.5 : (turn(value) - from) / span),
      ticks: (wanted) => (logs ? ticks(from, to, wanted).map((it) => 10 ** it) : ticks(low, high, wanted)).map((value) => ({ value, text: score(value, 3) })),
    };
  }
  const names = [...new Set(there.map(String))].slice(0, 40);
  return {
    share: (value) => (names.length < 2 ? 0.5 : Math.max(0, names.indexOf(String(value))) / (names.length - 1)),
    ticks: () => names.slice(0, 12).map((name) => ({ value: name, text: name.length > 12 ? `${name.slice(0, 11)}…` : name })),
  };
}

// Every node a line through its parameters to its score; the better, the stronger.
export function parallel({ label, axes, scores, higher, height = 300 }) {
  const scales = axes.map((axis) => scaleOf(axis.values)), order = [...scores.keys()].sort((a, b) => (higher ? scores[a] - scores[b] : scores[b] - scores[a]));
  return drawnOn(label, height, (context, width) => {
    const top = 26, bottom = height - 12, x = (at) => 46 + (at / Math.max(1, axes.length - 1)) * (width - 110);
    const y = (at, value) => bottom - scales[at].share(value) * (bottom - top);
    const lines = order.slice(-2000);
    lines.forEach((node, rank) => {
      const share = rank / Math.max(1, lines.length - 1);
      context.strokeStyle = colour(share > 0.9 ? "green" : share > 0.5 ? "blue" : "strip");
      context.globalAlpha = 0.12 + 0.6 * share ** 3;
      context.lineWidth = share > 0.9 ? 1.6 : 1;
      context.beginPath();
      let begun = false;
      axes.forEach((axis, at) => {
        const value = axis.values[node];
        if (value === null || value === undefined) return;
        if (begun) context.lineTo(x(at), y(at, value)); else context.moveTo(x(at), y(at, value));
        begun = true;
      });
      context.stroke();
    });
    context.globalAlpha = 1;
    context.textBaseline = "middle";
    axes.forEach((axis, at) => {
      context.strokeStyle = colour("faint");
      context.lineWidth = 1;
      context.beginPath(); context.moveTo(x(at), top); context.lineTo(x(at), bottom); context.stroke();
      context.fillStyle = colour("ink");
      context.textAlign = "center";
      context.fillText(axis.name.length > 16 ? `${axis.name.slice(0, 15)}…` : axis.name, x(at), 10);
      context.textAlign = "left";
      // Lines begin and end here: a number is read on a patch of its own.
      for (const tick of scales[at].ticks(4)) {
        const where = Math.max(top + 5, Math.min(bottom - 5, y(at, tick.value)));
        context.fillStyle = colour("card");
        context.fillRect(x(at) + 3, where - 7, context.measureText(tick.text).width + 4, 14);
        context.fillStyle = colour("faint");
        context.fillText(tick.text, x(at) + 5, where);
      }
    });
  });
}

// A sum over attempts, and the cap that it must not pass.
export function growing({ label, values, text, cap, height = 170 }) {
  const sums = [];
  values.reduce((sum, value, at) => { sums[at] = sum + value; return sums[at]; }, 0);
  const most = Math.max(sums.at(-1) || 0, 1e-9), top = cap && cap < most * 4 ? Math.max(cap, most) : most;
  return drawnOn(label, height, (context, width) => {
    const [left, right, bottom] = [62, width - 8, height - 22];
    const y = (value) => bottom - (value / top) * (bottom - 10), x = (at) => left + (at / Math.max(1, sums.length - 1)) * (right - left);
    context.fillStyle = colour("faint");
    context.strokeStyle = colour("line");
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (const value of ticks(0, top, 4)) {
      context.beginPath(); context.moveTo(left, y(value)); context.lineTo(right, y(value)); context.stroke();
      context.fillText(text(value), left - 6, y(value));
    }
    context.textAlign = "center";
    for (const value of ticks(1, Math.max(2, sums.length), right / 140)) if (Number.isInteger(value)) context.fillText(value.toLocaleString("en"), x(value - 1), bottom + 12);
    context.strokeStyle = colour("accent");
    context.lineWidth = 2;
    context.beginPath();
    const stride = Math.max(1, Math.floor(sums.length / 2000));
    for (let at = 0; at < sums.length; at += stride) context.lineTo(x(at), y(sums[at]));
    context.stroke();
    if (cap && cap <= top) {
      context.strokeStyle = colour("red");
      context.setLineDash([5, 4]);
      context.beginPath(); context.moveTo(left, y(cap)); context.lineTo(right, y(cap)); context.stroke();
      context.setLineDash([]);
    }
  });
}
