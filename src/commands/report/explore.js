// Makes a report explorable. Without it every figure and table is there, folded tables included.
"use strict";

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

function unique(values) {
  return [...new Set(values)];
}

function fillSelect(select, names) {
  const before = select.value;
  select.replaceChildren(...names.map((name) => element("option", { value: name }, name)));
  if (names.includes(before)) select.value = before;
}

const [LIGHT, STRONG] = ["65% 85%", "70% 45%"];

/* The library's default is grey, wherever it stands. */
function colourOf(name, names, tone) {
  if (name === "default") return tone === LIGHT ? "hsl(0 0% 82%)" : "hsl(0 0% 50%)";
  return `hsl(${Math.round((names.indexOf(name) * 360) / names.length)} ${tone})`;
}

function answer(point, decidedBy) {
  return point.answers.find((one) => one.decided_by === decidedBy);
}

function svgElement(tag, attributes, text = "") {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(text);
  return made;
}

function inUnits(seconds) {
  const [scale, unit] = [[1, "s"], [1e-3, "ms"], [1e-6, "us"]].find(([scale]) => seconds >= scale * 0.999) ?? [1e-9, "ns"];
  return `${Number((seconds / scale).toPrecision(3))} ${unit}`;
}

/* Powers of ten between two times; 1, 2 and 5 times these where there are fewer than three. */
function timeTicks(least, most) {
  const powers = [...Array(40).keys()].map((place) => 10 ** (place - 30));
  const inside = (ticks) => ticks.filter((tick) => tick >= least && tick <= most);
  const tens = inside(powers);
  return tens.length > 2 ? tens : inside(powers.flatMap((power) => [power, 2 * power, 5 * power]));
}

/* The chart's frame, as wide as there is room: where the nth size and a time lie. Marks lie inside the axes. */
function chartFrame(row, room) {
  const [width, height] = [Math.max(300, Math.min(room, 900)), 280];
  const [left, right, top, bottom, inset] = [70, 12, 10, 40, 14];
  const seconds = row.flatMap((point) => point.answers.map((one) => one.seconds));
  const [low, high] = [Math.min(...seconds), Math.max(...seconds)];
  const [least, most] = low < high ? [low, high] : [low / 2, high * 2];
  const span = Math.log(most / least);
  const x = (index) => left + inset + (index * (width - left - right - 2 * inset)) / Math.max(1, row.length - 1);
  const y = (time) => height - bottom - inset - (Math.log(time / least) * (height - top - bottom - 2 * inset)) / span;
  const svg = svgElement("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
  svg.append(svgElement("title", {}, `Times of ${row[0].collective} on ${row[0].processes}`));
  for (const time of timeTicks(least, most)) {
    svg.append(svgElement("line", { x1: left, x2: width - right, y1: y(time), y2: y(time), class: "gridline" }));
    svg.append(svgElement("text", { x: left - 8, y: y(time) + 4, "text-anchor": "end" }, inUnits(time)));
  }
  svg.append(svgElement("path", { d: `M${left} ${top}V${height - bottom}H${width - right}`, class: "axis" }));
  // As many sizes are written as fit side by side, in letters of 12 px.
  const widest = 8 * (1 + Math.max(...row.map(({ size }) => size.length)));
  const every = Math.ceil(widest / Math.max(1, x(1) - x(0)));
  row.forEach(({ size }, index) => {
    if (index % every > 0) return;
    svg.append(svgElement("text", { x: x(index), y: height - bottom / 2, "text-anchor": "middle" }, size));
  });
  return { svg, x, y };
}

/* Time against size of every decision function, the shown one bold; a click on a point chooses it. */
function timesChart(row, shown, room, choose) {
  const names = unique(row.flatMap((point) => point.answers.map((one) => one.decided_by)));
  const { svg, x, y } = chartFrame(row, room);
  for (const name of names) {
    const [colour, bold] = [colourOf(name, names, STRONG), name === shown];
    const found = row.map((point, index) => [point, index, answer(point, name)]).filter(([, , one]) => one);
    const line = found.map(([, index, one]) => `${x(index)},${y(one.seconds)}`).join(" ");
    svg.append(svgElement("polyline", { points: line, fill: "none", stroke: colour, "stroke-width": bold ? 3 : 1 }));
    for (const [point, index, one] of found) {
      const dot = svgElement("circle", { cx: x(index), cy: y(one.seconds), r: bold ? 5 : 3, fill: colour });
      dot.append(svgElement("title", {}, `${name}: ${one.method}, ${one.time}`));
      dot.onclick = () => choose(point, name);
      svg.append(dot);
    }
  }
  const legend = names.map((name) => {
    const mark = element("span", { className: "line" });
    mark.style.background = colourOf(name, names, STRONG);
    return element("span", { className: "key" }, mark, name);
  });
  return [svg, element("p", {}, "Times on a logarithmic scale. ", ...legend)];
}

/* What each decision function takes at the only size of a row. */
function timesOfOne(point) {
  const told = point.answers.map((one) => element("li", {}, `${one.decided_by}: ${one.method}, ${one.time}`));
  return [element("p", {}, "Of one size there is no curve:"), element("ul", {}, ...told)];
}

function moveByArrows(event) {
  const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  const [columns, rows] = steps[event.key] ?? [];
  const cell = event.target.closest("td");
  if (columns === undefined || !cell) return;
  event.preventDefault();
  const row = cell.parentElement.parentElement.rows[cell.parentElement.rowIndex + rows];
  row?.cells[cell.cellIndex + columns]?.querySelector("button")?.focus();
}

/* The grid of points, what is known of the chosen one, and the times along its row. */
function explorePoints(section, points) {
  const [collective, decidedBy] = section.querySelectorAll("select");
  const [grid, details, curve] = ["grid", "details", "curve"].map((name) =>
    section.querySelector(`.${name}`),
  );
  let chosen = null;

  function show(point) {
    chosen = point;
    for (const cell of grid.querySelectorAll("button")) {
      const isChosen = cell.point === point;
      cell.setAttribute("aria-pressed", isChosen);
      cell.tabIndex = isChosen ? 0 : -1;
    }
    const found = answer(point, decidedBy.value);
    const rows = [["method", found.method], ["time", found.time], ...found.details];
    details.replaceChildren(
      element("h3", {}, `${point.collective} of ${point.size} on ${point.processes}`),
      element("dl", {}, ...rows.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)])),
    );
    drawTimes();
  }

  /* Why a cell is empty: nothing was measured or decided there, or by others alone. */
  function blankName(layout, size) {
    const isOf = (one) => one.collective === collective.value && one.layout === layout && one.size === size;
    return points.some(isOf) ? "decides nothing" : "not measured";
  }

  function drawGrid() {
    const here = points.filter((point) => point.collective === collective.value);
    const answered = here.filter((point) => answer(point, decidedBy.value));
    const sizes = unique(here.map((point) => point.size));
    const methods = unique(answered.map((point) => answer(point, decidedBy.value).method));
    const row = (layout) =>
      element(
        "tr",
        {},
        element("th", { scope: "row" }, layout),
        ...sizes.map((size) => {
          const point = answered.find((one) => one.layout === layout && one.size === size);
          if (!point) return element("td", { className: "blank" }, blankName(layout, size));
          const { method } = answer(point, decidedBy.value);
          const cell = element("button", { type: "button", point, onfocus: () => show(point) }, method);
          cell.onmouseenter = () => show(point);
          cell.style.background = colourOf(method, methods, LIGHT);
          return element("td", {}, cell);
        }),
      );
    const heading = element("tr", {}, element("th", {}, "ranks"), ...sizes.map((size) => element("th", {}, size)));
    grid.replaceChildren(element("table", {}, heading, ...unique(here.map((point) => point.layout)).map(row)));
    if (answered.length > 0) show(answered.includes(chosen) ? chosen : answered[0]);
  }

  function drawTimes() {
    const row = points.filter((one) => one.collective === chosen.collective && one.layout === chosen.layout);
    // One size is no curve: its times are in the list.
    if (row.length < 2) return curve.replaceChildren(...timesOfOne(row[0]));
    const choose = (point, name) => {
      decidedBy.value = name;
      chosen = point;
      drawGrid();
    };
    curve.replaceChildren(...timesChart(row, decidedBy.value, curve.clientWidth || 640, choose));
  }

  grid.onkeydown = moveByArrows;
  const drawCollective = () => {
    const here = points.filter((point) => point.collective === collective.value);
    fillSelect(decidedBy, unique(here.flatMap((point) => point.answers.map((one) => one.decided_by))));
    drawGrid();
  };
  section.hidden = false;
  addEventListener("resize", () => chosen && drawTimes());
  collective.onchange = drawCollective;
  decidedBy.onchange = drawGrid;
  fillSelect(collective, unique(points.map((point) => point.collective)));
  drawCollective();
}

/* The number that a cell holds, in its unit: "8 KiB", "1.2 ms", "3.4 %"; text where it holds none. */
function sortKey(text) {
  const [, number, unit] = /^(-?[\d.]+(?:e[-+]?\d+)?)\s*(\S*)/.exec(text) ?? [];
  const scale = { ns: 1e-9, us: 1e-6, "\u00b5s": 1e-6, ms: 1e-3, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 };
  return number === undefined ? text : Number(number) * (scale[unit] ?? 1);
}

function sortBy(table, column, ascending) {
  const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));
  const keyed = [...table.rows].slice(1).map((row) => [sortKey(row.cells[column].textContent), row]);
  keyed.sort(([a], [b]) => (ascending ? 1 : -1) * compare(a, b));
  table.tBodies[0].append(...keyed.map(([, row]) => row));
}

/* A click on a heading sorts; what is typed above a table leaves the rows that hold it. */
function makeSortable(table) {
  [...table.rows[0].cells].forEach((heading, column) => {
    const sort = element("button", { type: "button", title: "Sort" }, heading.textContent);
    sort.onclick = () => {
      const ascending = heading.getAttribute("aria-sort") !== "ascending";
      for (const other of table.rows[0].cells) other.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", ascending ? "ascending" : "descending");
      sortBy(table, column, ascending);
    };
    heading.replaceChildren(sort);
  });
  if (table.rows.length < 8) return;
  const filter = element("input", { type: "search", placeholder: "Filter", ariaLabel: "Filter" });
  filter.oninput = () => {
    const wanted = filter.value.toLowerCase();
    for (const row of [...table.rows].slice(1)) row.hidden = !row.textContent.toLowerCase().includes(wanted);
  };
  table.before(filter);
}

/* Copies a box's commands as they are typed, one a line. */
function makeCopied(box) {
  const [button, code] = [box.querySelector("button"), box.querySelector("code")];
  button.hidden = false;
  button.onclick = async () => {
    const select = () => {
      getSelection().selectAllChildren(code);
      return document.execCommand("copy");
    };
    const written = navigator.clipboard?.writeText(code.textContent).then(() => true, select) ?? select();
    button.textContent = (await written) ? "Copied" : "Select and copy";
    setTimeout(() => (button.textContent = "Copy"), 2000);
  };
}

const section = document.getElementById("explore");
if (section) explorePoints(section, JSON.parse(document.getElementById("points").textContent));
document.querySelectorAll("table.sortable").forEach(makeSortable);
document.querySelectorAll(".copy").forEach(makeCopied);
// What is folded is printed, too.
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((one) => (one.open = true)));
