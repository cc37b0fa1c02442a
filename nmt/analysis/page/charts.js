// Charts by uPlot. A point is a list: x, y, count, low, high, at.
const [X, Y, COUNT, LOW, HIGH, AT] = [0, 1, 2, 3, 4, 5];
const WHOLE = [...Array(12).keys()].flatMap((power) => [1, 2, 5].map((times) => times * 10 ** power));  // of all x axes
const COLORS = 8, HEIGHT = 260, PRINTED = 330;

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const colorOf = (name, place) => {
  const known = data.systems.indexOf(name);
  return `--series-${(known < 0 ? place : known) % COLORS}`;
};

const xsOf = (given) => [...new Set(given.series.flatMap((series) => series.points.map((point) => point[X])))].sort((a, b) => a - b);

// The columns that uPlot draws: all x, then y, low and high of each curve. Where a whole number is missing
// between two x, curves that count something are interrupted.
function columns(given) {
  let xs = xsOf(given);
  if (given.counted) xs = xs.flatMap((x, place) => (place && x > xs[place - 1] + 1 ? [x - 0.5, x] : [x]));
  const found = [xs];
  for (const series of given.series) {
    const at = new Map(series.points.map((point) => [point[X], point]));
    for (const part of [Y, LOW, HIGH]) found.push(xs.map((x) => at.get(x)?.[part] ?? null));
  }
  return found;
}

// Bars stand side by side: each system has its own share of the space around x.
function barColumns(given) {
  const count = given.series.length, labels = given.labels.length;
  const xs = [], ys = given.series.map(() => []);
  for (let x = 0; x < labels; x++) given.series.forEach((series, place) => {
    xs.push(x + ((place - (count - 1) / 2) * 0.8) / count);
    ys.forEach((column, other) => column.push(other === place ? series.points[x]?.[Y] ?? null : null));
  });
  return [xs, ...ys.flatMap((column) => [column, column.map(() => null), column.map(() => null)])];
}

function options(given, width, height) {
  const ink = css("--soft"), line = css("--line"), xs = xsOf(given);
  const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 }, font: "11px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif" };
  const labels = given.labels, every = Math.ceil((labels.length * 62) / Math.max(width - 60, 1));
  const named = {
    splits: () => labels.map((_, place) => place).filter((place) => place % every === 0),
    values: (chart, splits) => splits.map((place) => labels[place] ?? ""),
  };
  const series = given.series.flatMap(({ name }, place) => {
    const color = css(colorOf(name, place));
    const edge = { stroke: "transparent", width: 0, points: { show: false }, spanGaps: false };
    const curve = given.bars
      ? { stroke: color, fill: color + "b0", width: 1, paths: uPlot.paths.bars({ size: [0.95, 60] }), points: { show: false } }
      : { stroke: color, width: 2, spanGaps: !given.counted, points: { show: true, size: 5, fill: color, stroke: color } };
    return [{ label: name, ...curve }, { ...edge }, { ...edge }];
  });
  return {
    width, height,
    padding: [10, 14, 0, 0],
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, y: false, points: { show: !given.bars, size: 9 } },
    scales: {
      x: { time: false, range: () => (labels.length ? [-0.5, labels.length - 0.5] : xs.length > 1 ? [xs[0], xs.at(-1)] : [xs[0] - 1, xs[0] + 1]) },
      y: { range: (chart, low, high) => [0, (high || 1) * 1.05] },
    },
    axes: [{ ...axis, label: given.x, labelSize: 18, size: 32, ...(labels.length ? named : { incrs: WHOLE }) }, { ...axis, label: given.y, labelSize: 18, size: 46 }],
    series: [{}, ...series],
    bands: given.series.map(({ name }, place) => ({ series: [3 * place + 3, 3 * place + 2], fill: css(colorOf(name, place)) + "26" })),
  };
}

// One x in words: what it stands for, and the value of each curve that is shown.
function says(given, x, hidden) {
  const points = given.series.map((series) => series.points.find((point) => point[X] === x));
  const known = points.find(Boolean);
  if (!known) return "";
  const place = given.labels.length ? `${given.labels[x]} ${given.x}` : `${known[X]} ${given.x}` + (known[AT] ? ` (${known[AT]})` : "");
  const count = known[COUNT] === null ? "" : `, n = ${known[COUNT]} ${given.counted}`;
  const digits = given.bars ? 0 : 2;
  const values = given.series.flatMap(({ name }, index) => {
    const point = points[index];
    if (!point || hidden.has(index)) return [];
    const band = point[LOW] === null ? "" : ` (95%: ${number(point[LOW], digits)} to ${number(point[HIGH], digits)})`;
    return [`${name}: ${given.y} ${number(point[Y], digits)}${band}`];
  });
  return `${place}${count}. ${values.join("; ")}`;
}

function makeChart(holder) {
  const given = data.charts[Number(holder.dataset.chart)];
  if (!given.series.some((series) => series.points.length)) return null;
  const xs = xsOf(given);
  const drawn = given.bars ? barColumns(given) : columns(given);
  const hidden = new Set();
  const canvas = element("div", { class: "canvas", tabindex: "0", role: "application", "aria-roledescription": "chart", "aria-label": given.title });
  const legend = element("div", { class: "legend", role: "group", "aria-label": "curves" });
  const readout = element("output", { class: "readout", "aria-live": "polite" }, "Point at the chart, or use the arrow keys, to read its points.");
  holder.replaceChildren(canvas, legend, readout);
  let chart = null, at = null, moving = false;

  const read = (x) => {
    at = x;
    if (x !== null) readout.textContent = says(given, x, hidden);
  };
  const nearest = (x) => xs.reduce((best, one) => (Math.abs(one - x) < Math.abs(best - x) ? one : best));
  const build = (width, height) => {
    chart?.destroy();
    const made = options(given, width, height);
    made.hooks = { setCursor: [(one) => { if (!moving && one.cursor.left >= 0) read(nearest(one.posToVal(one.cursor.left, "x"))); }] };
    chart = new uPlot(made, drawn, canvas);
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
  given.series.forEach(({ name }, index) => {
    const mark = element("i"), button = element("button", { type: "button", "aria-pressed": "true" }, mark, element("bdi", {}, name));
    mark.style.setProperty("--color", `var(${colorOf(name, index)})`);
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
