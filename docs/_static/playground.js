// Lloyd's algorithm and power k-means on points that you paint and drag. It needs no other file.
// tests/test_playground.py compares the sweeps with those of the package.
"use strict";
(() => {
  // Points and centers are arrays of [x, y]; a rule turns the squared distances between a point
  // and all centers into weights.
  const squares = (point, centers) =>
    centers.map((center) => (point[0] - center[0]) ** 2 + (point[1] - center[1]) ** 2);
  const nearest = (distances) => distances.indexOf(Math.min(...distances));
  const ratios = (distances) => {
    const least = Math.min(...distances);
    return distances.map((distance) => (distance === least ? 1 : distance / least));
  };
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

  const hard = (distances) => {
    const label = nearest(distances);
    return distances.map((_, j) => Number(j === label));
  };
  // Algorithm 1, line 3: the derivatives of the power mean, which is the same for all units.
  const soft = (s) => (distances) => {
    const far = ratios(distances), level = mean(far.map((ratio) => ratio ** s)) ** (1 / s - 1);
    return far.map((ratio) => (level * ratio ** (s - 1)) / distances.length);
  };
  // Line 4: each center becomes the weighted mean of all points.
  const sweep = (points, centers, rule) => {
    const sums = centers.map(() => [0, 0, 0]);
    for (const point of points) {
      rule(squares(point, centers)).forEach((weight, j) => {
        sums[j][0] += weight;
        sums[j][1] += weight * point[0];
        sums[j][2] += weight * point[1];
      });
    }
    return sums.map(([total, x, y], j) => (total > 0 ? [x / total, y / total] : centers[j]));
  };
  const inertia = (points, centers) =>
    points.reduce((sum, point) => sum + Math.min(...squares(point, centers)), 0);
  const objective = (points, centers, s) =>
    points.reduce((sum, point) => {
      const distances = squares(point, centers), least = Math.min(...distances);
      return sum + (least && least * mean(ratios(distances).map((ratio) => ratio ** s)) ** (1 / s));
    }, 0);

  // Each step of a run returns whether the run goes on.
  const lloyd = (points, seeds) => ({
    centers: seeds, sweeps: 0,
    step() {
      const before = this.centers;
      this.centers = sweep(points, before, hard);
      this.sweeps += 1;
      return String(this.centers) !== String(before);
    },
  });
  const power = (points, seeds, s, growth) => ({
    centers: seeds, sweeps: 0, s, last: NaN,
    step() {
      const now = objective(points, this.centers, this.s), isFlat = this.last - now <= (1e-6 / Math.SQRT2) * this.last;
      this.centers = sweep(points, this.centers, soft(this.s));
      this.last = now;
      this.s *= growth; // line 5
      this.sweeps += 1;
      return !isFlat && Number.isFinite(this.s); // line 6
    },
  });
  const ended = (run) => { while (run.sweeps < 2000 && run.step()); return run; };
  globalThis.playground = { lloyd, power, sweep, hard, soft, inertia, objective, ended };

  const WIDTH = 120, HEIGHT = 80, SVG = "http://www.w3.org/2000/svg";
  const generator = (seed) => () => { // mulberry32
    seed = (seed + 0x6d2b79f5) | 0;
    let bits = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    bits = (bits + Math.imul(bits ^ (bits >>> 7), 61 | bits)) ^ bits;
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
  };
  const start = (root) => {
    let random = generator(3), points = [], seeds = [], runs = [], timer = 0;
    const find = (name) => root.querySelector(`[data-name="${name}"]`);
    const value = (name) => Number(find(name).value);
    const sheets = ["lloyd", "power"].map(find);
    const inside = ([x, y]) => [Math.min(WIDTH - 1, Math.max(1, x)), Math.min(HEIGHT - 1, Math.max(1, y))];
    const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
    const number = (x) => Math.round(x).toLocaleString("en");

    const draw = () => {
      runs.forEach((run, which) => {
        const sheet = sheets[which], labels = points.map((point) => nearest(squares(point, run.centers)));
        const shapes = [
          ...points.map(([x, y], i) => ["circle", { cx: x, cy: y, r: 1, class: `c${labels[i] % 12}` }]),
          ...seeds.map(([x, y]) => ["circle", { cx: x, cy: y, r: 2.4, class: "seed" }]),
          ...run.paths.map((path) => ["polyline", { points: path.join(" "), class: "path" }]),
          ...run.centers.map(([x, y], j) => ["path", { d: `M${x - 2.2} ${y - 2.2}l4.4 4.4m0-4.4l-4.4 4.4`, class: `center c${j % 12}` }]),
        ];
        sheet.replaceChildren(...shapes.map(([kind, attributes]) => {
          const shape = document.createElementNS(SVG, kind);
          for (const [name, given] of Object.entries(attributes)) shape.setAttribute(name, given);
          return shape;
        }));
        const s = run.s === undefined ? "" : `, s = ${run.s > -1000 ? run.s.toPrecision(3) : "−∞"}`;
        find(["lloyd-sum", "power-sum"][which]).textContent =
          `Sum of squares ${number(inertia(points, run.centers))} after ${run.sweeps} sweeps${s}${s && run.goes ? ", still soft" : ""}`.replace("= -", "= −");
      });
    };
    const restart = () => {
      cancelAnimationFrame(timer);
      runs = [lloyd(points, seeds), power(points, seeds, -value("s"), value("growth"))];
      for (const run of runs) Object.assign(run, { goes: points.length > 0, paths: seeds.map((seed) => [seed]) });
      find("verdict").textContent = "";
      draw();
    };
    const step = () => {
      for (const run of runs.filter((one) => one.goes)) {
        run.goes = run.step() && run.sweeps < 2000;
        run.centers.forEach((center, j) => run.paths[j].push(center));
      }
      draw();
      const goes = runs.some((run) => run.goes), [a, b] = runs.map((run) => inertia(points, run.centers));
      const most = Math.max(a, b), share = most < 1e-9 ? "0.0" : ((100 * Math.abs(a - b)) / most).toFixed(1);
      if (!goes && points.length) find("verdict").textContent = share === "0.0" ? "Both end at the same sum of squares." :
        `From these seeds, ${b < a ? "power k-means" : "Lloyd's algorithm"} ends ${share} % lower.`;
      return goes;
    };
    const run = () => {
      restart();
      const go = () => {
        let goes = step();
        while (goes && matchMedia("(prefers-reduced-motion: reduce)").matches) goes = step();
        if (goes) timer = requestAnimationFrame(go);
      };
      timer = requestAnimationFrame(go);
    };
    const paintPoints = () => {
      const towns = Array.from({ length: 9 }, (_, j) => [20 + 40 * (j % 3) + 4 * normal(), 13 + 27 * Math.floor(j / 3) + 2 * normal()]);
      points = Array.from({ length: 270 }, (_, i) => inside(towns[i % 9].map((at) => at + 4 * normal())));
      seeds = draws();
    };
    const draws = () => Array.from({ length: value("k") }, () =>
      points.length ? [...points[Math.floor(random() * points.length)]] : [random() * WIDTH, random() * HEIGHT]);
    const actions = {
      run,
      step: () => { cancelAnimationFrame(timer); step(); },
      seeds: () => { seeds = draws(); run(); },
      many: () => {
        restart();
        const sums = [], go = () => {
          const from = draws();
          sums.push([lloyd(points, from), power(points, from, -value("s"), value("growth"))].map((one) => inertia(points, ended(one).centers)));
          const least = Math.min(...sums.flat());
          const [a, b] = [0, 1].map((which) => sums.filter((pair) => pair[which] <= 1.01 * least).length);
          find("verdict").textContent = `Of ${sums.length} draws of seeds, Lloyd comes within 1 % of the lowest sum of squares ${a} times, power k-means ${b} times.`;
          if (sums.length < 20) timer = requestAnimationFrame(go);
        };
        timer = requestAnimationFrame(go);
      },
      points: () => { paintPoints(); run(); },
      clear: () => { points = []; restart(); },
    };
    for (const [name, action] of Object.entries(actions)) find(name).addEventListener("click", action);
    for (const name of ["s", "growth", "k"]) {
      find(name).addEventListener("input", () => {
        find(`${name}-value`).textContent = name === "s" ? `−${value(name)}` : value(name);
        if (name === "k") seeds = draws();
        run();
      });
    }

    // A pointer drags a seed or a point that is near, and paints points elsewhere.
    sheets.forEach((sheet) => {
      let held = null, list = points;
      const place = (event) => {
        const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(sheet.getScreenCTM().inverse());
        return inside([at.x, at.y]);
      };
      const paint = (event) => {
        const at = place(event);
        if (held !== null) list[held] = at;
        else for (let i = 0; i < 2; i += 1) points.push(inside(at.map((x) => x + 1.5 * normal())));
        restart();
      };
      sheet.addEventListener("pointerdown", (event) => {
        const at = place(event), reach = event.pointerType === "touch" ? 25 : 6;
        held = null;
        for (const some of [points, seeds]) {
          const distances = squares(at, some), i = nearest(distances);
          if (distances[i] < reach) [held, list] = [i, some];
        }
        sheet.setPointerCapture(event.pointerId);
        event.preventDefault();
        paint(event);
      });
      sheet.addEventListener("pointermove", (event) => {
        if (sheet.hasPointerCapture(event.pointerId)) paint(event);
      });
      sheet.addEventListener("pointerup", run);
    });
    paintPoints();
    restart();
  };
  if (typeof document !== "undefined") {
    const begin = () => document.querySelectorAll(".playground").forEach(start);
    if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
    else begin();
  }
})();
