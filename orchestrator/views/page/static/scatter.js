// Score over order: every node a dot, the best so far a stair, the control's best beside it. A hundred thousand dots are
// set pixel by pixel, which takes a few milliseconds; few are drawn as the signs that the legend shows.

import { button, canvas, colour, colourOf, fill, framed, h, sized } from "./dom.js";
import { count, dollars, duration, score, ticks } from "./figures.js";

const LEFT = 58, RIGHT = 14, TOP = 10, BOTTOM = 40, STRIP = 34, NONE = 14;
const SIGNS = 2500;
const SAMPLE = 4000;
const NEAR = 14;

export class Scatter {
  constructor({ open, label }) {
    this.open = open;
    this.view = null; // null is all of it, and what will come
    this.at = -1;
    this.tip = h("div", { class: "tip", hidden: true, role: "status" });
    this.box = h("div", { class: "plot", tabindex: "0", role: "application", "aria-label": `${label}. Arrow keys go from node to node, Enter opens one, plus and minus zoom, 0 shows all.` });
    this.main = canvas(this.box, label);
    this.box.append(this.tip);
    this.whole = button("show all", () => this.zoom(null), { class: "small", hidden: true });
    this.said = h("span", { class: "faint" });
    this.stripBox = h("div", { class: "strip" });
    this.strip = canvas(this.stripBox, "The whole run; drag to move the part that is shown");
    this.element = h("div", { class: "scatter" }, this.box, this.stripBox, h("div", { class: "plot-foot" }, this.said, this.whole));
    this.draw = framed(() => this.paint());
    new ResizeObserver(this.draw).observe(this.box);
    this.listen();
  }

  set(board, mask) {
    this.board = board;
    this.mask = mask;
    this.layered = "";
    this.draw();
  }

  get range() { return this.view || [-0.5, Math.max(1, this.board.count) - 0.5]; }

  zoom(view) {
    const most = this.board.count - 0.5;
    if (view) {
      const wide = Math.max(3, view[1] - view[0]);
      const from = Math.max(-0.5, Math.min(view[0], most - wide));
      view = [from, Math.min(most, from + wide)];
      if (view[0] <= -0.5 && view[1] >= most) view = null;
    }
    this.view = view;
    this.whole.hidden = !view;
    this.draw();
  }

  // What most scores lie between, and every step of the stair; what is beyond is drawn at the edge.
  domain(first, last) {
    const { score: scores, steps, count: all } = this.board;
    const stride = Math.max(1, Math.floor((last - first) / SAMPLE)), found = [];
    for (let at = first; at < last; at += stride)
      if (scores[at] !== null && this.mask[at]) found.push(scores[at]);
    found.sort((a, b) => a - b);
    const cut = found.length > 40 ? 0.02 : 0;
    let low = found[Math.floor(found.length * cut)] ?? Infinity;
    let high = found[Math.ceil(found.length * (1 - cut)) - 1] ?? -Infinity;
    steps.forEach(([place, value], at) => {
      const until = steps[at + 1]?.[0] ?? all;
      if (until >= first && place < last) { low = Math.min(low, value); high = Math.max(high, value); }
    });
    if (!Number.isFinite(low)) return [0, 1];
    const pad = (high - low) * 0.06 || Math.abs(high) * 0.05 || 0.5;
    return [low - pad, high + pad];
  }

  paint() {
    if (!this.board || !this.box.isConnected) return;
    const width = this.box.clientWidth, height = this.box.clientHeight;
    if (width < 50 || height < 50) return;
    const { context, ratio } = sized(this.main, width, height);
    const [from, to] = this.range, right = width - RIGHT, bottom = height - BOTTOM;
    const first = Math.max(0, Math.floor(from)), last = Math.min(this.board.count, Math.ceil(to) + 1);
    const [low, high] = this.domain(first, last);
    this.x = (place) => LEFT + ((place - from) / (to - from)) * (right - LEFT);
    this.y = (value) => TOP + (1 - (Math.max(low, Math.min(high, value)) - low) / (high - low)) * (bottom - TOP);
    this.none = bottom + NONE;
    this.place = (x) => from + ((x - LEFT) / (right - LEFT)) * (to - from);
    context.clearRect(0, 0, width, height);
    this.axes(context, { low, high, from, to, right, bottom });
    context.save();
    context.beginPath();
    context.rect(LEFT - 6, 0, right - LEFT + 12, height);
    context.clip();
    this.cohorts(context, bottom);
    if (last - first > SIGNS) {
      // Only the ring moves while somebody points: the dots stay as they are.
      const layered = [from, to, low, high, ratio, width, height].join();
      if (this.layered !== layered) this.pixels(first, last, ratio, width, height);
      this.layered = layered;
      context.drawImage(this.layer, 0, 0, width, height);
    } else this.signs(context, first, last, low, high);
    this.stair(context, this.control(), colour("cyan"), [4, 4], 1.25);
    this.stair(context, this.board.steps, colour("green"), [], 2);
    if (this.at >= 0) this.ring(context, this.at);
    context.restore();
    if (this.brush) {
      context.fillStyle = colour("brush");
      context.fillRect(Math.min(...this.brush), TOP, Math.abs(this.brush[1] - this.brush[0]), bottom - TOP + NONE + 8);
    }
    fill(this.said, `${this.board.metrics[0].name}, ${this.board.metrics[0].goal} is better · nodes ${count(first + 1)}–${count(last)} of ${count(this.board.count)}`, h("span", { class: "no-print" }, " · drag to zoom"));
    this.paintStrip();
  }

  axes(context, { low, high, from, to, right, bottom }) {
    context.font = "11px system-ui, sans-serif";
    context.strokeStyle = colour("line");
    context.fillStyle = colour("faint");
    context.lineWidth = 1;
    context.textBaseline = "middle";
    context.textAlign = "right";
    for (const value of ticks(low, high, (bottom - TOP) / 44)) {
      const y = Math.round(this.y(value)) + 0.5;
      context.beginPath();
      context.moveTo(LEFT, y);
      context.lineTo(right, y);
      context.stroke();
      context.fillText(score(value, 5), LEFT - 8, y);
    }
    context.fillText("no score", LEFT - 8, this.none);
    context.textAlign = "center";
    for (const value of ticks(Math.max(1, from + 1), Math.max(2, to + 1), (right - LEFT) / 110))
      if (Number.isInteger(value)) context.fillText(count(value), this.x(value - 1), bottom + 30);
  }

  // Scores left and right of such a line were measured under other conditions.
  cohorts(context, bottom) {
    const { cohort } = this.board.columns, seen = new Set();
    if (this.board.cohorts.length < 2) return;
    context.strokeStyle = colour("faint");
    context.setLineDash([2, 4]);
    for (let at = 0; at < this.board.count; at += 1) {
      if (cohort[at] < 0 || seen.has(cohort[at])) continue;
      if (seen.size) {
        context.beginPath();
        context.moveTo(this.x(at - 0.5), TOP);
        context.lineTo(this.x(at - 0.5), bottom);
        context.stroke();
      }
      seen.add(cohort[at]);
    }
    context.setLineDash([]);
  }

  pixels(first, last, ratio, width, height) {
    const wide = Math.round(width * ratio), high = Math.round(height * ratio);
    if (!this.layer || this.layer.width !== wide || this.layer.height !== high) {
      this.layer = document.createElement("canvas");
      this.layer.width = wide;
      this.layer.height = high;
    }
    const inner = this.layer.getContext("2d"), image = inner.createImageData(wide, high);
    const dots = new Uint32Array(image.data.buffer);
    const packed = this.board.looks.map((look) => packedColour(colourOf(look.style)));
    const { look } = this.board.columns, { score: scores } = this.board;
    const size = Math.max(2, Math.round((last - first > 20000 ? 1.5 : 2.5) * ratio)), half = size >> 1;
    const kept = this.board.looks.findIndex((it) => it.word === "kept");
    // What is kept lies above the rest.
    for (const above of [false, true]) {
      for (let at = first; at < last; at += 1) {
        if (!this.mask[at] || (look[at] === kept) !== above) continue;
        const x = Math.round(this.x(at) * ratio) - half;
        const y = Math.round((scores[at] === null ? this.none : this.y(scores[at])) * ratio) - half;
        const ink = packed[look[at]], big = above ? size + 1 : size;
        for (let row = Math.max(0, y); row < y + big && row < high; row += 1)
          for (let column = Math.max(0, x); column < x + big && column < wide; column += 1) dots[row * wide + column] = ink;
      }
    }
    inner.putImageData(image, 0, 0);
  }

  signs(context, first, last, low, high) {
    const { columns, score: scores } = this.board;
    const size = last - first > 800 ? 2.6 : last - first > 200 ? 3.4 : 4.4;
    for (let at = first; at < last; at += 1) {
      if (!this.mask[at]) continue;
      const look = this.board.looks[columns.look[at]], value = scores[at];
      const x = this.x(at), y = value === null ? this.none : this.y(value);
      context.strokeStyle = context.fillStyle = colourOf(look.style);
      if (value !== null && (value < low || value > high)) arrow(context, x, y, size, value > high);
      else sign(context, look.word, x, y, size, columns.screened[at]);
    }
  }

  // The best of the control up to each node, in the cohort that it was measured in.
  control() {
    const { columns, score: scores, count: all, higher } = this.board;
    if (this.controlled?.seq === this.board.seq && this.controlled.count === all) return this.controlled.steps;
    const role = this.board.roles.indexOf("control"), steps = [];
    let best = null, cohort = null;
    for (let at = 0; at < all; at += 1) {
      if (columns.role[at] !== role || scores[at] === null) continue;
      const fresh = columns.cohort[at] !== cohort;
      if (!fresh && best !== null && (higher ? scores[at] <= best : scores[at] >= best)) continue;
      best = scores[at];
      cohort = columns.cohort[at];
      steps.push([at, best, at, fresh ? 1 : 0]);
    }
    this.controlled = { seq: this.board.seq, count: all, steps };
    return steps;
  }

  stair(context, steps, ink, dash, wide) {
    context.strokeStyle = ink;
    context.lineWidth = wide;
    context.setLineDash(dash);
    context.beginPath();
    steps.forEach(([place, value, , fresh], at) => {
      const x = this.x(place), y = this.y(value);
      if (fresh || at === 0) context.moveTo(x, y);
      else context.lineTo(x, y);
      const next = steps[at + 1];
      context.lineTo(this.x(next ? (next[3] ? next[0] - 1 : next[0]) : this.board.count - 0.5), y);
    });
    context.stroke();
    context.setLineDash([]);
  }

  ring(context, place) {
    const value = this.board.score[place];
    context.strokeStyle = colour("ink");
    context.lineWidth = 1.5;
    context.beginPath();
    context.arc(this.x(place), value === null ? this.none : this.y(value), 8, 0, 7);
    context.stroke();
  }

  paintStrip() {
    const width = this.stripBox.clientWidth, { context } = sized(this.strip, width, STRIP);
    const { score: scores, count: all, columns } = this.board, [low, high] = this.domain(0, all);
    const x = (place) => LEFT + ((place + 0.5) / all) * (width - RIGHT - LEFT);
    context.clearRect(0, 0, width, STRIP);
    context.fillStyle = colour("strip");
    const stride = Math.max(1, Math.floor(all / 3000));
    for (let at = 0; at < all; at += stride) {
      if (scores[at] === null || !this.mask[at]) continue;
      const share = (Math.max(low, Math.min(high, scores[at])) - low) / (high - low);
      context.fillRect(x(at), 2 + (1 - share) * (STRIP - 6), 1.5, 1.5);
    }
    const [from, to] = this.range;
    context.strokeStyle = colour("accent");
    context.lineWidth = 1.5;
    context.strokeRect(x(from - 0.5) + 1, 1, Math.max(4, x(to - 0.5) - x(from - 0.5) - 2), STRIP - 2);
    void columns;
  }

  nearest(x, y) {
    const [from, to] = this.range, { score: scores } = this.board;
    const first = Math.max(0, Math.floor(Math.max(from, this.place(x - NEAR)))), last = Math.min(this.board.count, Math.ceil(Math.min(to, this.place(x + NEAR))) + 1);
    let best = -1, least = NEAR * NEAR;
    for (let at = first; at < last; at += 1) {
      if (!this.mask[at]) continue;
      const dx = this.x(at) - x, dy = (scores[at] === null ? this.none : this.y(scores[at])) - y, far = dx * dx + dy * dy;
      if (far < least) { least = far; best = at; }
    }
    return best;
  }

  tell(place) {
    this.at = place;
    this.tip.hidden = place < 0;
    this.draw();
    if (place < 0) return;
    const { columns, operators, models } = this.board, look = this.board.look(place), value = this.board.score[place];
    const cost = [columns.microdollars[place] ? dollars(columns.microdollars[place]) : "", duration(columns.milliseconds[place] / 1000)].filter(Boolean);
    fill(this.tip, h("b", {}, this.board.id(place)), ` ${look.sign} ${look.word}`, h("br"),
      `${this.board.metrics[0].name} ${columns.screened[place] ? "~" : ""}${score(value)}`, h("br"),
      h("span", { class: "faint" }, [operators[columns.operator[place]], models[columns.model[place]], ...cost].filter(Boolean).join(" · ")));
    const x = this.x(place), y = value === null ? this.none : this.y(value);
    this.tip.style.setProperty("left", `${Math.min(x + 12, this.box.clientWidth - 200)}px`);
    this.tip.style.setProperty("top", `${Math.max(0, y - 58)}px`);
  }

  step(by) {
    const [from, to] = this.range;
    let at = this.at < 0 ? (by > 0 ? Math.ceil(from) - 1 : Math.floor(to) + 1) : this.at;
    do at += by; while (at >= 0 && at < this.board.count && !this.mask[at]);
    if (at < 0 || at >= this.board.count) return;
    const away = this.view && (at < from || at > to);
    if (away) this.zoom([from + (at - this.at), to + (at - this.at)]);
    if (away || !this.x) this.paint();
    this.tell(at);
  }

  scale(factor, around) {
    const [from, to] = this.range, middle = around ?? (this.at >= 0 ? this.at : (from + to) / 2);
    this.zoom([middle - (middle - from) * factor, middle + (to - middle) * factor]);
  }

  listen() {
    const where = (event) => { const box = this.main.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
    this.box.addEventListener("pointermove", (event) => {
      if (!this.board || !this.x) return;
      const [x, y] = where(event);
      if (this.brush) { this.brush[1] = x; this.draw(); } else this.tell(this.nearest(x, y));
    });
    this.box.addEventListener("pointerdown", (event) => {
      if (event.button || !this.x) return;
      const [x] = where(event);
      this.brush = [x, x];
      this.box.setPointerCapture(event.pointerId);
    });
    this.box.addEventListener("pointerup", (event) => {
      if (!this.brush) return;
      const [from, to] = [Math.min(...this.brush), Math.max(...this.brush)];
      this.brush = null;
      if (to - from > 6) this.zoom([this.place(from), this.place(to)]);
      else { const place = this.nearest(...where(event)); if (place >= 0) this.open(place); }
      this.draw();
    });
    this.box.addEventListener("pointercancel", () => { this.brush = null; this.draw(); });
    this.box.addEventListener("pointerleave", () => { if (!this.brush) this.tell(-1); });
    this.box.addEventListener("dblclick", () => this.zoom(null));
    this.box.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      this.scale(event.deltaY > 0 ? 1.25 : 0.8, this.place(where(event)[0]));
    }, { passive: false });
    this.box.addEventListener("keydown", (event) => {
      const keys = { ArrowRight: () => this.step(1), ArrowLeft: () => this.step(-1), "+": () => this.scale(0.6), "-": () => this.scale(1.7), 0: () => this.zoom(null),
        Enter: () => this.at >= 0 && this.open(this.at), Escape: () => this.tell(-1) };
      if (!(event.key in keys)) return;
      event.preventDefault();
      keys[event.key]();
    });
    const slide = (event) => {
      if (!this.view || !(event.buttons & 1)) return;
      const box = this.stripBox.getBoundingClientRect(), wide = this.view[1] - this.view[0];
      const middle = ((event.clientX - box.left - LEFT) / (box.width - LEFT - RIGHT)) * this.board.count;
      this.zoom([middle - wide / 2, middle + wide / 2]);
    };
    this.stripBox.addEventListener("pointerdown", slide);
    this.stripBox.addEventListener("pointermove", slide);
  }
}

export function sign(context, word, x, y, size, hollow = false) {
  context.lineWidth = 1.4;
  context.beginPath();
  if (word === "kept") {
    context.arc(x, y, size + 0.6, 0, 7);
    if (hollow) context.stroke(); else context.fill();
  } else if (word === "discarded") {
    context.arc(x, y, size, 0, 7);
    context.stroke();
  } else if (word === "control") {
    context.moveTo(x, y - size - 1);
    context.lineTo(x + size + 1, y);
    context.lineTo(x, y + size + 1);
    context.lineTo(x - size - 1, y);
    context.closePath();
    context.stroke();
  } else if (word === "running" || word === "queued") {
    context.moveTo(x - size, y - size);
    context.lineTo(x + size, y);
    context.lineTo(x - size, y + size);
    context.closePath();
    context.fill();
  } else if (["stalled", "infrastructure", "interrupted", "quarantined", "held", "cancelled", "pruned"].includes(word)) {
    context.rect(x - size + 0.6, y - size + 0.6, 2 * size - 1.2, 2 * size - 1.2);
    context.stroke();
  } else {
    context.moveTo(x - size, y - size);
    context.lineTo(x + size, y + size);
    context.moveTo(x + size, y - size);
    context.lineTo(x - size, y + size);
    context.stroke();
  }
}

function arrow(context, x, y, size, up) {
  const way = up ? -1 : 1;
  context.beginPath();
  context.moveTo(x, y + way * size);
  context.lineTo(x + size, y - way * size);
  context.lineTo(x - size, y - way * size);
  context.closePath();
  context.fill();
}

function packedColour(text) {
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}
