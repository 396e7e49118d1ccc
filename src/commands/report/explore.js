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

/* The grid of points, what is known of the chosen one, and the times along its row. */
function explorePoints(section, points) {
  const [collective, decidedBy] = section.querySelectorAll("select");
  const [grid, details, curve] = ["grid", "details", "curve"].map((name) =>
    section.querySelector(`.${name}`),
  );
  const answer = (point, name) => point.answers.find((one) => one.decided_by === name);
  let chosen = null;

  function hue(method, methods) {
    return `hsl(${Math.round((methods.indexOf(method) * 360) / methods.length)} 65% 85%)`;
  }

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
          if (!point) return element("td");
          const { method } = answer(point, decidedBy.value);
          const cell = element("button", { type: "button", point, onfocus: () => show(point) }, method);
          cell.onmouseenter = () => show(point);
          cell.style.background = hue(method, methods);
          return element("td", {}, cell);
        }),
      );
    const heading = element("tr", {}, element("th", {}, "processes"), ...sizes.map((size) => element("th", {}, size)));
    grid.replaceChildren(element("table", {}, heading, ...unique(here.map((point) => point.layout)).map(row)));
    if (answered.length > 0) show(answered.includes(chosen) ? chosen : answered[0]);
  }

  /* Time against size of every decision function, for the chosen point's processes. */
  function drawTimes() {
    const row = points.filter((one) => one.collective === chosen.collective && one.layout === chosen.layout);
    const times = row.flatMap((point) => point.answers.map((one) => Math.log(one.seconds)));
    const [least, most] = [Math.min(...times), Math.max(...times)];
    const [width, height, margin] = [640, 260, 60];
    const x = (index) => margin + (index * (width - 2 * margin)) / Math.max(1, row.length - 1);
    const y = (seconds) =>
      height - margin - ((Math.log(seconds) - least) * (height - 2 * margin)) / (most - least || 1);
    const names = unique(row.flatMap((point) => point.answers.map((one) => one.decided_by)));
    const draw = (tag, attributes, text = "") => {
      const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
      for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
      made.append(text);
      return made;
    };
    const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
    svg.append(draw("title", {}, `Times of ${chosen.collective} on ${chosen.processes}`));
    row.forEach((point, index) => {
      const [label, anchor] = [point.size, "middle"];
      svg.append(draw("text", { x: x(index), y: height - margin / 2, "text-anchor": anchor }, label));
    });
    const all = row.flatMap((point) => point.answers);
    for (const wanted of [least, most]) {
      const { seconds, time } = all.find((one) => Math.log(one.seconds) === wanted);
      svg.append(draw("text", { x: margin - 8, y: y(seconds) + 4, "text-anchor": "end" }, time));
    }
    names.forEach((name, number) => {
      const isShown = name === decidedBy.value;
      const colour = `hsl(${Math.round((number * 360) / names.length)} 70% 45%)`;
      const found = row.map((point, index) => [point, index, answer(point, name)]).filter(([, , one]) => one);
      const line = found.map(([, index, one]) => `${x(index)},${y(one.seconds)}`).join(" ");
      const widthOfLine = isShown ? 3 : 1;
      svg.append(draw("polyline", { points: line, fill: "none", stroke: colour, "stroke-width": widthOfLine }));
      for (const [point, index, one] of found) {
        const dot = draw("circle", { cx: x(index), cy: y(one.seconds), r: isShown ? 5 : 3, fill: colour });
        dot.append(draw("title", {}, `${name}: ${one.method}, ${one.time}`));
        dot.onclick = () => {
          decidedBy.value = name;
          chosen = point;
          drawGrid();
        };
        svg.append(dot);
      }
    });
    const legend = names.map((name, number) => {
      const mark = element("span", {}, "\u25cf ");
      mark.style.color = `hsl(${Math.round((number * 360) / names.length)} 70% 45%)`;
      return element("span", { className: "key" }, mark, name);
    });
    curve.replaceChildren(svg, element("p", {}, "Times on a logarithmic scale: ", ...legend));
  }

  grid.onkeydown = (event) => {
    const [columns, rows] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key] ?? [];
    const cell = event.target.closest("td");
    if (columns === undefined || !cell) return;
    event.preventDefault();
    const row = cell.parentElement.parentElement.rows[cell.parentElement.rowIndex + rows];
    row?.cells[cell.cellIndex + columns]?.querySelector("button")?.focus();
  };
  const drawCollective = () => {
    const here = points.filter((point) => point.collective === collective.value);
    fillSelect(decidedBy, unique(here.flatMap((point) => point.answers.map((one) => one.decided_by))));
    drawGrid();
  };
  collective.onchange = drawCollective;
  decidedBy.onchange = drawGrid;
  fillSelect(collective, unique(points.map((point) => point.collective)));
  drawCollective();
  section.hidden = false;
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

const section = document.getElementById("explore");
if (section) explorePoints(section, JSON.parse(document.getElementById("points").textContent));
document.querySelectorAll("table.sortable").forEach(makeSortable);
// What is folded is printed, too.
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((one) => (one.open = true)));
