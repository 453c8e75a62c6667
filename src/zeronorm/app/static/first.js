// The first page: a file that is dropped or chosen is sent, and its table opened.
"use strict";

const drop = document.getElementById("drop");
const input = document.getElementById("file");
const sending = document.getElementById("sending");
const bar = document.getElementById("sent");

async function open(file) {
  if (!file) return;
  sending.className = "";
  sending.textContent = `Sending ${file.name} …`;
  bar.hidden = false;
  try {
    const table = await sendFile(file, (share) => { bar.value = share; });
    sending.textContent = "Reading the table …";
    location.href = `/tables/${encodeURIComponent(table)}`;
  } catch (error) {
    bar.hidden = true;
    sending.className = "problem";
    sending.textContent = error.message;
  }
}

input.addEventListener("change", () => open(input.files[0]));
for (const kind of ["dragenter", "dragover"]) {
  drop.addEventListener(kind, (event) => { event.preventDefault(); drop.classList.add("over"); });
}
for (const kind of ["dragleave", "drop"]) drop.addEventListener(kind, () => drop.classList.remove("over"));
drop.addEventListener("drop", (event) => { event.preventDefault(); open(event.dataTransfer.files[0]); });
// Coming back with the browser's button: the old message no longer holds.
addEventListener("pageshow", () => { sending.textContent = ""; bar.hidden = true; input.value = ""; });
