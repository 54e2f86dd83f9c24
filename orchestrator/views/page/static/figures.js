// Numbers as people read them.

export function score(value, digits = 6) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  return String(Number(value.toPrecision(digits)));
}

export function signed(value) {
  return `${value >= 0 ? "+" : "−"}${score(Math.abs(value), 4)}`;
}

export function dollars(micro) {
  const amount = micro / 1e6;
  if (!micro) return "$0";
  return amount >= 1 ? `$${amount.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 })}` : `$${amount.toFixed(4)}`;
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined || seconds < 0) return "";
  if (seconds < 10) return `${seconds.toFixed(1)}s`;
  const whole = Math.round(seconds), minutes = Math.floor(whole / 60), hours = Math.floor(minutes / 60), days = Math.floor(hours / 24);
  const two = (number) => String(number).padStart(2, "0");
  if (days) return `${days}d${hours % 24}h`;
  if (hours) return `${hours}h${two(minutes % 60)}m`;
  return minutes ? `${minutes}m${two(whole % 60)}s` : `${whole}s`;
}

export function ago(seconds) {
  if (!seconds) return "";
  const passed = Math.max(0, Date.now() / 1000 - seconds);
  return passed < 3 ? "now" : `${duration(passed)} ago`;
}

export const count = (number) => (number ?? 0).toLocaleString("en");

export function bytes(number) {
  for (const [unit, size] of [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]])
    if (number >= size) return `${(number / size).toFixed(1)} ${unit}`;
  return `${number} B`;
}

// About so many round numbers between two others.
export function ticks(low, high, wanted) {
  const span = high - low;
  if (!(span > 0) || !Number.isFinite(span)) return [low];
  const rough = span / Math.max(1, wanted), power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((it) => it * power).find((it) => it >= rough);
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-9; at += step) found.push(Math.abs(at) < step * 1e-9 ? 0 : at);
  return found;
}
