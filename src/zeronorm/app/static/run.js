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
  const message = document.getElementById("predictions"), file = document.getElementById("new-file").files[0];
  message.className = "";
  message.textContent = "Predicting …";
  try {
    const table = file ? await sendFile(file, () => {}) : document.getElementById("new-table").value;
    if (!table) throw new Error("Choose a table or a file.");
    const options = valuesOf(form, "apply"), target = document.getElementById("field-target").value;
    if (target) options.target = target;
    const found = await send(`${base}/apply`, { table, options });
    location.href = `/runs/${encodeURIComponent(found.run)}`;
  } catch (error) {
    message.className = "problem";
    message.textContent = error.message;
  }
});
