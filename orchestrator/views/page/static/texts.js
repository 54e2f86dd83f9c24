// A log or an answer of any length, a page at a time; one that still grows is followed.

import { address, ask, query } from "./data.js";
import { button, fill, h } from "./dom.js";
import { bytes } from "./figures.js";

export class Text {
  constructor(session, { what, name, title, open }) {
    Object.assign(this, { session, what, name });
    this.pre = h("pre", { class: "log", tabindex: "0", role: "group", "aria-label": title });
    this.said = h("span", { class: "faint" });
    this.following = what === "live";
    this.foot = h("div", { class: "filters" });
    this.element = h("details", { class: "text", open: open || undefined, ontoggle: () => { if (this.element.open && !this.page) this.load(this.following ? { last: 1 } : {}); } }, h("summary", {}, title, " ", this.said), this.pre, this.foot);
    if (open) this.load(this.following ? { last: 1 } : {});
  }

  async load(asked) {
    if (this.loading) return;
    this.loading = true;
    try {
      const page = await ask(`${address(this.session.id, "text")}${query({ what: this.what, name: this.name, ...asked })}`);
      const grows = this.following && this.page && page.start >= this.page.end;
      if (grows) this.pre.append(document.createTextNode(page.lines.length ? `${page.lines.join("\n")}\n` : ""));
      else fill(this.pre, page.lines.length ? `${page.lines.join("\n")}\n` : "");
      this.page = page;
      if (this.following) this.pre.scrollTop = this.pre.scrollHeight;
      fill(this.said, `${bytes(page.size)}${page.size > page.end - page.start ? `, bytes ${page.start.toLocaleString("en")}–${page.end.toLocaleString("en")}` : ""}`);
      fill(this.foot, this.following ? button("stop following", () => { this.following = false; fill(this.foot); }) : [
        page.start > 0 ? button("first page", () => this.load({})) : null,
        page.start > 0 ? button("page before", () => this.load({ start: Math.max(0, page.start - 65536) })) : null,
        page.end < page.size ? button("next page", () => this.load({ start: page.end })) : null,
        page.end < page.size ? button("last page", () => this.load({ last: 1 })) : null]);
    } catch (error) {
      fill(this.said, error.message);
      this.following = false;
      fill(this.foot);
    } finally {
      this.loading = false;
    }
  }

  grown(logs) {
    if (this.following && this.page && (logs[this.name] ?? 0) > this.page.end) this.load({ start: this.page.end });
  }
}
