// Looks on while tests of a Node package run: where the time goes, and what its exported functions are asked and answer.
// It is required before anything else (NODE_OPTIONS), in every process; Node's own modules only, Node 18 up.
//
// The plan (BLASTDOOR_PLAN) names the `files` whose exports are watched and the `seconds` after which a process ends.
// Each process leaves one file in BLASTDOOR_SEEN. Everything in it is the word of a stranger's code.
"use strict";

const fs = require("node:fs");
const inspector = require("node:inspector");
const Module = require("node:module");
const path = require("node:path");
const { fileURLToPath, pathToFileURL } = require("node:url");
const { isMainThread } = require("node:worker_threads");
const { NotPlain, encode } = require("./blastdoor_batch.cjs");

const SEEN = 20_000;
const KEPT = 300;
const ERRORS = 20;
const CALL_BYTES = 1 << 19;
const ALL_BYTES = 1 << 20;
const FUNCTIONS = 60;
const FLUSH_MS = 2000;
const SAMPLE_US = 500;
const HOOK = "__blastdoor_watch__";

const plan = JSON.parse(fs.readFileSync(process.env.BLASTDOOR_PLAN, "utf8"));
const root = process.env.BLASTDOOR_ROOT;
const wanted = new Set(plan.files.map((name) => path.join(root, name)));
const out = path.join(process.env.BLASTDOOR_SEEN, `${process.pid}.json`);
const watched = [];
let ours = 0; // milliseconds that looking on took
let written = performance.now();

class Watched {
  constructor(file, name, code) {
    Object.assign(this, { file, name, code, seen: 0, calls: 0, inside: 0, ms: 0, bytes: 0, errors: 0, why: "" });
    this.kept = new Map();
  }

  called(target, self, given, owner) {
    if (this.inside) return Reflect.apply(target, self, given);
    this.calls++;
    this.inside++;
    const before = this.seen++ < SEEN && (self === undefined || self === owner || self === globalThis) ? this.asked(given) : null;
    const began = performance.now();
    const spent = ours;
    let well = true;
    let value;
    try {
      value = Reflect.apply(target, self, given);
      return value;
    } catch (error) {
      well = false;
      value = String((error && error.name) || typeof error);
      throw error;
    } finally {
      this.ms += performance.now() - began - (ours - spent);
      this.inside--;
      if (before) this.keep(before, given, well, value);
    }
  }

  asked(given) {
    return this.encoded([given, {}]);
  }

  keep(before, given, well, value) {
    const key = before.toString("latin1");
    if (this.kept.has(key) || (!well && this.errors >= ERRORS)) return;
    const after = this.encoded([given, {}]);
    if (!after || !after.equals(before)) {
      this.why ||= "it changes its arguments";
      return;
    }
    const whole = this.encoded([given, {}, well, value]);
    if (!whole || this.kept.size >= KEPT || this.bytes + whole.length > ALL_BYTES) return;
    this.kept.set(key, whole);
    this.bytes += whole.length;
    if (!well) this.errors++;
    if (performance.now() - written > FLUSH_MS) write([]);
  }

  encoded(value) {
    const began = performance.now();
    try {
      const data = encode(value);
      if (data.length <= CALL_BYTES) return data;
      this.why ||= `a call of more than ${CALL_BYTES >> 10} KiB`;
    } catch (error) {
      this.why ||= error instanceof NotPlain ? error.message : String(error.name);
    } finally {
      ours += performance.now() - began;
    }
    return null;
  }

  told() {
    const calls = [...this.kept.values()].map((data) => data.toString("base64"));
    return { file: path.relative(root, this.file), name: this.name, code: this.code, calls: this.calls, seconds: this.ms / 1000, why: this.why, errors: this.errors, kept: calls };
  }
}

function watch(value, file, name, owner) {
  if (typeof value !== "function" || watched.length >= FUNCTIONS || /^class\b/.test(Function.prototype.toString.call(value))) return value;
  const it = new Watched(file, name, value.name);
  watched.push(it);
  return new Proxy(value, { apply: (target, self, given) => it.called(target, self, given, owner()) });
}

// What a file of CommonJS exports is replaced before anybody has it.
const usual = Module.prototype._compile;
Module.prototype._compile = function (content, file) {
  const result = usual.apply(this, arguments);
  if (wanted.has(file)) {
    const all = this.exports;
    if (typeof all === "function") this.exports = watch(all, file, "module.exports", () => undefined);
    if (all && (typeof all === "object" || typeof all === "function")) {
      for (const name of Object.keys(all)) {
        const own = Object.getOwnPropertyDescriptor(all, name);
        if (own.writable && typeof own.value === "function" && own.value !== all) all[name] = watch(own.value, file, name, () => all);
      }
    }
  }
  return result;
};

// Of ECMAScript modules the text gets a line more, by which each exported function is replaced where it stands.
globalThis[HOOK] = (value, file, name) => watch(value, file, name, () => undefined);
if (isMainThread && Module.register) {
  const hooks = `
    import { readFileSync } from "node:fs";
    import { fileURLToPath } from "node:url";
    const wanted = new Set(${JSON.stringify([...wanted])});
    export async function load(url, context, next) {
      const found = await next(url, context);
      const file = url.startsWith("file:") ? fileURLToPath(url) : "";
      if (!wanted.has(file) || found.format !== "module" || !found.source) return found;
      const text = Buffer.from(found.source).toString().replace(/^export const (?=[\\w$]+ *= *(async *)?(function\\b|\\(|[\\w$]+ *=>))/gm, "export let ");
      const names = new Map();
      for (const [, plain, name] of text.matchAll(/^export (default )?(?:async )?function ([\\w$]+)/gm)) names.set(name, plain ? "default" : name);
      for (const [, name] of text.matchAll(/^export let ([\\w$]+)/gm)) names.set(name, name);
      for (const [, list] of text.matchAll(/^export \\{([^}]*)\\};?$/gm))
        for (const it of list.split(",")) {
          const [name, as] = it.trim().split(/ +as +/);
          if (/^[\\w$]+$/.test(name)) names.set(name, as || name);
        }
      const more = [...names].map(([name, as]) => "try { " + name + " = globalThis.${HOOK}(" + name + ", " + JSON.stringify(file) + ", " + JSON.stringify(as) + "); } catch {}");
      return { ...found, source: text + "\\n;" + more.join("\\n") };
    }`;
  Module.register(`data:text/javascript,${encodeURIComponent(hooks)}`, pathToFileURL(`${root}/`));
}

function write(spots) {
  written = performance.now();
  fs.writeFileSync(`${out}.part`, JSON.stringify({ functions: watched.filter((it) => it.calls).map((it) => it.told()), spots }));
  fs.renameSync(`${out}.part`, out);
}

// Each function of the package with its own seconds, its place, and whom it was called by: [file, line, name, seconds,
// names of watched functions it was beneath].
function spotsOf(profile) {
  const own = new Map();
  const parents = new Map();
  for (const node of profile.nodes) for (const child of node.children || []) parents.set(child, node.id);
  const byId = new Map(profile.nodes.map((node) => [node.id, node]));
  const spent = new Map();
  profile.samples.forEach((id, at) => spent.set(id, (spent.get(id) || 0) + profile.timeDeltas[at] / 1e6));
  const codes = new Map(watched.map((it, number) => [`${it.file}\0${it.code}`, number]));
  for (const [id, seconds] of spent) {
    const beneath = new Set();
    let place;
    for (let at = id; at !== undefined; at = parents.get(at)) {
      const frame = byId.get(at).callFrame;
      const file = frame.url.startsWith("file:") ? fileURLToPath(frame.url) : frame.url;
      if (!wanted.has(file)) continue;
      place ||= [path.relative(root, file), frame.lineNumber + 1, frame.functionName];
      const number = codes.get(`${file}\0${frame.functionName}`);
      if (number !== undefined) beneath.add(number);
    }
    if (!place) continue;
    const key = JSON.stringify([...place, [...beneath].sort()]);
    own.set(key, (own.get(key) || 0) + seconds);
  }
  return [...own].map(([key, seconds]) => {
    const [file, line, name, beneath] = JSON.parse(key);
    return [file, line, name, seconds, beneath.map((number) => [path.relative(root, watched[number].file), watched[number].name])];
  });
}

if (isMainThread) {
  const session = new inspector.Session();
  session.connect();
  session.post("Profiler.enable");
  session.post("Profiler.setSamplingInterval", { interval: SAMPLE_US });
  session.post("Profiler.start");
  setTimeout(() => process.exit(1), 1000 * plan.seconds).unref(); // no test passes by never ending
  process.on("exit", () => {
    let spots = [];
    session.post("Profiler.stop", (error, found) => {
      if (!error) spots = spotsOf(found.profile).sort((one, two) => two[3] - one[3]).slice(0, 400);
    });
    write(spots);
  });
}
