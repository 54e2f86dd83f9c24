// Answers that were recorded into a file: what a server would say, as far as there was room for it.

let index = null;
const kept = new Map();

export const isExported = document.querySelector('[data-part="index"]') !== null;

async function part(name) {
  if (!kept.has(name)) {
    const block = name === "index" ? document.querySelector('[data-part="index"]') : document.querySelectorAll('[data-part^="campaign/"]')[Number(name)];
    const bytes = Uint8Array.from(atob(block.textContent), (letter) => letter.charCodeAt(0));
    kept.set(name, new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json());
  }
  return kept.get(name);
}

export async function recordedAt() {
  return (await part("index")).at;
}

// The recorded answer to a question, or null.
export async function recorded(asked) {
  index ??= await part("index");
  if (asked === "campaigns") return index.campaigns;
  const [path, query] = asked.split("?"), values = new URLSearchParams(query || ""), [, id, what] = path.split("/");
  const base = `campaign/${id}`, run = values.get("run") || (await found(base))?.run;
  if (what === "rows") return among(await found(`${base}/rows?run=${run}`), values.get("nodes").split(","));
  if (what === "search") return search(await found(`${base}/rows?run=${run}`), await found(`${base}/board?run=${run}`), values.get("text"));
  if (what === "compare") return compared(base, values.get("nodes").split(","));
  if (what === "diff") return found(`${base}/diff?node=${values.get("node")}&from=${values.get("from") || ""}`);
  if (what === "text") return found(`${base}/text?what=${values.get("what")}&name=${values.get("name")}`);
  return await found(path) ?? found(`${path}?run=${run}`);
}

async function found(path) {
  const name = index.where[path];
  return name === undefined ? null : (await part(name))[path];
}

const among = (rows, names) => Object.fromEntries(names.filter((name) => name in (rows || {})).map((name) => [name, rows[name]]));

function search(rows, { columns }, text) {
  const names = [], wanted = text.toLowerCase(), places = [];
  columns.child.forEach((child, at) => {
    names[at] = columns.parent[at] < 0 ? String(child) : `${names[columns.parent[at]]}.${child}`;
    const told = rows[names[at]];
    if (told && `${names[at]} ${told.description} ${told.why}`.toLowerCase().includes(wanted)) places.push(at);
  });
  return { places, count: places.length };
}

async function compared(base, names) {
  const nodes = await Promise.all(names.slice(0, 8).map((name) => found(`${base}/compare/${name}`)));
  return nodes.includes(null) ? null : { nodes };
}
