// Shared by the pages: requests, files, and elements with text. Text never becomes HTML.
"use strict";

async function send(address, value) {
  const answer = await fetch(address, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(value),
  });
  const found = await answer.json().catch(() => ({ error: "The page no longer reaches the program. Start it again." }));
  if (!answer.ok) throw new Error(found.error || "This did not work.");
  return found;
}

// Sends a file as it is, so that the program can store it piece by piece.
function sendFile(file, onProgress) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("PUT", `/tables?name=${encodeURIComponent(file.name)}`);
    request.responseType = "json";
    request.upload.onprogress = (e) => e.lengthComputable && onProgress(100 * e.loaded / e.total);
    request.onload = () => (request.status === 201 ? resolve(request.response.table) : reject(new Error((request.response || {}).error || "The file was not accepted.")));
    request.onerror = () => reject(new Error("The file was not accepted: it may be too large, or the program has ended."));
    request.send(file);
  });
}

function element(name, text, children = []) {
  const made = document.createElement(name);
  if (text) made.textContent = text;
  made.append(...children);
  return made;
}

// The values of the fields of a form by name; fields that another kind of run has are left out.
function valuesOf(form, kind) {
  const values = {};
  for (const field of form.querySelectorAll("[name]")) {
    const box = field.closest("[data-kinds]");
    if (!box || (kind && !box.dataset.kinds.split(" ").includes(kind))) continue;
    if (field.type === "checkbox") { if (field.checked) values[field.name] = true; }
    else if (field.value !== "") values[field.name] = field.value;
  }
  for (const list of form.querySelectorAll("[data-list]")) {
    if (kind && !list.closest("[data-kinds]").dataset.kinds.split(" ").includes(kind)) continue;
    const chosen = [...list.querySelectorAll("input:checked")].map((box) => box.value);
    if (chosen.length) values[list.dataset.list] = chosen.join(",");
  }
  return values;
}
