// Charts by uPlot. A point is a list: x, y, count, low, high, at.
const [X, Y, COUNT, LOW, HIGH, AT] = [0, 1, 2, 3, 4, 5];
const WHOLE = [...Array(12).keys()].flatMap((power) => [1, 2, 5].map((times) => times * 10 ** power));  // of all x axes
const COLORS = 8, HEIGHT = 260, PRINTED = 330;

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const colorVariable = (name, index) => {
  const system = data.systems.indexOf(name);
  return `--series-${(system < 0 ? index : system) % COLORS}`;
};

const allX = (spec) => [...new Set(spec.series.flatMap((series) => series.points.map((point) => point[X])))].sort((a, b) => a - b);

// The columns that uPlot draws: all x, then y, low and high of each curve. Where a whole number is missing
// between two x, curves that count something are interrupted.
function columns(spec) {
  let xs = allX(spec);
  if (spec.counted) xs = xs.flatMap((x, index) => (index && x > xs[index - 1] + 1 ? [x - 0.5, x] : [x]));
  const result = [xs];
  for (const series of spec.series) {
    const at = new Map(series.points.map((point) => [point[X], point]));
    for (const part of [Y, LOW, HIGH]) result.push(xs.map((x) => at.get(x)?.[part] ?? null));
  }
  return result;
}

// Bars stand side by side: each system has its own share of the space around x.
function barColumns(spec) {
  const count = spec.series.length, labels = spec.labels.length;
  const xs = [], ys = spec.series.map(() => []);
  for (let x = 0; x < labels; x++) spec.series.forEach((series, index) => {
    xs.push(x + ((index - (count - 1) / 2) * 0.8) / count);
    ys.forEach((column, owner) => column.push(owner === index ? series.points[x]?.[Y] ?? null : null));
  });
  return [xs, ...ys.flatMap((column) => [column, column.map(() => null), column.map(() => null)])];
}

function options(spec, width, height) {
  const ink = css("--soft"), line = css("--line"), xs = allX(spec);
  const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 }, font: "11px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif" };
  const labels = spec.labels, every = Math.ceil((labels.length * 62) / Math.max(width - 60, 1));
  const labeled = {
    splits: () => labels.map((_, index) => index).filter((index) => index % every === 0),
    values: (chart, splits) => splits.map((index) => labels[index] ?? ""),
  };
  const series = spec.series.flatMap(({ name }, index) => {
    const color = css(colorVariable(name, index));
    const edge = { stroke: "transparent", width: 0, points: { show: false }, spanGaps: false };
    const curve = spec.bars
      ? { stroke: color, fill: color + "b0", width: 1, paths: uPlot.paths.bars({ size: [0.95, 60] }), points: { show: false } }
      : { stroke: color, width: 2, spanGaps: !spec.counted, points: { show: true, size: 5, fill: color, stroke: color } };
    return [{ label: name, ...curve }, { ...edge }, { ...edge }];
  });
  return {
    width, height,
    padding: [10, 14, 0, 0],
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, y: false, points: { show: !spec.bars, size: 9 } },
    scales: {
      x: { time: false, range: () => (labels.length ? [-0.5, labels.length - 0.5] : xs.length > 1 ? [xs[0], xs.at(-1)] : [xs[0] - 1, xs[0] + 1]) },
      y: { range: (chart, low, high) => [0, (high || 1) * 1.05] },
    },
    axes: [{ ...axis, label: spec.x, labelSize: 18, size: 32, ...(labels.length ? labeled : { incrs: WHOLE }) }, { ...axis, label: spec.y, labelSize: 18, size: 46 }],
    series: [{}, ...series],
    bands: spec.series.map(({ name }, index) => ({ series: [3 * index + 3, 3 * index + 2], fill: css(colorVariable(name, index)) + "26" })),
  };
}

// Describes the points at one x in words: what x stands for, and the value of each visible curve.
function describe(spec, x, hidden) {
  const points = spec.series.map((series) => series.points.find((point) => point[X] === x));
  const first = points.find(Boolean);
  if (!first) return "";
  const position = spec.labels.length ? `${spec.labels[x]} ${spec.x}` : `${first[X]} ${spec.x}` + (first[AT] ? ` (${first[AT]})` : "");
  const count = first[COUNT] === null ? "" : `, n = ${first[COUNT]} ${spec.counted}`;
  const digits = spec.bars ? 0 : 2;
  const values = spec.series.flatMap(({ name }, index) => {
    const point = points[index];
    if (!point || hidden.has(index)) return [];
    const band = point[LOW] === null ? "" : ` (95%: ${number(point[LOW], digits)} to ${number(point[HIGH], digits)})`;
    return [`${name}: ${spec.y} ${number(point[Y], digits)}${band}`];
  });
  return `${position}${count}. ${values.join("; ")}`;
}

function makeChart(holder) {
  const spec = data.charts[Number(holder.dataset.chart)];
  if (!spec.series.some((series) => series.points.length)) return null;
  const xs = allX(spec);
  const drawn = spec.bars ? barColumns(spec) : columns(spec);
  const hidden = new Set();
  const canvas = element("div", { class: "canvas", tabindex: "0", role: "application", "aria-roledescription": "chart", "aria-label": spec.title });
  const legend = element("div", { class: "legend", role: "group", "aria-label": "curves" });
  const readout = element("output", { class: "readout", "aria-live": "polite" }, "Point at the chart, or use the arrow keys, to read its points.");
  holder.replaceChildren(canvas, legend, readout);
  let chart = null, at = null, moving = false;

  const read = (x) => {
    at = x;
    if (x !== null) readout.textContent = describe(spec, x, hidden);
  };
  const nearest = (x) => xs.reduce((best, other) => (Math.abs(other - x) < Math.abs(best - x) ? other : best));
  const build = (width, height) => {
    chart?.destroy();
    const settings = options(spec, width, height);
    settings.hooks = { setCursor: [(plot) => { if (!moving && plot.cursor.left >= 0) read(nearest(plot.posToVal(plot.cursor.left, "x"))); }] };
    chart = new uPlot(settings, drawn, canvas);
    hidden.forEach((index) => toggle(index, false));
  };
  const toggle = (index, show) => [1, 2, 3].forEach((part) => chart.setSeries(3 * index + part, { show }));
  const go = (x) => {
    read(x);
    moving = true;
    chart.setCursor({ left: chart.valToPos(x, "x"), top: 10 });
    moving = false;
  };
  const steps = { ArrowRight: 1, ArrowLeft: -1 };
  canvas.addEventListener("keydown", (event) => {
    const here = xs.indexOf(at), last = xs.length - 1;
    let next = null;
    if (event.key in steps) next = here < 0 ? (steps[event.key] > 0 ? 0 : last) : Math.min(last, Math.max(0, here + steps[event.key]));
    else if (event.key === "Home") next = 0;
    else if (event.key === "End") next = last;
    if (next === null) return;
    event.preventDefault();
    go(xs[next]);
  });
  spec.series.forEach(({ name }, index) => {
    const mark = element("i"), button = element("button", { type: "button", "aria-pressed": "true" }, mark, element("bdi", {}, name));
    mark.style.setProperty("--color", `var(${colorVariable(name, index)})`);
    button.addEventListener("click", () => {
      const show = hidden.delete(index) || (hidden.add(index), false);
      button.setAttribute("aria-pressed", String(show));
      toggle(index, show);
      read(at);
    });
    legend.append(button);
  });
  const draw = () => build(Math.max(canvas.clientWidth, 200), HEIGHT);
  draw();
  new ResizeObserver(() => { if (canvas.clientWidth && canvas.clientWidth !== chart.width && !isPrinting()) chart.setSize({ width: canvas.clientWidth, height: HEIGHT }); }).observe(canvas);
  return { draw, print: () => build(PRINTED, 200) };
}

const charts = [...document.querySelectorAll(".plot")].map(makeChart).filter(Boolean);
const isPrinting = () => document.documentElement.classList.contains("printing");
const redraw = (printing) => {
  document.documentElement.classList.toggle("printing", printing);
  charts.forEach((chart) => (printing ? chart.print() : chart.draw()));
};
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redraw(isPrinting()));
addEventListener("beforeprint", () => redraw(true));
addEventListener("afterprint", () => redraw(false));
