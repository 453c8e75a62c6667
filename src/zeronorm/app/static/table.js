// The page of a table: uses of columns, the kind of run, what will happen, and the start.
"use strict";

const setup = document.getElementById("setup");
if (setup) begin();

function begin() {
  const reading = new URLSearchParams(location.search);
  const columns = document.getElementById("columns");
  const kindOf = () => setup.querySelector("[name=kind]:checked").value;
  const field = (name) => document.getElementById(`field-${name}`);

  // -- Uses of columns: a choice in the list changes the field of that use --
  const linesOf = (box) => box.value.split("\n").filter((line) => line !== "");
  const roles = () => [...setup.querySelectorAll(".role option[value]")].map((o) => o.value).filter((v, i, all) => v && all.indexOf(v) === i);
  function roleOf(column) {
    return roles().find((role) => {
      const box = field(role);
      return box && (box.tagName === "TEXTAREA" ? linesOf(box).includes(column) : box.value === column);
    }) || "";
  }
  function use(column, role) {
    for (const other of roles()) {
      const box = field(other);
      if (!box) continue;
      if (box.tagName === "TEXTAREA") box.value = linesOf(box).filter((line) => line !== column).join("\n");
      else if (box.value === column) box.value = "";
    }
    const box = role && field(role);
    if (box && box.tagName === "TEXTAREA") box.value = [...linesOf(box), column].join("\n");
    else if (box) box.value = column;
    showRoles();
    planSoon();
  }
  function showRoles() {
    for (const select of columns.querySelectorAll(".role")) select.value = roleOf(select.dataset.column);
  }
  columns.addEventListener("change", (event) => {
    if (event.target.matches(".role")) use(event.target.dataset.column, event.target.value);
    event.stopPropagation();
  });

  // -- Pages of columns --
  const find = document.getElementById("find"), pager = document.getElementById("pager");
  let number = 1, pages = 1, waiting;
  function showPager() {
    const count = columns.querySelector("#columns-count");
    pages = count ? Number(count.dataset.pages) : 1;
    pager.hidden = pages < 2;
    document.getElementById("page-number").textContent = `Page ${number} of ${pages}`;
    document.getElementById("previous").disabled = number < 2;
    document.getElementById("next").disabled = number >= pages;
  }
  async function showColumns() {
    const query = new URLSearchParams(reading);
    query.set("q", find.value);
    query.set("page", number);
    const answer = await fetch(`/tables/${encodeURIComponent(setup.dataset.table)}/columns?${query}`);
    if (!answer.ok) return;
    columns.innerHTML = await answer.text(); // made by a template that escapes all names
    showRoles();
    showPager();
  }
  find.addEventListener("input", (event) => {
    event.stopPropagation();
    clearTimeout(waiting);
    waiting = setTimeout(() => { number = 1; showColumns(); }, 250);
  });
  document.getElementById("previous").addEventListener("click", () => { number -= 1; showColumns(); });
  document.getElementById("next").addEventListener("click", () => { number += 1; showColumns(); });

  // -- What will happen --
  const box = document.getElementById("plan"), calls = document.getElementById("calls");
  let timer, latest = 0;
  function asked() {
    const kind = kindOf();
    const options = valuesOf(setup, kind);
    for (const [name, value] of reading) if (value !== "") options[name] = value === "true" ? true : value;
    return { kind, table: setup.dataset.table, options };
  }
  function planSoon() {
    clearTimeout(timer);
    timer = setTimeout(showPlan, 400);
  }
  async function showPlan() {
    const mine = ++latest;
    if (!field("target").value && !(field("time") && field("time").value)) {
      box.replaceChildren(element("p", "Choose an outcome first."));
      calls.hidden = true;
      return;
    }
    box.setAttribute("aria-busy", "true");
    let shown;
    try {
      const found = await send("/plan", asked());
      shown = [element("ol", "", found.steps.map((step) => element("li", step)))];
      const time = element("p", `It takes ${found.time}.`);
      time.className = "time";
      shown.push(time, element("p", "The first run on this computer takes half a minute longer: it compiles the numerical loops."));
      shown[2].className = "help";
      if (found.notes.length) {
        const notes = element("ul", "", found.notes.map((note) => element("li", note)));
        notes.className = "notes";
        shown.push(element("h3", "What was decided about the data"), notes);
      }
      document.getElementById("command").textContent = found.command;
      document.getElementById("python").textContent = found.python;
      calls.hidden = false;
    } catch (error) {
      const problem = element("p", error.message);
      problem.className = "problem";
      shown = [problem];
      calls.hidden = true;
    }
    if (mine !== latest) return;
    box.replaceChildren(...shown);
    box.setAttribute("aria-busy", "false");
  }

  // -- The kind of run shows its own fields --
  function showFields() {
    const kind = kindOf();
    for (const part of setup.querySelectorAll("[data-kinds]")) part.hidden = !part.dataset.kinds.split(" ").includes(kind);
  }
  setup.addEventListener("input", (event) => { if (!event.target.matches("#find, .role")) { showRoles(); planSoon(); } });
  setup.addEventListener("change", () => { showFields(); showRoles(); planSoon(); });
  setup.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = document.getElementById("start"), problem = document.getElementById("start-problem");
    button.disabled = true;
    problem.textContent = "";
    try {
      await send("/plan", asked());
      const found = await send("/runs", asked());
      location.href = `/runs/${encodeURIComponent(found.run)}`;
    } catch (error) {
      problem.textContent = error.message;
      button.disabled = false;
    }
  });
  showFields();
  showRoles();
  showPager();
  showPlan();
}
