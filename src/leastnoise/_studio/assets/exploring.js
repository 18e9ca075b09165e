// The page that explores: a table and its chart of what is picked, and the sum of the cells that are picked in it.
"use strict";
let asked = null;
let places = [];
let latest = 0;

function question() {
  const kinds = [...document.querySelectorAll("select[data-name]")].map((field) => [field.dataset.name, field.value]);
  return { asked: Object.fromEntries(kinds), measure: at("measure").value };
}

function line([cell, ...numbers], place) {
  const row = document.createElement("tr");
  const pick = Object.assign(document.createElement("input"), { type: "checkbox" });
  pick.setAttribute("aria-label", `${document.body.dataset.pick}: ${cell}`);
  pick.addEventListener("change", total);
  row.insertCell().append(pick);
  const name = Object.assign(document.createElement("th"), { scope: "row", textContent: cell });
  row.append(name);
  for (const number of numbers) Object.assign(row.insertCell(), { className: "n", textContent: number });
  places[place] = { row, pick, cell };
  return row;
}

async function table() {
  const wish = question();
  const found = await ask("/table", wish);
  if (!found) return;
  say("");
  asked = wish;
  places = [];
  write(at("name"), found.name);
  at("rows").replaceChildren(...found.rows.map(line));
  at("find").value = "";
  total();
  await draw(at("chart"), found.chart, found.alt);
}

async function total() {
  const cells = places.map((one, place) => [one, place]).filter(([one]) => one.pick.checked).map(([, place]) => place);
  latest += 1;
  const own = latest;
  if (!cells.length) { write(at("sum"), document.body.dataset.none); return; }
  const found = await ask("/sum", { ...asked, cells });
  if (found && own === latest) { say(""); write(at("sum"), found.sum); }
}

at("ask").addEventListener("submit", (event) => { event.preventDefault(); table(); });
at("find").addEventListener("input", () => {
  const words = at("find").value.toLowerCase().split(/\s+/);
  for (const { row, cell } of places) row.hidden = !words.every((word) => cell.toLowerCase().includes(word));
});
at("all").addEventListener("click", () => { for (const { row, pick } of places) pick.checked ||= !row.hidden; total(); });
at("clear").addEventListener("click", () => { for (const { pick } of places) pick.checked = false; total(); });
async function statistics() {
  for (const figure of document.querySelectorAll("[data-statistic]")) {
    const found = await ask("/statistic", { statistic: figure.dataset.statistic });
    if (found) await draw(figure, found.chart, found.alt);
  }
}
table().then(statistics);
