// Two pictures on canvases: lines over steps, and a strip of attention weights.

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// A canvas in CSS pixels, sharp on any screen.
function begin(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth, height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = "11px system-ui, sans-serif";
  return {context, width, height};
}

// A round number near a third of the range, for the grid.
function gridStep(range) {
  const power = 10 ** Math.floor(Math.log10(range / 3));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => range / step <= 4);
}

// series: {values, colour, dashed, smooth, width}; values are returns after steps 1, 2, …
export function lines(canvas, series, horizon, marks) {
  const {context, width, height} = begin(canvas);
  const left = 34, right = 8, top = 8, bottom = 20;
  const all = series.flatMap((one) => one.values);
  const high = all.reduce((a, b) => Math.max(a, b), 1), low = all.reduce((a, b) => Math.min(a, b), 0);
  const x = (step) => left + (width - left - right) * step / Math.max(horizon, 1);
  const y = (value) => height - bottom - (height - top - bottom) * (value - low) / (high - low);
  context.strokeStyle = colour("--edge");
  context.fillStyle = colour("--soft");
  context.lineWidth = 1;
  context.textAlign = "right";
  const step = gridStep(high - low);
  for (let value = Math.ceil(low / step) * step; value <= high; value += step) {
    context.beginPath(); context.moveTo(left, y(value)); context.lineTo(width - right, y(value));
    context.stroke();
    context.fillText(String(+value.toPrecision(3)), left - 6, y(value) + 4);
  }
  context.textAlign = "center";
  for (const share of [0, 0.5, 1]) {
    context.textAlign = share === 1 ? "right" : "center";
    const label = share === 1 ? `step ${horizon}` : String(Math.round(horizon * share));
    context.fillText(label, x(horizon * share), height - 4);
  }
  context.setLineDash([2, 3]);
  context.strokeStyle = colour("--amber");
  for (const mark of marks) {
    context.beginPath(); context.moveTo(x(mark), top); context.lineTo(x(mark), height - bottom);
    context.stroke();
  }
  for (const one of series) {
    context.strokeStyle = colour(one.colour);
    context.lineWidth = one.width;
    context.setLineDash(one.dashed ? [5, 4] : []);
    context.beginPath();
    context.moveTo(x(0), y(0));
    let height = y(0);
    one.values.forEach((value, index) => {
      if (!one.smooth) context.lineTo(x(index + 1), height);  // stairs: steps pay all at once
      context.lineTo(x(index + 1), height = y(value));
    });
    context.stroke();
  }
  context.setLineDash([]);
}

// rows: {weight, foreign, first, paid}; chosen is an index or -1.
export function strip(canvas, rows, chosen) {
  const {context, width, height} = begin(canvas);
  const base = height - 16, cell = width / Math.max(rows.length, 40);
  const most = rows.reduce((a, row) => Math.max(a, row.weight), 1e-6);
  context.fillStyle = colour("--track");
  context.fillRect(0, base, width, 1);
  rows.forEach((row, index) => {
    const x = index * cell, bar = Math.max(1, base * 0.94 * Math.sqrt(row.weight / most));
    if (row.first) {
      context.fillStyle = colour("--edge");
      context.fillRect(x, 0, 1, height);
    }
    context.fillStyle = colour(row.foreign ? "--foreign" : "--accent");
    context.globalAlpha = index === chosen ? 1 : 0.75;
    context.fillRect(x + cell * 0.1, base - bar, Math.max(cell * 0.8, 0.7), bar);
    context.globalAlpha = 1;
    if (row.paid) {
      context.fillStyle = colour("--amber");
      context.beginPath();
      context.arc(x + cell / 2, base + 8, Math.min(3.2, Math.max(1.6, cell / 2)), 0, 7);
      context.fill();
    }
    if (index === chosen) {
      context.strokeStyle = colour("--ink");
      context.lineWidth = 1.5;
      context.strokeRect(x + 0.75, 0.75, Math.max(cell - 1.5, 2), height - 1.5);
    }
  });
}

// Which row of the strip a pointer is over.
export function rowAt(canvas, count, clientX) {
  const box = canvas.getBoundingClientRect();
  const index = Math.floor((clientX - box.left) / (box.width / Math.max(count, 40)));
  return index >= 0 && index < count ? index : -1;
}
