"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);

  // The map: which clusters are shown, and which row is pointed at.
  const stage = byId("stage"), dots = byId("dots"), tip = byId("tip"), ring = byId("ring");
  let alone = -1, shownAt = -1;
  const isOn = (i) => alone < 0 || data.labels[i] === alone;
  const hide = () => { shownAt = -1; tip.hidden = true; ring.setAttribute("visibility", "hidden"); };
  const show = (i) => {
    hide();
    shownAt = i;
    const [number, ...cells] = data.rows[i], [x, y] = data.places[i], label = data.labels[i];
    tip.textContent = [`cluster ${label}: ${data.names[label]}`, `row ${number}`,
      ...cells.map((cell, c) => `${data.columns[c]}: ${cell}`)].join("\n");
    for (const [name, value] of Object.entries({ cx: x, cy: y, r: 8, visibility: "visible" })) ring.setAttribute(name, value);
    tip.hidden = false;
    const box = stage.getBoundingClientRect(), at = ring.getBoundingClientRect();
    const right = at.right - box.left + 6, down = at.bottom - box.top + 6;
    tip.style.left = `${Math.max(0, Math.min(right, box.width - tip.offsetWidth))}px`;
    tip.style.top = `${down + tip.offsetHeight > box.height ? Math.max(0, at.top - box.top - tip.offsetHeight - 6) : down}px`;
  };
  const nearest = (event) => {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(dots.getScreenCTM().inverse());
    let best = -1, least = 14 ** 2;
    data.places.forEach(([x, y], i) => {
      const away = (at.x - x) ** 2 + (at.y - y) ** 2;
      if (isOn(i) && away < least) { least = away; best = i; }
    });
    return best;
  };
  // From the row that is shown to the next one, from left to right.
  const order = data.places.map((_, i) => i).sort((a, b) => data.places[a][0] - data.places[b][0] || a - b);
  const step = (way) => {
    const shown = order.filter(isOn), here = shown.indexOf(shownAt);
    if (shown.length) show(shown[here < 0 ? 0 : (here + way + shown.length) % shown.length]);
  };
  stage.addEventListener("pointermove", (event) => {
    const i = nearest(event);
    if (i < 0) hide(); else if (i !== shownAt) show(i);
  });
  stage.addEventListener("click", (event) => { const i = nearest(event); if (i >= 0) show(i); });
  stage.addEventListener("pointerleave", () => { if (document.activeElement !== stage) hide(); });
  const KEYS = { ArrowRight: () => step(1), ArrowLeft: () => step(-1), Escape: hide };
  stage.addEventListener("keydown", (event) => {
    if (!KEYS[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault(); KEYS[event.key]();
  });
  // Badges show their cluster alone.
  const badges = [...document.querySelectorAll("button.badge")];
  const single = (label) => {
    alone = label;
    for (const badge of badges) badge.setAttribute("aria-pressed", String(Number(badge.dataset.label) === label));
    for (const one of dots.querySelectorAll("[data-label]")) one.classList.toggle("off", label >= 0 && Number(one.dataset.label) !== label);
    hide();
  };
  for (const badge of badges) badge.addEventListener("click", () => single(alone === Number(badge.dataset.label) ? -1 : Number(badge.dataset.label)));

  // A print has all details open.
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    folded.forEach((one) => { one.open = true; });
  });
  addEventListener("afterprint", () => folded.forEach((one) => { one.open = false; }));
})();
