"use strict";
(() => {
  const tip = document.getElementById("tip");

  function showTip(text, x, y) {
    tip.textContent = text;
    tip.classList.add("shown");
    const box = tip.getBoundingClientRect();
    const left = Math.min(Math.max(6, x + 14), window.innerWidth - box.width - 6);
    const top = y + 18 + box.height > window.innerHeight ? y - box.height - 10 : y + 18;
    tip.style.left = `${left}px`;
    tip.style.top = `${Math.max(6, top)}px`;
  }

  function hideTip() { tip.classList.remove("shown"); }

  // -- charts with marks: hover, or arrow keys while the chart has the focus
  function watchMarks(chart) {
    const marks = [...chart.querySelectorAll(".mark[data-tip]")];
    let active = -1;
    const show = (mark) => {
      const box = mark.getBoundingClientRect();
      showTip(mark.dataset.tip, box.left + box.width / 2, box.top + box.height / 2);
    };
    const activate = (position) => {
      if (active >= 0) marks[active].classList.remove("active");
      active = position;
      if (active >= 0) { marks[active].classList.add("active"); show(marks[active]); } else hideTip();
    };
    marks.forEach((mark) => {
      mark.addEventListener("pointerenter", () => show(mark));
      mark.addEventListener("pointerleave", hideTip);
    });
    chart.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (step && marks.length) {
        event.preventDefault();
        activate((active + step + marks.length) % marks.length);
      } else if (event.key === "Escape") activate(-1);
    });
    chart.addEventListener("blur", () => activate(-1));
  }

  // -- maps of cells: the same, cell by cell
  function watchGrid(chart) {
    const data = JSON.parse(document.getElementById(`${chart.id.replace(/-narrow$/, "")}-data`).textContent);
    const [left, top, width, height] = chart.dataset.grid.split(" ").map(Number);
    const cursor = chart.querySelector(".cursor");
    let row = -1, column = -1;
    const text = () => data.cells ? data.cells[row][column] : data.texts[data.levels[row][column]];
    const show = (newRow, newColumn, event) => {
      row = newRow; column = newColumn;
      cursor.setAttribute("x", left + column * width);
      cursor.setAttribute("y", top + row * height);
      const box = cursor.getBoundingClientRect();
      const position = event ? [event.clientX, event.clientY] : [box.left, box.bottom - 10];
      showTip(`${data.rows[row]} · ${data.columns[column]}: ${text()}`, ...position);
    };
    const leave = () => { cursor.setAttribute("x", -99); cursor.setAttribute("y", -99); hideTip(); };
    chart.addEventListener("pointermove", (event) => {
      const position = new DOMPoint(event.clientX, event.clientY).matrixTransform(chart.getScreenCTM().inverse());
      const c = Math.floor((position.x - left) / width), r = Math.floor((position.y - top) / height);
      if (r >= 0 && c >= 0 && r < data.rows.length && c < data.columns.length) show(r, c, event); else leave();
    });
    chart.addEventListener("pointerleave", leave);
    chart.addEventListener("blur", leave);
    chart.addEventListener("keydown", (event) => {
      const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
      if (event.key === "Escape") leave();
      if (!step) return;
      event.preventDefault();
      const r = Math.min(Math.max(row + step[0], 0), data.rows.length - 1);
      const c = Math.min(Math.max(column + step[1], 0), data.columns.length - 1);
      show(r, c, null);
    });
  }

  // -- tables sort by the column whose heading is pressed
  function sortable(table) {
    const headings = [...table.tHead.rows[0].cells];
    headings.forEach((heading, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = heading.textContent;
      heading.replaceChildren(button);
      button.addEventListener("click", () => sortBy(table, headings, column));
    });
  }

  function cellValue(row, column) {
    const cell = row.cells[column];
    return (cell.dataset.value ?? cell.textContent).trim();
  }

  function sortBy(table, headings, column) {
    const falling = headings[column].getAttribute("aria-sort") === "ascending";
    headings.forEach((heading) => heading.removeAttribute("aria-sort"));
    headings[column].setAttribute("aria-sort", falling ? "descending" : "ascending");
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row) => ({ row, text: cellValue(row, column) }));
    const isNumber = (text) => /^[-+]?(\d|\.\d)/.test(text) && !Number.isNaN(parseFloat(text));
    const numeric = rows.every(({ text }) => isNumber(text) || text === "–" || text === "");
    const missing = -Infinity;
    const key = ({ text }) => (numeric ? (isNumber(text) ? parseFloat(text) : missing) : text);
    rows.sort((a, b) => {
      const x = key(a), y = key(b);
      const order = numeric ? (x < y ? -1 : x > y ? 1 : 0) : x.localeCompare(y, undefined, { numeric: true });
      return falling ? -order : order;
    });
    body.append(...rows.map(({ row }) => row));
    paged(table);
  }

  // -- long tables show their first rows; a button or the filter shows the others
  const FIRST_ROWS = 20;

  function paged(table) {
    [...table.tBodies[0].rows].forEach((row, i) => row.classList.toggle("beyond", i >= FIRST_ROWS));
  }

  function pageable(table) {
    const count = table.tBodies[0].rows.length;
    if (count <= FIRST_ROWS) return;
    paged(table);
    table.classList.add("paged");
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = `Show all ${count} rows`;
    button.addEventListener("click", () => { table.classList.remove("paged"); button.remove(); });
    toolsOf(table).append(button);
  }

  // -- tables as files, as they are sorted
  function toolsOf(table) {
    const scroll = table.closest(".scroll");
    if (!scroll.nextElementSibling?.classList.contains("table-tools")) {
      const tools = document.createElement("p");
      tools.className = "table-tools";
      scroll.after(tools);
    }
    return scroll.nextElementSibling;
  }

  function asCsv(table) {
    const quoted = (text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
    const text = (cell) => quoted(cell.textContent.trim().replace(/\s+/g, " "));
    return [...table.rows].map((row) => [...row.cells].map(text).join(",")).join("\r\n") + "\r\n";
  }

  function exportable(table) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "CSV";
    const name = table.querySelector("caption")?.textContent || table.id;
    button.setAttribute("aria-label", `Download as CSV: ${name}`);
    button.addEventListener("click", () => {
      save(new Blob(["\ufeff", asCsv(table)], { type: "text/csv" }), `zeronorm-${table.id.replace(/-table$/, "")}.csv`);
    });
    toolsOf(table).append(button);
  }

  // -- a list of the sections that stays in sight
  function contents(nav) {
    const headings = [...document.querySelectorAll("main h2[id], main figure h2")];
    if (headings.length < 4) return;
    headings.forEach((heading, i) => { heading.id ||= `section-${i}`; });
    const list = document.createElement("ul");
    for (const heading of headings) {
      const link = document.createElement("a"), item = document.createElement("li");
      link.href = `#${heading.id}`;
      link.textContent = heading.textContent;
      item.append(link);
      list.append(item);
    }
    const details = document.createElement("details"), summary = document.createElement("summary");
    summary.textContent = "Contents";
    details.append(summary, list);
    list.addEventListener("click", () => { details.open = false; });
    nav.append(details);
    nav.hidden = false;
  }

  function filterable(input) {
    const table = document.getElementById(input.dataset.table);
    input.addEventListener("input", () => {
      const wanted = input.value.toLowerCase();
      table.classList.toggle("filtered", wanted !== "");
      for (const row of table.tBodies[0].rows) {
        row.hidden = !row.querySelector("th").textContent.toLowerCase().includes(wanted);
      }
    });
  }

  function theme(button) {
    const dark = () => {
      const chosen = document.documentElement.dataset.theme;
      return chosen ? chosen === "dark" : window.matchMedia("(prefers-color-scheme: dark)").matches;
    };
    const label = () => {
      button.textContent = dark() ? "Light colours" : "Dark colours";
      button.setAttribute("aria-pressed", String(dark()));
    };
    button.hidden = false;
    button.addEventListener("click", () => {
      document.documentElement.dataset.theme = dark() ? "light" : "dark";
      label();
    });
    label();
  }

  function copying(button) {
    if (!navigator.clipboard) return;
    button.hidden = false;
    button.addEventListener("click", async () => {
      const text = document.getElementById(button.dataset.copies).textContent;
      try {
        await navigator.clipboard.writeText(text);
        button.textContent = "Copied";
      } catch {
        button.textContent = "Copying is not allowed here";
      }
    });
  }

  // -- lines: a press on a name hides its line, pointing at it shows its intervals and dims the others
  function switchable(figure) {
    const charts = [...figure.querySelectorAll("svg.chart")];
    const parts = (number) => charts.flatMap((chart) => [...chart.querySelectorAll(`[data-series="${number}"]`)]);
    const light = (number, on) => {
      charts.forEach((chart) => chart.classList.toggle("has-lit", on));
      parts(number).forEach((part) => part.classList.toggle("lit", on));
    };
    figure.querySelectorAll(".key").forEach((key) => {
      const number = key.dataset.series;
      key.addEventListener("click", () => {
        const shown = key.getAttribute("aria-pressed") !== "true";
        key.setAttribute("aria-pressed", String(shown));
        parts(number).forEach((part) => part.classList.toggle("off", !shown));
      });
      for (const [name, on] of [["pointerenter", true], ["focus", true], ["pointerleave", false], ["blur", false]]) {
        key.addEventListener(name, () => light(number, on));
      }
    });
    charts.forEach((chart) => chart.querySelectorAll("[data-series]").forEach((part) => {
      part.addEventListener("pointerenter", () => light(part.dataset.series, true));
      part.addEventListener("pointerleave", () => light(part.dataset.series, false));
    }));
  }

  // -- figures as files: the styles of the page are written into a copy of the drawing
  const STYLES = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "opacity", "display",
    "font-family", "font-size", "font-weight", "text-anchor", "paint-order"];

  function standalone(chart) {
    const copy = chart.cloneNode(true);
    const originals = [chart, ...chart.querySelectorAll("*")], copies = [copy, ...copy.querySelectorAll("*")];
    originals.forEach((original, i) => {
      const style = getComputedStyle(original);
      for (const name of STYLES) copies[i].style.setProperty(name, style.getPropertyValue(name));
      for (const name of ["class", "data-tip", "data-series", "tabindex"]) copies[i].removeAttribute(name);
    });
    const { width, height } = chart.viewBox.baseVal;
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    copy.setAttribute("width", width);
    copy.setAttribute("height", height);
    const paper = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    paper.setAttribute("width", width);
    paper.setAttribute("height", height);
    paper.setAttribute("fill", getComputedStyle(document.querySelector(".card")).backgroundColor);
    copy.prepend(paper);
    return { text: new XMLSerializer().serializeToString(copy), width, height };
  }

  function save(blob, name) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  function download(figure, kind) {
    const name = `zeronorm-${figure.dataset.figure}.${kind}`;
    // the wide drawing on a phone too: it names its lines, the narrow one leaves that to the page
    const { text, width, height } = standalone(figure.querySelector(".drawing.wide svg.chart"));
    if (kind === "svg") { save(new Blob([text], { type: "image/svg+xml" }), name); return; }
    const picture = new Image();
    picture.onload = () => {
      const canvas = document.createElement("canvas");
      const scale = 3;
      canvas.width = width * scale;
      canvas.height = height * scale;
      canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => save(blob, name));
    };
    picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  }

  function downloadable(figure) {
    figure.querySelector(".downloads").hidden = false;
    figure.querySelectorAll("[data-download]").forEach((button) => {
      button.addEventListener("click", () => download(figure, button.dataset.download));
    });
  }

  document.querySelectorAll("svg.chart").forEach((chart) => (chart.dataset.grid ? watchGrid : watchMarks)(chart));
  document.querySelectorAll("figure[data-figure]").forEach((figure) => { switchable(figure); downloadable(figure); });
  document.querySelectorAll("table.sortable").forEach(sortable);
  document.querySelectorAll("table.sortable[id]").forEach((table) => { pageable(table); exportable(table); });
  document.querySelectorAll("#contents").forEach(contents);
  document.querySelectorAll("input[data-table]").forEach(filterable);
  theme(document.getElementById("theme"));
  document.querySelectorAll("[data-copies]").forEach(copying);
})();
