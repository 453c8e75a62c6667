// The page of a run: its progress, stop and go on, and predictions for new samples.
"use strict";

const run = document.getElementById("run");
const base = `/runs/${encodeURIComponent(run.dataset.run)}`;

// -- Progress --
if (["starting", "running"].includes(run.dataset.state)) watch();

function watch() {
  const step = document.getElementById("step"), bar = document.getElementById("bar"), count = document.getElementById("count");
  const lines = document.getElementById("lines"), state = document.getElementById("state");
  const began = { time: null, done: 0 };
  let announced = 0;
  const source = new EventSource(`${base}/events`);
  source.addEventListener("progress", (event) => {
    const found = JSON.parse(event.data), now = Date.now();
    state.textContent = found.state;
    state.className = `state ${found.state}`;
    if (found.total) { bar.max = found.total; bar.value = Math.min(found.done, found.total); }
    const text = found.text || (found.state === "starting" ? "Reading the table" : "Working");
    // A screen reader would not keep up with a new sentence twice a second.
    if (now - announced > 3000 || !found.total) { if (step.textContent !== text) { step.textContent = text; announced = now; } }
    if (began.time === null && found.total) { began.time = now; began.done = found.done; }
    count.textContent = counted(found, began, now);
    lines.replaceChildren(...found.lines.map((line) => element("li", line)));
  });
  source.addEventListener("end", () => { source.close(); location.reload(); });
}

function counted(found, began, now) {
  if (!found.total) return found.done ? `${found.done} folds are finished.` : "";
  const steps = found.done - began.done, seconds = (now - began.time) / 1000;
  const rest = steps > 0 ? Math.round(seconds / steps * (found.total - found.done)) : null;
  const time = rest === null ? "" : `, about ${rest < 90 ? `${rest} seconds` : `${Math.round(rest / 60)} minutes`} left`;
  return `${found.done} of ${found.total} steps${time}`;
}

for (const [id, path, text] of [["stop", "stop", "Stopping …"], ["continue", "continue", "Starting …"]]) {
  const button = document.getElementById(id);
  if (!button) continue;
  button.addEventListener("click", async () => {
    button.disabled = true;
    const message = document.getElementById("stop-problem");
    message.textContent = text;
    try {
      await send(`${base}/${path}`, {});
      if (id === "continue") location.reload();
    } catch (error) {
      message.textContent = error.message;
      button.disabled = false;
    }
  });
}

// -- New samples --
const form = document.getElementById("apply");
if (form) form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const box = document.getElementById("predictions"), file = document.getElementById("new-file").files[0];
  box.replaceChildren(element("p", "Predicting …"));
  try {
    const table = file ? await sendFile(file, () => {}) : document.getElementById("new-table").value;
    if (!table) throw new Error("Choose a table or a file.");
    const found = await send(`${base}/apply`, { table, options: valuesOf(form) });
    const head = element("thead", "", [element("tr", "", found.columns.map((name) => element("th", name)))]);
    const rows = found.rows.map((row) => element("tr", "", row.map((value) => element("td", value))));
    const link = element("a", `Download ${found.file}`);
    link.href = `${base}/files/${encodeURIComponent(found.file)}`;
    link.download = "";
    const more = found.count > found.rows.length ? ` The first ${found.rows.length} are shown.` : "";
    box.replaceChildren(
      element("p", `${found.count} ${found.count === 1 ? "prediction" : "predictions"}.${more} `, [link]),
      element("table", "", [head, element("tbody", "", rows)]),
    );
  } catch (error) {
    const problem = element("p", error.message);
    problem.className = "problem";
    problem.setAttribute("role", "alert");
    box.replaceChildren(problem);
  }
});
