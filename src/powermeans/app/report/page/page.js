"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const byId = (id) => document.getElementById(id);
  const ink = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const redraws = [];

  const bytesOf = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer;
  const numbersOf = ({ dtype, bytes }) => new (dtype === "<f4" ? Float32Array : Float64Array)(bytesOf(bytes));

  // Dark and light.
  byId("theme").addEventListener("click", () => {
    const prefersDark = matchMedia("(prefers-color-scheme: dark)").matches;
    const isDark = (root.dataset.theme || (prefersDark ? "dark" : "light")) === "dark";
    root.dataset.theme = isDark ? "light" : "dark";
    redraws.forEach((redraw) => redraw());
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redraws.forEach((redraw) => redraw()));

  // Clusters have a colour and a shape, as in the plots.
  const colorOf = (label) => data.colors[label % data.colors.length];
  const CROSS = [[0, -.5], [.7, -1.2], [1.2, -.7], [.5, 0], [1.2, .7], [.7, 1.2],
    [0, .5], [-.7, 1.2], [-1.2, .7], [-.5, 0], [-1.2, -.7], [-.7, -1.2]];
  const SHAPES = [
    (p, x, y, r) => { p.moveTo(x + r, y); p.arc(x, y, r, 0, 2 * Math.PI); },
    (p, x, y, r) => p.rect(x - r * .9, y - r * .9, 1.8 * r, 1.8 * r),
    (p, x, y, r) => polygon(p, [[x, y - 1.2 * r], [x + 1.1 * r, y + .8 * r], [x - 1.1 * r, y + .8 * r]]),
    (p, x, y, r) => polygon(p, [[x, y - 1.3 * r], [x + 1.3 * r, y], [x, y + 1.3 * r], [x - 1.3 * r, y]]),
    (p, x, y, r) => polygon(p, [[x, y + 1.2 * r], [x + 1.1 * r, y - .8 * r], [x - 1.1 * r, y - .8 * r]]),
    (p, x, y, r) => { p.rect(x - .4 * r, y - 1.2 * r, .8 * r, 2.4 * r); p.rect(x - 1.2 * r, y - .4 * r, 2.4 * r, .8 * r); },
    (p, x, y, r) => polygon(p, CROSS.map(([across, down]) => [x + r * across, y + r * down])),
    (p, x, y, r) => polygon(p, [...Array(10).keys()].map((i) => {
      const length = i % 2 ? .55 * r : 1.35 * r, angle = Math.PI * (i / 5 - .5);
      return [x + length * Math.cos(angle), y + length * Math.sin(angle)];
    })),
  ];
  function polygon(path, corners) {
    corners.forEach(([x, y], i) => (i ? path.lineTo(x, y) : path.moveTo(x, y)));
    path.closePath();
  }
  const shapeOf = (label) => SHAPES[label % SHAPES.length];

  // A canvas as sharp as the screen, where values lie on it, and its axes.
  const LEFT = 64, RIGHT = 14, TOP = 12, BOTTOM = 44;
  function board(canvas) {
    const context = canvas.getContext("2d");
    const view = { x: 0, y: 0, zoom: 1 };
    const state = { width: 0, height: 0, context, view };
    state.wide = () => Math.max(1, state.width - LEFT - RIGHT);
    state.high = () => Math.max(1, state.height - TOP - BOTTOM);
    state.clear = () => {
      const ratio = devicePixelRatio || 1;
      state.width = canvas.clientWidth; state.height = canvas.clientHeight;
      canvas.width = state.width * ratio; canvas.height = state.height * ratio;
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      context.clearRect(0, 0, state.width, state.height);
    };
    state.fit = (xs, ys) => {
      const range = (values) => {
        let low = Infinity, high = -Infinity;
        for (const value of values) { if (value < low) low = value; if (value > high) high = value; }
        return high > low ? [low, high] : [low - 1, low + 1];
      };
      [state.x0, state.x1] = range(xs); [state.y0, state.y1] = range(ys);
    };
    // A little room is left around the points.
    state.right = (x) => LEFT + state.wide() * (((x - state.x0) / (state.x1 - state.x0) - .5 - view.x) * view.zoom * .94 + .5);
    state.down = (y) => TOP + state.high() * ((.5 - (y - state.y0) / (state.y1 - state.y0) + view.y) * view.zoom * .94 + .5);
    state.valueAt = (share, low, high, moved) => low + (high - low) * ((share - .5) / (view.zoom * .94) + .5 + moved);
    state.within = (draw) => {
      context.save(); context.beginPath(); context.rect(LEFT, TOP, state.wide(), state.high()); context.clip();
      draw(); context.restore();
    };
    state.axes = (across, along) => {
      const bottom = TOP + state.high(), middle = LEFT + state.wide() / 2;
      context.lineWidth = 1; context.strokeStyle = context.fillStyle = ink("--soft");
      context.font = "12px system-ui, sans-serif";
      context.beginPath(); context.moveTo(LEFT, TOP); context.lineTo(LEFT, bottom); context.lineTo(LEFT + state.wide(), bottom);
      context.textAlign = "center"; context.textBaseline = "top";
      for (const [value, text] of ticks(state.valueAt(0, state.x0, state.x1, view.x), state.valueAt(1, state.x0, state.x1, view.x))) {
        context.moveTo(state.right(value), bottom); context.lineTo(state.right(value), bottom + 5);
        context.fillText(text, state.right(value), bottom + 7);
      }
      context.fillText(across, middle, bottom + 25, state.wide());
      context.textAlign = "right"; context.textBaseline = "middle";
      for (const [value, text] of ticks(state.valueAt(0, state.y0, state.y1, view.y), state.valueAt(1, state.y0, state.y1, view.y))) {
        context.moveTo(LEFT, state.down(value)); context.lineTo(LEFT - 5, state.down(value));
        context.fillText(text, LEFT - 8, state.down(value), LEFT - 24);
      }
      context.stroke();
      context.save(); context.translate(9, TOP + state.high() / 2); context.rotate(-Math.PI / 2);
      context.textAlign = "center"; context.fillText(along, 0, 0, state.high()); context.restore();
    };
    return state;
  }
  // Two to seven round numbers between two values, with their text.
  function ticks(low, high) {
    const widest = (high - low) / 3, unit = 10 ** Math.floor(Math.log10(widest));
    const step = [5, 2, 1].map((factor) => factor * unit).find((size) => size <= widest) || widest, found = [];
    if (!(high > low) || !Number.isFinite(step)) return found;
    for (let i = Math.ceil(low / step); i * step <= high && found.length < 12; i++) {
      const decimals = Math.min(15, Math.max(0, -Math.floor(Math.log10(step))));
      const value = i * step, isShort = Math.abs(value) < 1e7 && decimals < 7;
      found.push([value, (isShort ? value.toFixed(decimals) : String(Number(value.toPrecision(12)))).replace("-", "−")]);
    }
    return found;
  }
  function centerMark(context, x, y, label) {
    context.font = "600 11px system-ui, sans-serif";
    const text = String(label), r = Math.max(9, context.measureText(text).width / 2 + 4);
    context.beginPath(); context.arc(x, y, r, 0, 2 * Math.PI);
    context.fillStyle = "#ffffff"; context.fill();
    context.lineWidth = 2; context.strokeStyle = colorOf(label); context.stroke();
    context.fillStyle = "#1d2329"; context.textAlign = "center"; context.textBaseline = "middle";
    context.fillText(text, x, y + .5);
  }
  // With five digits of a number and four of the deviation of its column; whole digits are never left out.
  const plain = (value, decimals) => {
    if (!Number.isFinite(value)) return "missing";
    if (Math.abs(value) >= 1e15 || Math.abs(value) < 1e-4) return String(Number(value.toPrecision(5)));
    const before = Math.floor(Math.log10(Math.abs(value)));
    return String(Number(value.toFixed(Math.max(0, Math.min(14 - before, Math.max(4 - before, decimals))))));
  };

  // The scatter.
  function scatter() {
    const canvas = byId("scatter");
    if (!canvas) return;
    const labels = new Uint32Array(bytesOf(data.scatter.labels));
    const rows = new Uint32Array(bytesOf(data.scatter.rows));
    const values = data.scatter.columns.map((column) => numbersOf(column.values));
    const n = labels.length, on = new Array(data.names.length).fill(true);
    const pane = board(canvas), { context, view } = pane;
    const tip = byId("tip"), right = byId("right"), up = byId("up");
    let shownAt = -1, wanted = 0;

    data.scatter.columns.forEach((column, i) => {
      for (const menu of [right, up]) menu.add(new Option(column.name, String(i)));
    });
    right.value = "0"; up.value = "1";
    const xs = () => values[Number(right.value)], ys = () => values[Number(up.value)];

    const draw = () => {
      wanted = 0;
      pane.clear();
      const across = xs(), along = ys(), size = (n > 5000 ? 1.6 : n > 800 ? 2.4 : 3.4) * Math.min(2.5, Math.sqrt(view.zoom));
      const paths = on.map(() => new Path2D());
      for (let i = 0; i < n; i++) {
        if (!on[labels[i]]) continue;
        const x = pane.right(across[i]), y = pane.down(along[i]);
        if (x < -9 || y < -9 || x > pane.width + 9 || y > pane.height + 9) continue;
        shapeOf(labels[i])(paths[labels[i]], x, y, size);
      }
      pane.within(() => {
        context.globalAlpha = .75;
        paths.forEach((path, label) => { context.fillStyle = colorOf(label); context.fill(path); });
        context.globalAlpha = 1;
        data.scatter.centers.forEach((center, label) => {
          if (on[label]) centerMark(context, pane.right(center[Number(right.value)]), pane.down(center[Number(up.value)]), label);
        });
        if (shownAt >= 0) {
          context.beginPath(); context.lineWidth = 2; context.strokeStyle = ink("--ink");
          context.arc(pane.right(across[shownAt]), pane.down(along[shownAt]), size + 5, 0, 2 * Math.PI); context.stroke();
        }
      });
      pane.axes(right.selectedOptions[0].text, up.selectedOptions[0].text);
    };
    const redraw = () => { if (!wanted) wanted = requestAnimationFrame(draw); };
    const reset = () => { pane.fit(xs(), ys()); Object.assign(view, { x: 0, y: 0, zoom: 1 }); hide(); redraw(); };
    const hide = () => { shownAt = -1; tip.hidden = true; };
    const middle = () => [LEFT + pane.wide() / 2, TOP + pane.high() / 2];
    const zoom = (factor, x = middle()[0], y = middle()[1]) => {
      const next = Math.min(400, Math.max(.5, view.zoom * factor)), change = (1 / view.zoom - 1 / next) / .94;
      view.x += (x - middle()[0]) / pane.wide() * change;
      view.y -= (y - middle()[1]) / pane.high() * change;
      view.zoom = next; hide(); redraw();
    };
    const pan = (dx, dy) => {
      view.x -= dx / pane.wide() / view.zoom / .94; view.y += dy / pane.high() / view.zoom / .94;
      hide(); redraw();
    };
    const show = (i) => {
      shownAt = i;
      const lines = [`cluster ${labels[i]}: ${data.names[labels[i]]}`, `row ${rows[i]}`];
      data.scatter.columns.forEach((column, c) => { if (column.tell) lines.push(`${column.name}: ${plain(values[c][i], column.decimals)}`); });
      tip.textContent = lines.join("\n");
      tip.hidden = false;
      const x = pane.right(xs()[i]), y = pane.down(ys()[i]);
      tip.style.left = `${Math.max(0, Math.min(x + 14, pane.width - tip.offsetWidth - 4))}px`;
      tip.style.top = `${y + 14 + tip.offsetHeight > pane.height ? Math.max(0, y - tip.offsetHeight - 14) : y + 14}px`;
      redraw();
    };
    const nearest = (x, y) => {
      let best = -1, least = 18 ** 2;
      const across = xs(), along = ys();
      for (let i = 0; i < n; i++) {
        if (!on[labels[i]]) continue;
        const away = (pane.right(across[i]) - x) ** 2 + (pane.down(along[i]) - y) ** 2;
        if (away < least) { least = away; best = i; }
      }
      return best;
    };
    // From the point that is shown to the next one, from left to right among those in sight.
    const step = (way) => {
      const across = xs(), along = ys(), here = shownAt < 0 ? null : across[shownAt];
      let best = -1;
      for (let i = 0; i < n; i++) {
        const x = pane.right(across[i]), y = pane.down(along[i]);
        if (!on[labels[i]] || x < 0 || y < 0 || x > pane.width || y > pane.height) continue;
        const after = here === null || way * (across[i] - here) > 0 || (across[i] === here && way * (i - shownAt) > 0);
        if (after && (best < 0 || way * (across[i] - across[best]) < 0)) best = i;
      }
      if (best >= 0) show(best);
    };

    const fingers = new Map();
    let apart = 0;
    const at = (event) => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
    canvas.addEventListener("pointerdown", (event) => { fingers.set(event.pointerId, at(event)); canvas.setPointerCapture(event.pointerId); apart = 0; });
    canvas.addEventListener("pointermove", (event) => {
      const now = at(event), before = fingers.get(event.pointerId);
      if (before) fingers.set(event.pointerId, now);
      if (fingers.size === 2) {
        const [a, b] = [...fingers.values()], distance = Math.hypot(a[0] - b[0], a[1] - b[1]);
        if (apart) zoom(distance / apart, (a[0] + b[0]) / 2, (a[1] + b[1]) / 2);
        apart = distance;
      } else if (before) pan(now[0] - before[0], now[1] - before[1]);
      else { const i = nearest(...now); if (i >= 0) show(i); else if (shownAt >= 0) { hide(); redraw(); } }
    });
    for (const kind of ["pointerup", "pointercancel"]) canvas.addEventListener(kind, (event) => { fingers.delete(event.pointerId); apart = 0; });
    canvas.addEventListener("click", (event) => { const i = nearest(...at(event)); if (i >= 0) show(i); });
    canvas.addEventListener("pointerleave", () => { if (shownAt >= 0 && document.activeElement !== canvas) { hide(); redraw(); } });
    canvas.addEventListener("wheel", (event) => {
      if (document.activeElement !== canvas && !event.ctrlKey) return;
      event.preventDefault();
      zoom(Math.exp(-event.deltaY * .002), ...at(event));
    }, { passive: false });
    const KEYS = {
      "+": () => zoom(1.3), "=": () => zoom(1.3), "-": () => zoom(1 / 1.3), "0": reset,
      ArrowLeft: () => pan(40, 0), ArrowRight: () => pan(-40, 0), ArrowUp: () => pan(0, 40), ArrowDown: () => pan(0, -40),
      n: () => step(1), p: () => step(-1), Escape: () => { hide(); redraw(); },
    };
    canvas.addEventListener("keydown", (event) => {
      if (!KEYS[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault(); KEYS[event.key]();
    });
    byId("in").addEventListener("click", () => zoom(1.5));
    byId("out").addEventListener("click", () => zoom(1 / 1.5));
    byId("reset").addEventListener("click", reset);
    right.addEventListener("change", reset); up.addEventListener("change", reset);

    const legend = byId("legend"), buttons = [];
    const toggle = (label, isOn) => { on[label] = isOn; buttons[label].setAttribute("aria-pressed", String(isOn)); hide(); redraw(); };
    for (let label = 0; label < data.names.length; label++) {
      const button = document.createElement("button");
      button.type = "button";
      button.innerHTML = '<svg viewBox="-7 -7 14 14" aria-hidden="true"><path/></svg>';
      const outline = new OutlinePath();
      shapeOf(label)(outline, 0, 0, 5);
      button.querySelector("path").setAttribute("d", outline.text);
      button.querySelector("path").setAttribute("fill", colorOf(label));
      button.append(`${label} ${data.names[label]} (${data.sizes[label]})`);
      button.addEventListener("click", () => toggle(label, !on[label]));
      buttons.push(button); legend.append(button);
      button.setAttribute("aria-pressed", "true");
    }
    byId("all").addEventListener("click", () => on.forEach((_, label) => toggle(label, true)));
    byId("none").addEventListener("click", () => on.forEach((_, label) => toggle(label, false)));
    new ResizeObserver(redraw).observe(canvas);
    redraws.push(draw);
    pane.clear(); reset();
  }

  // Takes what a Path2D takes and writes it as the path of an SVG.
  class OutlinePath {
    constructor() { this.text = ""; }
    moveTo(x, y) { this.text += `M${x} ${y}`; }
    lineTo(x, y) { this.text += `L${x} ${y}`; }
    closePath() { this.text += "Z"; }
    rect(x, y, w, h) { this.text += `M${x} ${y}h${w}v${h}h${-w}Z`; }
    arc(x, y, r) { this.text += `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`; }
  }

  // The annealing.
  function annealing() {
    const canvas = byId("ways");
    if (!canvas) return;
    const { steps, points } = data.annealing, flat = numbersOf(points);
    const pane = board(canvas), { context } = pane;
    const slider = byId("sweep"), said = byId("said"), play = byId("play");
    let timer = 0, wanted = 0;
    const across = flat.filter((_, i) => i % 2 === 0), along = flat.filter((_, i) => i % 2 === 1);
    const ways = steps.flatMap((step) => step.centers);
    pane.fit([...across, ...ways.map((center) => center[0])], [...along, ...ways.map((center) => center[1])]);
    const draw = () => {
      wanted = 0;
      pane.clear();
      const now = Number(slider.value);
      context.fillStyle = ink("--dot"); context.globalAlpha = .8;
      for (let i = 0; i < across.length; i++) context.fillRect(pane.right(across[i]) - 1, pane.down(along[i]) - 1, 2, 2);
      context.globalAlpha = 1;
      steps[now].centers.forEach((_, label) => {
        context.lineWidth = 2; context.strokeStyle = colorOf(label);
        for (let s = 1; s <= now; s++) {
          if (steps[s].jump && s < now) continue;
          context.setLineDash(steps[s].jump ? [5, 5] : []);
          context.beginPath();
          for (const { centers } of [steps[s - 1], steps[s]]) context.lineTo(pane.right(centers[label][0]), pane.down(centers[label][1]));
          context.stroke();
        }
      });
      context.setLineDash([]);
      steps[now].centers.forEach((center, label) => centerMark(context, pane.right(center[0]), pane.down(center[1]), label));
      pane.axes(...data.annealing.names);
    };
    const redraw = () => { if (!wanted) wanted = requestAnimationFrame(draw); };
    const tell = () => {
      const step = steps[Number(slider.value)];
      said.textContent = step.words;
      slider.setAttribute("aria-valuetext", step.words);
      redraw();
    };
    const stop = () => { clearInterval(timer); timer = 0; play.textContent = "play"; };
    slider.max = String(steps.length - 1); slider.value = slider.max;
    slider.addEventListener("input", () => { stop(); tell(); });
    play.addEventListener("click", () => {
      if (timer) return stop();
      if (Number(slider.value) >= steps.length - 1) slider.value = "0";
      play.textContent = "pause"; tell();
      timer = setInterval(() => {
        slider.value = String(Number(slider.value) + 1); tell();
        if (Number(slider.value) >= steps.length - 1) stop();
      }, Math.max(60, Math.min(400, 8000 / steps.length)));
    });
    new ResizeObserver(redraw).observe(canvas);
    redraws.push(draw);
    tell();
  }

  // The code.
  const copy = byId("copy");
  if (copy) copy.addEventListener("click", async () => {
    const code = byId("program").textContent;
    try { await navigator.clipboard.writeText(code); copy.textContent = "copied"; }
    catch {
      const range = document.createRange();
      range.selectNodeContents(byId("program"));
      getSelection().removeAllRanges(); getSelection().addRange(range);
      copy.textContent = "selected: press Ctrl+C";
    }
  });

  // A link to a cluster unfolds it.
  const unfold = () => { const found = location.hash && byId(location.hash.slice(1)); if (found?.tagName === "DETAILS") found.open = true; };
  addEventListener("hashchange", unfold);
  unfold();

  // A print has all details open, and is light.
  let folded = [], theme;
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    folded.forEach((one) => { one.open = true; });
    theme = root.dataset.theme; root.dataset.theme = "light";
    redraws.forEach((redraw) => redraw());
  });
  addEventListener("afterprint", () => {
    folded.forEach((one) => { one.open = false; });
    if (theme) root.dataset.theme = theme; else delete root.dataset.theme;
    redraws.forEach((redraw) => redraw());
  });

  scatter();
  annealing();
})();
