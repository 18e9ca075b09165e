// The page that plans: sends what is changed, one request at a time, and shows what comes back.
"use strict";
const rows = [...at("rows").rows].map((row) => ({
  row, cells: [...row.cells].map((cell) => cell.querySelector("span") || cell),
  on: row.cells[0].firstElementChild, settings: [...row.querySelectorAll(".number, select")], price: row.querySelector("button"),
}));
// a row's settings in the order of the page: weight, target, most, size_of
const FIELDS = ["weight", "target", "most", "size_of"];
const publication = [...document.querySelectorAll("[data-path]")];
let seen = null; // what the page shows
let refusal = ""; // why what was asked last was not done
let wishes = []; // what is still to be asked for, in order
let working = false;

// A field that somebody types in is left alone, but for what was refused.
function fill(field, value, all) {
  if (!all && field === document.activeElement && field.value !== field.dataset.shown) return;
  if (field.value !== value) field.value = value;
  field.dataset.shown = value;
}

function list(element, facts) {
  element.replaceChildren(...(facts || []).flatMap(([name, value]) => {
    const [term, said] = [document.createElement("dt"), document.createElement("dd")];
    term.textContent = name;
    said.textContent = value;
    return [term, said];
  }));
}

function show(view, all = false) {
  if (!seen || view.version !== seen.version) write(at("saved"), "");
  seen = view;
  write(at("lead"), view.lead);
  write(at("status"), view.status);
  say(refusal || view.error);
  const least = view.size === "least";
  at("least").checked = least;
  at("size").disabled = at("slider").disabled = least;
  fill(at("size"), least ? "" : view.size, all);
  if (at("delta")) fill(at("delta"), view.delta, all);
  const [over, under] = view.size.split("/").map(Number);
  const number = over / (under || 1);
  if (number > 0) at("slider").value = Math.round(100 * Math.log10(number));
  at("slider").setAttribute("aria-valuetext", `${at("slider").dataset.of} = ${view.size}`);
  if (at("horizon")) {
    at("horizon").value = view.periods;
    at("horizon").setAttribute("aria-valuetext", view.horizon);
  }
  fill(at("objective"), view.objective, all);
  fill(at("level"), String(view.level), all);
  for (const input of publication) fill(input, view.fields[input.dataset.path], all);
  list(at("facts"), view.facts);
  list(at("kept"), view.kept);
  at("none").hidden = Boolean(view.kept);
  at("swap").hidden = !view.kept;
  at("undo").disabled = !view.undo;
  at("redo").disabled = !view.redo;
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

// One wish after the other, each with the version of the settings that the page shows: what was changed elsewhere meanwhile is refused.
// A slider sends many wishes, and only its last one counts; after one that is refused the others are not done.
async function want(path, body) {
  if (!seen) return;
  const last = wishes.at(-1);
  if (path === "/change" && last && last.path === path && String(last.body.rows) === String(body.rows) && last.body.drag === body.drag) Object.assign(last.body.changes, body.changes);
  else wishes.push({ path, body });
  if (working) return;
  working = true;
  while (wishes.length) {
    const wish = wishes.shift();
    const view = await ask(wish.path, { ...wish.body, version: seen.version }, refused);
    if (!view) break;
    refusal = "";
    at("other").hidden = true;
    if (wishes.length) seen = view;
    else show(view, wish.path !== "/change");
    if (view.done) write(at("saved"), view.done);
  }
  wishes = [];
  working = false;
  wake();
}

async function refused(text) {
  refusal = text;
  const view = await ask("/view");
  if (view) show(view, true);
}

let drag = 0; // all changes of one movement of a slider are undone together
const change = (changes, places, number = 0) => want("/change", { changes, rows: places || [], drag: number });
function slides(slider, changes) {
  let moving = false;
  slider.addEventListener("input", () => {
    if (!moving) drag += 1;
    moving = true;
    change(changes(), [], drag);
  });
  slider.addEventListener("change", () => { moving = false; });
}

// The page follows what is planned, and what other pages change.
let wake = () => {};
async function follow() {
  for (;;) {
    await new Promise((done) => { wake = done; setTimeout(done, seen.busy ? 500 : 2000); });
    const before = seen;
    const view = working ? null : await ask("/view");
    if (working || seen !== before) continue; // what was done meanwhile shows more
    if (!view) return;
    if (view.version !== before.version) at("other").hidden = false;
    show(view);
  }
}

async function preview() {
  const { version } = seen;
  const text = await (await fetch("/spec")).text();
  if (seen.version === version) write(at("preview").querySelector("pre"), text);
}

// Three digits are enough for a slider; exact decimals are typed.
function sized(place) {
  const number = 10 ** (place / 100);
  return number.toFixed(Math.max(0, 2 - Math.floor(Math.log10(number)))).replace(/\.?0+$/, (zeros) => (zeros.includes(".") ? "" : zeros));
}

slides(at("slider"), () => {
  const size = sized(Number(at("slider").value));
  at("size").value = size;
  return { size };
});
if (at("horizon")) slides(at("horizon"), () => ({ periods: Number(at("horizon").value) }));
undoing(() => want("/undo", {}), () => want("/redo", {}));
at("size").addEventListener("change", () => change({ size: at("size").value }));
if (at("delta")) at("delta").addEventListener("change", () => change({ delta: at("delta").value }));
at("least").addEventListener("change", () => change({ size: at("least").checked ? "least" : sized(Number(at("slider").value)) }));
at("objective").addEventListener("change", () => change({ objective: at("objective").value }));
at("level").addEventListener("change", () => change({ level: Number(at("level").value) }));
for (const input of publication) {
  input.addEventListener("change", () => change({ [`field:${input.dataset.path}`]: input.value }));
}
rows.forEach(({ on, settings, price }, place) => {
  on.addEventListener("change", () => change({ on: on.checked }, [place]));
  settings.forEach((field, number) => field.addEventListener("change", () => change({ [FIELDS[number]]: field.value }, [place])));
  price.addEventListener("click", () => want("/price", { rows: [place] }));
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
at("all-prices").addEventListener("click", () => want("/price", { rows: shown() }));
at("keep").addEventListener("click", () => want("/keep", {}));
at("swap").addEventListener("click", () => want("/swap", {}));
at("save").addEventListener("click", () => want("/save", { name: at("name").value }));
at("preview").addEventListener("toggle", () => { if (at("preview").open) preview(); });
document.addEventListener("change", ({ target }) => { target.dataset.shown = target.value; }, true);
document.addEventListener("visibilitychange", () => wake());
ask("/view").then((view) => { if (view) { show(view, true); follow(); } });
