// The page that plans: sends what is changed, one request at a time, and shows what comes back.
"use strict";
const rows = [...at("rows").rows].map((row) => ({
  row, cells: [...row.cells].map((cell) => cell.querySelector("span") || cell),
  on: row.cells[0].firstElementChild, settings: [...row.querySelectorAll(".number, select")], price: row.querySelector("button"),
}));
// a row's settings in the order of the page: weight, target, most, size_of
const FIELDS = ["weight", "target", "most", "size_of"];
let seen = null;
let running = false;
let waiting = null;

const refused = () => { if (seen) show(seen, true); };

// A field that somebody types in is left alone, but for what was refused.
function fill(field, value, all) { if ((all || field !== document.activeElement) && field.value !== value) field.value = value; }

function list(element, facts) {
  element.replaceChildren(...(facts || []).flatMap(([name, value]) => {
    const [term, said] = [document.createElement("dt"), document.createElement("dd")];
    term.textContent = name;
    said.textContent = value;
    return [term, said];
  }));
}

function show(view, all = false) {
  seen = view;
  write(at("lead"), view.lead);
  write(at("status"), view.status);
  if (!all) say(view.error);
  const least = view.size === "least";
  at("least").checked = least;
  at("size").disabled = at("slider").disabled = least;
  fill(at("size"), least ? "" : view.size, all);
  if (at("delta")) fill(at("delta"), view.delta, all);
  const [over, under] = view.size.split("/").map(Number);
  const number = over / (under || 1);
  if (number > 0 && at("slider") !== document.activeElement) at("slider").value = Math.round(100 * Math.log10(number));
  at("slider").setAttribute("aria-valuetext", `${at("slider").dataset.of} = ${view.size}`);
  fill(at("objective"), view.objective, all);
  fill(at("level"), String(view.level), all);
  list(at("facts"), view.facts);
  list(at("kept"), view.kept);
  at("none").hidden = Boolean(view.kept);
  at("swap").hidden = !view.kept;
  at("keep").disabled = at("all-prices").disabled = !view.ready;
  document.body.classList.toggle("compared", Boolean(view.kept));
  document.body.classList.toggle("waiting", !view.ready);
  if ([...at("warnings").children].map((item) => item.textContent).join("\n") !== view.warnings.join("\n")) {
    at("warnings").replaceChildren(...view.warnings.map((text) => Object.assign(document.createElement("li"), { textContent: text })));
  }
  view.rows.forEach((one, place) => {
    const { row, cells, on, settings, price } = rows[place];
    const [asked, ...values] = one.set;
    on.checked = asked;
    settings.forEach((field, number_) => fill(field, values[number_], all));
    row.classList.toggle("off", !asked);
    row.classList.toggle("missed", one.missed);
    const texts = [[3, one.typical], [4, one.largest], [5, one.before], [6, one.change], [11, one.share], [12, one.verdict], [13, one.price]];
    for (const [cell, text] of texts) write(cells[cell], text);
    price.hidden = Boolean(one.price) || !asked;
    price.disabled = !view.ready;
  });
  if (at("preview").open) preview();
}

// The latest wish waits while another is answered; a slider sends many, and only its last one counts.
async function change(changes, places) {
  const wish = { changes, rows: places || [] };
  if (running) {
    if (waiting && String(waiting.rows) === String(wish.rows)) Object.assign(waiting.changes, changes);
    else if (waiting) { const before = waiting; waiting = wish; await send(before); return; } else waiting = wish;
    return;
  }
  await send(wish);
}

async function send(wish) {
  running = true;
  const view = await ask("/change", wish, refused);
  running = false;
  if (view) { say(""); show(view); follow(); }
  if (waiting) { const next = waiting; waiting = null; await send(next); }
}

let following = false;
async function follow() {
  if (following) return;
  following = true;
  while (seen && seen.busy) {
    await new Promise((done) => { setTimeout(done, 500); });
    if (running) continue;
    const view = await ask("/view");
    if (!view) break;
    if (!running) show(view);
  }
  following = false;
}

async function act(path, body) {
  const view = await ask(path, body, refused);
  if (view) { say(""); show(view, true); follow(); }
}

async function preview() { write(at("preview").querySelector("pre"), await (await fetch("/spec")).text()); }

// Three digits are enough for a slider; exact decimals are typed.
function sized(place) {
  const number = 10 ** (place / 100);
  return number.toFixed(Math.max(0, 2 - Math.floor(Math.log10(number)))).replace(/\.?0+$/, (zeros) => (zeros.includes(".") ? "" : zeros));
}

at("slider").addEventListener("input", () => {
  const size = sized(Number(at("slider").value));
  at("size").value = size;
  change({ size });
});
at("size").addEventListener("change", () => change({ size: at("size").value }));
if (at("delta")) at("delta").addEventListener("change", () => change({ delta: at("delta").value }));
at("least").addEventListener("change", () => change({ size: at("least").checked ? "least" : sized(Number(at("slider").value)) }));
at("objective").addEventListener("change", () => change({ objective: at("objective").value }));
at("level").addEventListener("change", () => change({ level: Number(at("level").value) }));
rows.forEach(({ on, settings, price }, place) => {
  on.addEventListener("change", () => change({ on: on.checked }, [place]));
  for (const field of settings) {
    field.addEventListener("change", () => change(Object.fromEntries(settings.map((one, number) => [FIELDS[number], one.value])), [place]));
  }
  price.addEventListener("click", () => act("/price", { rows: [place] }));
});
const shown = () => rows.map((one, place) => [one, place]).filter(([one]) => !one.row.hidden).map(([, place]) => place);
at("find").addEventListener("input", () => {
  const words = at("find").value.toLowerCase().split(/\s+/);
  for (const { row } of rows) row.hidden = !words.every((word) => row.cells[1].textContent.toLowerCase().includes(word));
});
at("ask").addEventListener("click", () => change({ on: true }, shown()));
at("leave").addEventListener("click", () => change({ on: false }, shown()));
at("set").addEventListener("click", () => {
  const values = ["weight", "target", "most", "size"].map((name) => at(`bulk-${name}`).value);
  change(Object.fromEntries(FIELDS.map((name, place) => [name, values[place]])), shown());
});
at("all-prices").addEventListener("click", () => act("/price", { rows: shown() }));
at("keep").addEventListener("click", () => act("/keep", {}));
at("swap").addEventListener("click", () => act("/swap", {}));
at("save").addEventListener("click", async () => {
  const done = await ask("/save", { name: at("name").value });
  if (done) { say(""); write(at("saved"), done.saved); }
});
at("preview").addEventListener("toggle", () => { if (at("preview").open) preview(); });
ask("/view").then((view) => { if (view) { show(view, true); follow(); } });
