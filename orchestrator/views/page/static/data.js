// What the server tells, and what is kept of it here: the columns of a run, and the stream that changes them.

import { isExported, recorded } from "./exported.js";

export class Refused extends Error {}

export async function ask(path) {
  if (isExported) return remembered(path);
  const answer = await fetch(`api/${path}`, { credentials: "same-origin" });
  if (answer.ok && answer.headers.get("content-type") === "application/octet-stream") return unpacked(await answer.arrayBuffer());
  let told = null;
  try { told = await answer.json(); } catch { told = null; }
  if (!answer.ok) throw new Refused(told?.error || `the server answered ${answer.status}`);
  return told;
}

async function remembered(path) {
  const told = await recorded(path);
  if (!told || told.error) throw new Refused(told?.error || "this is not in the file; blastdoor serve shows it");
  return told;
}

const KINDS = { b: Int8Array, h: Int16Array, i: Int32Array, d: Float64Array };

// Columns of numbers as bytes, after what is told of them. Most stay as they came; a missing number is null in a list.
function unpacked(buffer) {
  const even = (size) => size + ((8 - (size % 8)) % 8), size = new DataView(buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, size))), columns = {};
  let at = 8 + even(size);
  for (const [name, kind, timed] of head.columns) {
    const told = new KINDS[kind](buffer, at, head.count), values = timed || kind === "d" ? new Array(head.count) : told;
    at += even(told.byteLength);
    if (timed) for (let row = 0, sum = 0; row < told.length; row += 1) { sum += told[row]; values[row] = sum / 10; }
    else if (kind === "d") for (let row = 0; row < told.length; row += 1) values[row] = Number.isNaN(told[row]) ? null : told[row];
    columns[name] = values;
  }
  return { ...head, columns };
}

export const address = (id, ...words) => ["campaign", id, ...words.map(encodeURIComponent)].join("/");

export function query(values) {
  const found = Object.entries(values).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return found.length ? `?${new URLSearchParams(found)}` : "";
}

export class Board {
  constructor(told) {
    Object.assign(this, told);
    this.names = Object.keys(told.columns);
    this.score = told.columns["metric 0"];
    this.ids = [];
    this.places = null;
  }

  // A place is told by its parent and which child it is: a hundred thousand names would be most of what is sent.
  id(place) {
    if (this.ids[place] === undefined) {
      const { parent, child } = this.columns;
      this.ids[place] = parent[place] < 0 ? String(child[place]) : `${this.id(parent[place])}.${child[place]}`;
    }
    return this.ids[place];
  }

  place(id) {
    if (!this.places || this.places.size !== this.count) {
      this.places = new Map();
      for (let at = 0; at < this.count; at += 1) this.places.set(this.id(at), at);
    }
    return this.places.get(id) ?? -1;
  }

  // A list can grow, and holds numbers of any size.
  list(name) {
    const known = this.columns[name];
    if (Array.isArray(known)) return known;
    const made = new Array(this.count);
    for (let at = 0; at < made.length; at += 1) made[at] = known[at];
    return (this.columns[name] = made);
  }

  apply(update) {
    for (const [name, more] of Object.entries(update.names || {})) this[name].push(...more);
    const lists = update.rows.length ? this.names.map((name) => this.list(name)) : [];
    for (const [place, ...row] of update.rows) {
      lists.forEach((list, at) => { list[place] = row[at]; });
      this.count = Math.max(this.count, place + 1);
    }
    if (update.steps) {
      this.steps = update.steps;
      this.champion = update.champion;
    }
    this.seq = update.seq;
    this.mark = update.mark;
  }

  look(place) { return this.looks[this.columns.look[place]]; }

  get higher() { return this.metrics[0].goal === "higher"; }
}

// One stream for the campaign that is looked at; views listen to it.
export class Stream {
  constructor(id, after, hear) {
    if (isExported) return; // nothing will change
    this.source = new EventSource(`api/${id ? address(id, "updates") : "updates"}${query({ after })}`);
    for (const kind of ["update", "again", "live", "failed", "rows"])
      this.source.addEventListener(kind, (event) => hear(kind, JSON.parse(event.data)));
    this.source.addEventListener("open", () => hear("open"));
    this.source.addEventListener("error", () => hear(this.source.readyState === 2 ? "closed" : "lost"));
  }
  close() { this.source?.close(); }
}
