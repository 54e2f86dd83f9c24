// What the server tells, and what is kept of it here: the columns of a run, and the stream that changes them.

export class Refused extends Error {}

export async function ask(path) {
  const answer = await fetch(`api/${path}`, { credentials: "same-origin" });
  let told = null;
  try { told = await answer.json(); } catch { told = null; }
  if (!answer.ok) throw new Refused(told?.error || `the server answered ${answer.status}`);
  return told;
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

  apply(update) {
    for (const [name, more] of Object.entries(update.names || {})) this[name].push(...more);
    for (const [place, ...row] of update.rows) {
      this.names.forEach((name, at) => { this.columns[name][place] = row[at]; });
      this.count = Math.max(this.count, place + 1);
    }
    if (update.steps) {
      this.steps = update.steps;
      this.champion = update.champion;
    }
    this.seq = update.seq;
  }

  look(place) { return this.looks[this.columns.look[place]]; }

  get higher() { return this.metrics[0].goal === "higher"; }
}

// One stream for the campaign that is looked at; views listen to it.
export class Stream {
  constructor(id, after, hear) {
    this.source = new EventSource(`api/${id ? address(id, "updates") : "updates"}${query({ after })}`);
    for (const kind of ["update", "again", "live", "failed", "rows"])
      this.source.addEventListener(kind, (event) => hear(kind, JSON.parse(event.data)));
    this.source.addEventListener("open", () => hear("open"));
    this.source.addEventListener("error", () => hear(this.source.readyState === 2 ? "closed" : "lost"));
  }
  close() { this.source.close(); }
}
