"use strict";

// the secret stands after the # of the link, which a browser never sends; here it goes into the form
const login = document.getElementById("login");
if (login && location.hash.length > 1) {
  login.elements.secret.value = decodeURIComponent(location.hash.slice(1));
  history.replaceState(null, "", "/login");
  login.submit();
}

// a study file that is chosen or dropped goes into the text field, for the owner to see
const text = document.getElementById("study-text");
const choose = document.getElementById("study-file");
function take(file) {
  if (file) {
    file.text().then((content) => { text.value = content; text.focus(); });
  }
}
if (text && choose) {
  choose.addEventListener("change", () => take(choose.files[0]));
  for (const name of ["dragover", "drop"]) {
    text.addEventListener(name, (event) => {
      event.preventDefault();
      if (name === "drop") { take(event.dataTransfer.files[0]); }
    });
  }
}

// an archive with a release
const archive = document.getElementById("archive");
if (archive) {
  archive.addEventListener("submit", (event) => {
    event.preventDefault();
    const told = document.getElementById("archive-told");
    const file = archive.elements.file.files[0];
    if (!file) { told.textContent = "Choose a file first."; return; }
    fetch("/api/v1/releases", {
      method: "POST",
      headers: { "content-type": "application/zip", "x-syndic-token": archive.dataset.token },
      body: file,
    }).then((answer) => answer.json()).then((found) => {
      if (found.error) { told.textContent = found.error; } else { location.assign("/releases/" + found.name); }
    }).catch(() => { told.textContent = "The console is not running."; });
  });
}

// how far a run is
const run = document.getElementById("run");
function show(found) {
  const state = document.getElementById("run-state");
  state.textContent = found.state;
  state.className = "state state-" + found.state;
  document.getElementById("run-words").textContent = found.words;
  document.getElementById("run-waiting").textContent = found.waiting.join(", ") || "nobody";
  document.getElementById("run-said").textContent = found.said;
  document.getElementById("run-updated").textContent = found.updated || "never";
  const rows = document.getElementById("run-steps");
  rows.replaceChildren(...found.steps.map((step) => {
    const row = document.createElement("tr");
    const name = document.createElement("th");
    name.scope = "row";
    name.textContent = step.step;
    row.append(name, ...[step.reveals, step.means, String(step.answered), String(step.refused), step.last].map((value) => {
      const cell = document.createElement("td");
      cell.textContent = value;
      return cell;
    }));
    return row;
  }));
}
if (run) {
  const poll = () => fetch("/api/v1/studies/" + run.dataset.run + "/progress")
    .then((answer) => answer.ok ? answer.json().then(show) : undefined)
    .catch(() => undefined)
    .finally(() => setTimeout(poll, 2000));
  setTimeout(poll, 2000);
}
