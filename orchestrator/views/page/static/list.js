// A list of any length of which only what is seen is in the page.

import { framed, h } from "./dom.js";

const SPARE = 8;

export class List {
  // `draw(index)` makes the element of a row; `role` is told to those who listen instead of looking.
  constructor({ row, draw, label, role, chosen, open }) {
    this.height = row;
    this.draw = draw;
    this.chosen = chosen || (() => {});
    this.open = open || (() => {});
    this.count = 0;
    this.at = -1;
    this.inner = h("div", { class: "list-inner", role: "presentation" });
    this.element = h("div", { class: "list", role, tabindex: "0", "aria-label": label }, this.inner);
    this.element.addEventListener("scroll", framed(() => this.show()), { passive: true });
    this.element.addEventListener("keydown", (event) => this.key(event));
    this.element.addEventListener("click", (event) => this.clicked(event));
    this.shown = new Map();
    new ResizeObserver(framed(() => this.show())).observe(this.element);
  }

  set(count) {
    this.count = count;
    this.at = Math.min(this.at, count - 1);
    this.inner.style.setProperty("height", `${count * this.height}px`);
    this.again();
  }

  again() {
    for (const row of this.shown.values()) row.remove();
    this.shown.clear();
    this.show();
  }

  show() {
    const top = this.element.scrollTop, high = this.element.clientHeight || 400;
    const first = Math.max(0, Math.floor(top / this.height) - SPARE);
    const last = Math.min(this.count, Math.ceil((top + high) / this.height) + SPARE);
    for (const [index, row] of this.shown) {
      if (index < first || index >= last) {
        row.remove();
        this.shown.delete(index);
      }
    }
    for (let index = first; index < last; index += 1) {
      if (this.shown.has(index)) continue;
      const row = this.draw(index);
      row.style.setProperty("top", `${index * this.height}px`);
      row.style.setProperty("height", `${this.height}px`);
      row.dataset.index = String(index);
      row.id = row.id || `row-${Math.random().toString(36).slice(2)}`;
      this.mark(row, index);
      this.shown.set(index, row);
      this.inner.append(row);
    }
    this.seen?.(first, last);
  }

  mark(row, index) {
    row.classList.toggle("at", index === this.at);
    row.setAttribute("aria-selected", String(index === this.at));
    if (index === this.at) this.element.setAttribute("aria-activedescendant", row.id);
  }

  go(index, { quiet = false } = {}) {
    if (!this.count) return;
    this.at = Math.max(0, Math.min(this.count - 1, index));
    const top = this.at * this.height, high = this.element.clientHeight;
    if (top < this.element.scrollTop) this.element.scrollTop = top;
    else if (top + this.height > this.element.scrollTop + high) this.element.scrollTop = top + this.height - high;
    this.show();
    for (const [one, row] of this.shown) this.mark(row, one);
    if (!quiet) this.chosen(this.at);
  }

  clicked(event) {
    const row = event.target.closest("[data-index]");
    if (row) this.go(Number(row.dataset.index));
  }

  key(event) {
    const page = Math.max(1, Math.floor(this.element.clientHeight / this.height) - 1);
    const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, j: 1, k: -1 };
    if (event.key in moves) this.go(this.at + moves[event.key]);
    else if (event.key === "Home") this.go(0);
    else if (event.key === "End") this.go(this.count - 1);
    else if (event.key === "Enter" && this.at >= 0 && event.target === this.element) this.open(this.at);
    else return;
    event.preventDefault();
  }
}
