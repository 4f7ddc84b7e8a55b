"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);

  // The map: what is in sight, which clusters are shown, and which row is pointed at.
  const stage = byId("stage"), dots = byId("dots"), tip = byId("tip");
  const [, , width, height] = dots.getAttribute("viewBox").split(" ").map(Number);
  const view = { x: 0, y: 0, zoom: 1 };
  const ring = byId("ring");
  let alone = -1, shownAt = -1;
  const isOn = (i) => alone < 0 || data.labels[i] === alone;
  const hide = () => { shownAt = -1; tip.hidden = true; ring.setAttribute("visibility", "hidden"); };
  const draw = () => {
    dots.setAttribute("viewBox", `${view.x} ${view.y} ${width / view.zoom} ${height / view.zoom}`);
    dots.parentNode.classList.toggle("zoomed", view.zoom !== 1 || view.x !== 0 || view.y !== 0);
    for (const inner of dots.querySelectorAll(".center > g")) inner.setAttribute("transform", `scale(${1 / view.zoom})`);
    hide();
  };
  const pan = (dx, dy) => { view.x -= dx / view.zoom; view.y -= dy / view.zoom; draw(); };
  const zoom = (factor, x = width / 2, y = height / 2) => {
    const next = Math.min(400, Math.max(.5, view.zoom * factor));
    view.x += x / view.zoom - x / next; view.y += y / view.zoom - y / next; view.zoom = next; draw();
  };
  const show = (i) => {
    hide();
    shownAt = i;
    const [number, ...cells] = data.rows[i], [x, y] = data.places[i], label = data.labels[i];
    tip.textContent = [`cluster ${label}: ${data.names[label]}`, `row ${number}`,
      ...cells.map((cell, c) => `${data.columns[c]}: ${cell}`)].join("\n");
    for (const [name, value] of Object.entries({ cx: x, cy: y, r: 8 / view.zoom, visibility: "visible" })) ring.setAttribute(name, value);
    tip.hidden = false;
    const box = stage.getBoundingClientRect(), at = ring.getBoundingClientRect();
    const right = at.right - box.left + 6, down = at.bottom - box.top + 6;
    tip.style.left = `${Math.max(0, Math.min(right, box.width - tip.offsetWidth))}px`;
    tip.style.top = `${down + tip.offsetHeight > box.height ? Math.max(0, at.top - box.top - tip.offsetHeight - 6) : down}px`;
  };
  // The place of a pointer on the map, as it is before any zoom.
  const at = (event) => {
    const place = new DOMPoint(event.clientX, event.clientY).matrixTransform(byId("frame").getScreenCTM().inverse());
    return [place.x - Number(byId("frame").getAttribute("x")), place.y - Number(byId("frame").getAttribute("y"))];
  };
  const nearest = ([x, y]) => {
    let best = -1, least = (14 / view.zoom) ** 2;
    data.places.forEach(([right, down], i) => {
      const away = (view.x + x / view.zoom - right) ** 2 + (view.y + y / view.zoom - down) ** 2;
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
  let before = null;
  stage.addEventListener("pointerdown", (event) => { before = at(event); stage.setPointerCapture(event.pointerId); });
  stage.addEventListener("pointermove", (event) => {
    const now = at(event), i = nearest(now);
    if (before) { pan(now[0] - before[0], now[1] - before[1]); before = now; }
    else if (i < 0) hide(); else if (i !== shownAt) show(i);
  });
  for (const kind of ["pointerup", "pointercancel"]) stage.addEventListener(kind, () => { before = null; });
  stage.addEventListener("click", (event) => { const i = nearest(at(event)); if (i >= 0) show(i); });
  stage.addEventListener("pointerleave", () => { if (document.activeElement !== stage) hide(); });
  stage.addEventListener("wheel", (event) => {
    if (document.activeElement !== stage && !event.ctrlKey) return;
    event.preventDefault();
    zoom(Math.exp(-event.deltaY * .002), ...at(event));
  }, { passive: false });
  // Cards show their cluster alone.
  const badges = [...document.querySelectorAll("button.badge")];
  const single = (label) => {
    alone = label;
    for (const badge of badges) badge.setAttribute("aria-pressed", String(Number(badge.dataset.label) === label));
    for (const one of dots.querySelectorAll("[data-label]")) one.classList.toggle("off", label >= 0 && Number(one.dataset.label) !== label);
    hide();
  };
  for (const badge of badges) badge.addEventListener("click", () => single(alone === Number(badge.dataset.label) ? -1 : Number(badge.dataset.label)));
  const reset = () => { Object.assign(view, { x: 0, y: 0, zoom: 1 }); single(-1); draw(); };
  const KEYS = {
    "+": () => zoom(1.3), "=": () => zoom(1.3), "-": () => zoom(1 / 1.3), "0": reset,
    ArrowLeft: () => pan(40, 0), ArrowRight: () => pan(-40, 0), ArrowUp: () => pan(0, 40), ArrowDown: () => pan(0, -40),
    n: () => step(1), p: () => step(-1), Escape: hide,
  };
  stage.addEventListener("keydown", (event) => {
    if (!KEYS[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault(); KEYS[event.key]();
  });
  byId("in").addEventListener("click", () => zoom(1.5));
  byId("out").addEventListener("click", () => zoom(1 / 1.5));
  byId("all").addEventListener("click", reset);

  // The code.
  byId("copy").addEventListener("click", async () => {
    const program = byId("program"), copy = byId("copy");
    try { await navigator.clipboard.writeText(program.textContent); copy.textContent = "copied"; }
    catch { getSelection().selectAllChildren(program); copy.textContent = "selected: press Ctrl+C"; }
  });

  // A print has all details open.
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    folded.forEach((one) => { one.open = true; });
  });
  addEventListener("afterprint", () => folded.forEach((one) => { one.open = false; }));
})();
