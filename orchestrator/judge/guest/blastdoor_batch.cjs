// Serves one function of a Node package to a judge that asks many questions at a time: blastdoor_batch.py for another
// language. Node's own modules only, Node 18 up; .cjs, whatever the package beside it says of .js. Requests come in on
// descriptor 3, answers go out on 4, so that what the package prints goes elsewhere:
//
//     sh -c 'exec node "$@" 3<&0 4>&1 </dev/null >&2' node blastdoor_batch.cjs lib/words.js count
//
// Values are those of blastdoor_kinds.py. A whole number that a double holds is an integer, any other number a float;
// undefined is the empty tuple, which is nothing else here. Objects of a class, functions, symbols and texts with half
// of a character do not cross.
"use strict";

const fs = require("node:fs");
const path = require("node:path");
const { pathToFileURL } = require("node:url");

const MAX_DEPTH = 32;
const MAX_ITEMS = 2_000_000;

class NotPlain extends Error {}
class Malformed extends Error {}

class Writer {
  constructor() {
    this.bytes = Buffer.allocUnsafe(1 << 12);
    this.at = 0;
    this.left = MAX_ITEMS;
  }

  room(count) {
    if (this.at + count > this.bytes.length) {
      const more = Buffer.allocUnsafe(Math.max(2 * this.bytes.length, this.at + count));
      this.bytes.copy(more, 0, 0, this.at);
      this.bytes = more;
    }
    const at = this.at;
    this.at += count;
    return at;
  }

  tag(letter, count) {
    const at = this.room(5);
    this.bytes[at] = letter.charCodeAt(0);
    this.bytes.writeUInt32LE(count, at + 1);
  }

  letter(letter) {
    const at = this.room(1); // which may put other bytes in the place of these
    this.bytes[at] = letter.charCodeAt(0);
  }

  data(data) {
    const at = this.room(data.length);
    data.copy(this.bytes, at);
  }

  text(text) {
    const data = Buffer.from(text, "utf8");
    if (data.includes("\ufffd") && data.toString("utf8") !== text) throw new NotPlain("a text with half of a character");
    return data;
  }

  put(value, depth) {
    if (!depth) throw new NotPlain(`nested more than ${MAX_DEPTH} deep`);
    if (--this.left < 0) throw new NotPlain(`more than ${MAX_ITEMS} values`);
    if (value === undefined) this.tag("t", 0);
    else if (value === null) this.letter("N");
    else if (value === true) this.letter("T");
    else if (value === false) this.letter("F");
    else if (typeof value === "number") this.number(value);
    else if (typeof value === "string") {
      const data = this.text(value);
      this.tag("s", data.length);
      this.data(data);
    } else if (typeof value === "object") this.object(value, depth);
    else throw new NotPlain(`a ${typeof value}`);
  }

  number(value) {
    const at = this.room(9);
    const whole = Number.isSafeInteger(value) && !Object.is(value, -0);
    this.bytes[at] = (whole ? "i" : "f").charCodeAt(0);
    if (whole) this.bytes.writeBigInt64LE(BigInt(value), at + 1);
    else this.bytes.writeDoubleLE(value, at + 1);
  }

  object(value, depth) {
    const kind = Object.getPrototypeOf(value);
    if (Array.isArray(value) && kind === Array.prototype) {
      if (Object.keys(value).length !== value.length) throw new NotPlain("a list with holes or members of its own");
      this.tag("l", value.length);
      for (const item of value) this.put(item, depth - 1);
    } else if (Buffer.isBuffer(value)) {
      this.tag("b", value.length);
      this.data(value);
    } else if (kind === Object.prototype || kind === null) this.members(value, depth);
    else throw new NotPlain(`an object of ${String(value.constructor && value.constructor.name)}`);
  }

  members(value, depth) {
    const names = Reflect.ownKeys(value);
    this.tag("d", names.length);
    for (const name of names) {
      const own = Object.getOwnPropertyDescriptor(value, name);
      if (typeof name !== "string" || !own.enumerable || !("value" in own)) throw new NotPlain("a member that is no plain one");
      const data = this.text(name);
      const at = this.room(4);
      this.bytes.writeUInt32LE(data.length, at);
      this.data(data);
      this.put(own.value, depth - 1);
    }
  }
}

// Throws NotPlain.
function encode(value) {
  const writer = new Writer();
  writer.put(value, MAX_DEPTH);
  return writer.bytes.subarray(0, writer.at);
}

class Reader {
  constructor(data) {
    this.data = data;
    this.at = 0;
    this.left = MAX_ITEMS;
  }

  take(count) {
    if (count > this.data.length - this.at) throw new Malformed("it ends early");
    this.at += count;
    return this.data.subarray(this.at - count, this.at);
  }

  count() {
    return this.take(4).readUInt32LE(0);
  }

  value(depth) {
    if (!depth || --this.left < 0) throw new Malformed("too deep, or too many values");
    const tag = String.fromCharCode(this.take(1)[0]);
    if (tag === "N") return null;
    if (tag === "T") return true;
    if (tag === "F") return false;
    if (tag === "i") return this.integer();
    if (tag === "f") return this.take(8).readDoubleLE(0);
    if (tag === "s") return this.take(this.count()).toString("utf8");
    if (tag === "b") return Buffer.from(this.take(this.count()));
    if (tag === "l") return Array.from({ length: this.bounded() }, () => this.value(depth - 1));
    if (tag === "d") return this.members(depth);
    if (tag === "t" && this.count() === 0) return undefined;
    throw new Malformed("a kind of value that is none here");
  }

  bounded() {
    const count = this.count();
    if (count > this.data.length - this.at) throw new Malformed("it ends early");
    return count;
  }

  integer() {
    const value = Number(this.take(8).readBigInt64LE(0));
    if (!Number.isSafeInteger(value)) throw new Malformed("a whole number that no double holds");
    return value;
  }

  members(depth) {
    const found = {};
    for (let left = this.bounded(); left; left--) {
      const name = this.take(this.count()).toString("utf8");
      const value = this.value(depth - 1);
      Object.defineProperty(found, name, { value, writable: true, enumerable: true, configurable: true });
    }
    return found;
  }
}

// Throws Malformed.
function decode(data) {
  const reader = new Reader(data);
  const value = reader.value(MAX_DEPTH);
  if (reader.at !== data.length) throw new Malformed("bytes behind the value");
  return value;
}

// The function of this file under this name: of a module, a member of what it exports, or all that it exports
// ("module.exports"). What it is a member of is its `this`.
async function found(file, name) {
  const there = path.resolve(file);
  let all;
  try {
    all = require(there);
  } catch (error) {
    if (error.code !== "ERR_REQUIRE_ESM") throw error;
    all = await import(pathToFileURL(there).href);
  }
  const value = name === "module.exports" ? all : all[name];
  if (typeof value !== "function") throw new TypeError(`${file} exports no function ${name}`);
  return (questions) => answered(value, name === "module.exports" ? undefined : all, questions);
}

async function answered(value, self, questions) {
  const answers = [];
  for (const [given] of questions) {
    const began = performance.now();
    let answer;
    try {
      let got = value.apply(self, given);
      if (got !== null && typeof got === "object" && typeof got.then === "function") got = await got;
      answer = [true, got];
    } catch (error) {
      answer = [false, String((error && error.name) || typeof error)];
    }
    answer.seconds = (performance.now() - began) / 1000;
    answers.push(answer);
  }
  return answers;
}

const REQUESTS = 3;
const REPLIES = 4;

function read(count) {
  const data = Buffer.allocUnsafe(count);
  for (let at = 0; at < count; ) {
    const got = waiting(() => fs.readSync(REQUESTS, data, at, count - at, null));
    if (!got) process.exit(0);
    at += got;
  }
  return data;
}

function send(nonce, ...parts) {
  const body = Buffer.concat(parts);
  const head = Buffer.alloc(4);
  head.writeUInt32BE(body.length);
  const all = Buffer.concat([head, nonce, body]);
  for (let at = 0; at < all.length; ) at += waiting(() => fs.writeSync(REPLIES, all, at));
}

function waiting(work) {
  for (;;) {
    try {
      return work();
    } catch (error) {
      if (error.code !== "EAGAIN") throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 0.2);
    }
  }
}

function failed(kind, error) {
  process.stderr.write(`${(error && error.stack) || error}\n`);
  const said = Buffer.from(String(error).slice(0, 500)).toString();
  return [Buffer.from("E"), encode([kind, said, "RuntimeError", said])];
}

// An answer that does not cross is none, and the others do.
function timed(it) {
  try {
    encode(it[1]);
    return [it[0], it[1], it.seconds];
  } catch {
    return [null, null, 0];
  }
}

async function answer(each, body) {
  try {
    const [name, given] = decode(body);
    if (!each || (name !== "each" && name !== "timed")) return failed("missing", new Error(`there is no function ${name}`));
    const answers = await each(given[0]);
    return [Buffer.from("V"), encode(answers.map((it) => (name === "timed" ? timed(it) : [it[0], it[1]])))];
  } catch (error) {
    return failed(error instanceof NotPlain ? "not plain" : error instanceof Malformed ? "malformed" : "raised", error);
  }
}

async function serve(file, name) {
  let each;
  for (;;) {
    const head = read(12);
    const nonce = head.subarray(4);
    const body = read(head.readUInt32BE(0));
    const kind = String.fromCharCode(body[0]);
    if (kind === "N") send(nonce, Buffer.from("N"));
    else if (kind === "H") send(nonce, Buffer.from("H"));
    else if (kind === "K") send(nonce, ...(await answer(each, body.subarray(1))));
    else if (kind === "C") send(nonce, ...failed("missing", new Error("it is called with exact kinds only")));
    else {
      try {
        each = await found(file, name);
        send(nonce, Buffer.from("L"), encode(["each"]));
      } catch (error) {
        send(nonce, ...failed("raised", error));
      }
    }
  }
}

module.exports = { NotPlain, decode, encode };

if (require.main === module) {
  process.on("unhandledRejection", (error) => process.stderr.write(`${error}\n`));
  serve(process.argv[2], process.argv[3]);
}
