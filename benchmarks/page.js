// What benchmarks/page.py does in the browser. It is there before the page's own scripts.

const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));

window.bench = {
  // When the page was painted: in the first frame after what is looked for is there.
  watch(found) {
    const look = async () => {
      if (!found()) { requestAnimationFrame(look); return; }
      await frame();
      window.paintedAt = performance.now();
    };
    requestAnimationFrame(look);
  },

  sent() {
    const all = [...performance.getEntriesByType("resource"), ...performance.getEntriesByType("navigation")];
    return all.reduce((sum, it) => sum + it.transferSize, 0);
  },

  // How long each act takes until it is on the screen, several times.
  async acts(times) {
    const at = (where) => document.querySelector(where);
    const key = (where, name) => at(where).dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true }));
    const acts = {
      filter: () => at(".legend button").click(),
      "zoom in": () => key(".plot", "+"),
      "zoom out": () => key(".plot", "0"),
      "next node": () => key(".plot", "ArrowRight"),
      sort: () => at(".heads .c-score button").click(),
      scroll: () => { at(".attempts .list").scrollTop += 5000; },
      "next row": () => key(".attempts .list", "ArrowDown"),
    };
    const found = {};
    for (const [name, act] of Object.entries(acts)) {
      found[name] = [];
      for (let number = 0; number < times; number += 1) {
        const began = performance.now();
        act();
        await frame();
        found[name].push(performance.now() - began);
      }
    }
    return found;
  },

  // Frames a second while the plot is zoomed in and out.
  async frames(seconds) {
    const plot = document.querySelector(".plot"), began = performance.now();
    let frames = 0;
    while (performance.now() - began < seconds * 1000) {
      const turn = { deltaY: frames % 60 < 30 ? -1 : 1, ctrlKey: true, clientX: 600, clientY: 300, cancelable: true };
      plot.dispatchEvent(new WheelEvent("wheel", turn));
      await new Promise(requestAnimationFrame);
      frames += 1;
    }
    return frames / ((performance.now() - began) / 1000);
  },

  // When each update was on the screen.
  follow() {
    window.seenAt = [];
    const root = document.documentElement, note = () => window.seenAt.push([Number(root.dataset.seq), Date.now()]);
    new MutationObserver(() => requestAnimationFrame(note)).observe(root, { attributeFilter: ["data-seq"] });
  },
};
