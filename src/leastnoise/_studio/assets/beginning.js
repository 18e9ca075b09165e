// The page to begin with: shows the fields that fit, gathers what is filled in, and shows the plan of it.
"use strict";
const columns = [...document.querySelectorAll("[data-column]")];
const kind = (column) => column.querySelector("select").value;
const filled = () => Object.fromEntries([...new FormData(at("form"))].map(([name, value]) => [name, String(value)]));
const numeric = ["number", "whole"];
// The fields that a column needs, by its form.
const REQUIRED = { list: ["list"], file: ["file", "file_column"], whole: ["low", "high"], number: ["low", "high", "step"], dates: ["from", "to"], unknown: ["most"], truth: [] };
const PLAIN = ["counts", "top", "people"]; // questions without a column of numbers
const SIZED = ["means", "median", "quartiles", "cdf"]; // questions with a size
let questions = 0;
let refused = false; // whether the last form was refused, so that empty fields are marked

function make(tag, properties, ...inside) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...inside);
  return made;
}

// Groups of numbers: edges are typed, or dragged and moved by arrow keys, one slider each; both are the same list.
function edges(column) {
  const number = column.dataset.column;
  const [low, high, step] = ["low", "high", "step"].map((name) => Number(at(`c${number}.${name}`).value));
  const field = at(`c${number}.edges`);
  const [area, said] = [field.nextElementSibling, field.parentElement.querySelector("p")];
  const typed = () => field.value.split(/[\s,;]+/).filter((text) => text !== "").map(Number);
  const given = typed();
  const able = high > low && kind(column) && given.every((edge) => !Number.isNaN(edge));
  if (!able) { area.replaceChildren(); write(said, ""); return; }
  const width = step > 0 && kind(column) === "number" ? step : 1;
  if (area.children.length !== given.length + 1) {
    const more = make("button", { type: "button", textContent: document.body.dataset.edge });
    more.addEventListener("click", () => {
      const now = typed(); // as the edges have been moved since
      const middle = now.length ? low + width * Math.round((Math.max(...now) + high - 2 * low) / 2 / width) : low;
      field.value = [...now, middle].join(", ");
      edges(column);
    });
    area.replaceChildren(...given.map(() => {
      const slider = make("input", { type: "range" });
      slider.addEventListener("input", () => {
        const all = [...area.querySelectorAll("input")].map((one) => Number(one.value));
        // two edges never meet: a knob that is moved onto another one stays where it was
        if (new Set(all).size === all.length) field.value = all.sort((a, b) => a - b).join(", ");
        edges(column);
      });
      return slider;
    }), more);
  }
  [...area.querySelectorAll("input")].forEach((slider, place) => {
    Object.assign(slider, { min: low, max: high, step: width });
    if (document.activeElement !== slider || Number(slider.value) !== given[place]) slider.value = given[place];
    slider.setAttribute("aria-label", `${document.body.dataset.edge} ${place + 1}: ${column.dataset.name}`);
  });
  const groups = given.map((edge, place) => {
    const next = given[place + 1];
    if (next === undefined) return `${edge}+`;
    return kind(column) === "whole" ? (next - 1 === edge ? `${edge}` : `${edge}-${next - 1}`) : `[${edge}, ${next})`;
  });
  write(said, groups.length ? `${document.body.dataset.groups} ${groups.join(" | ")}` : "");
}

// The ways in which tables may be split: by the values of a column, or by its groups.
function ways() {
  return columns.filter(kind).flatMap((column) => {
    const [number, name] = [column.dataset.column, column.dataset.name];
    const value = (field) => at(`c${number}.${field}`).value.trim();
    const made = [[`${number}.cells`, name]];
    if (numeric.includes(kind(column)) && value("edges")) made.push([`${number}.group`, `${name}: ${value("edges")}`]);
    for (const level of column.querySelectorAll(".level")) {
      const [title, way] = ["name", "way"].map((part) => at(`c${number}.${level.dataset.level}.${part}`));
      if (title.value.trim() && !way.selectedOptions[0].hidden) made.push([`${number}.${level.dataset.level}`, `${name}: ${title.value.trim()}`]);
    }
    return made;
  });
}

// The levels of a column: the fields of the way in which each is stated.
function levels(column) {
  for (const level of column.querySelectorAll(".level")) {
    const way = level.querySelector("[data-field=way]");
    for (const option of way.options) option.hidden = option.disabled = !option.dataset.kinds.split(" ").includes(kind(column));
    const first = [...way.options].find((option) => !option.hidden);
    if (way.selectedOptions[0].hidden && first) way.value = first.value;
    for (const part of level.querySelectorAll("[data-way]")) part.hidden = part.dataset.way !== way.value;
  }
}

// Describe a column in its line: its form, and its contents or the missing fields.
function describe(column) {
  const field = (name) => at(`c${column.dataset.column}.${name}`);
  const value = (name) => field(name).value.trim();
  const [form, state] = [column.querySelector(".kind"), column.querySelector(".state")];
  write(form, field("kind").selectedOptions[0].dataset.short);
  const empty = (REQUIRED[kind(column)] || []).filter((name) => !value(name));
  for (const name of new Set(Object.values(REQUIRED).flat())) {
    if (refused && empty.includes(name)) field(name).setAttribute("aria-invalid", "true");
    else field(name).removeAttribute("aria-invalid");
  }
  state.dataset.state = !kind(column) ? "" : empty.length ? "open" : "done";
  const contents = {
    list: () => `${document.body.dataset.codes} ${value("list").split("\n").length}`,
    file: () => value("file"),
    whole: () => `${value("low")} \u2013 ${value("high")}`,
    number: () => `${value("low")} \u2013 ${value("high")} / ${value("step")}`,
    dates: () => `${value("from")} \u2013 ${value("to")}`,
    unknown: () => `\u2264 ${value("most")}`,
  };
  const names = [...column.querySelectorAll(".level [data-field=name]")].map((name) => name.value.trim()).filter(Boolean);
  const unit = numeric.includes(kind(column)) ? value("unit") : "";
  const groups = numeric.includes(kind(column)) && value("edges") ? [`[${value("edges")}]`] : [];
  const parts = [(contents[kind(column)] || (() => ""))() + (unit && ` ${unit}`), ...groups, ...names];
  const missing = empty.map((name) => column.querySelector(`label[for="c${column.dataset.column}.${name}"]`).textContent);
  write(state, empty.length ? `${document.body.dataset.missing} ${missing.join(", ")}` : parts.filter(Boolean).join("; "));
}

// Update the list of sections: a fact about each, and whether a field is missing.
function sections() {
  const chosen = columns.filter(kind);
  const facts = {
    columns: [`${chosen.length} / ${columns.length}`, chosen.length && chosen.every((column) => column.querySelector(".state").dataset.state === "done")],
    unit: ["", at("unit").value !== "choose" && (!at("unit").value || at("max_rows").value.trim())],
    asked: [String(at("questions").children.length), at("questions").children.length > 0],
    how: at("how1").checked ? [`${at("budget").value === "rho" ? "\u03c1" : "\u03b5"} = ${at(at("budget").value).value}`, at(at("budget").value).value.trim()] : [`\u00b1 ${at("margin").value}`, at("margin").value.trim()],
    publication: [document.body.dataset.optional, at("title").value.trim() || null],
    save: ["", at("after").hidden ? null : true],
  };
  for (const [name, [text, done]] of Object.entries(facts)) {
    const item = document.querySelector(`[data-section=${name}]`);
    item.dataset.state = done ? "done" : done === null ? "" : "open";
    write(item.querySelector("span"), text);
  }
}

function refresh() {
  for (const column of columns) {
    for (const part of column.querySelectorAll("[data-for]")) part.hidden = !part.dataset.for.split(" ").includes(kind(column));
    if (numeric.includes(kind(column))) edges(column);
    levels(column);
    describe(column);
  }
  const days = columns.filter((column) => kind(column) === "dates");
  const along = at("series").value;
  const none = at("series").options[0];
  at("series").replaceChildren(none, ...days.map((column) => make("option", { value: column.dataset.column, textContent: column.dataset.name })));
  at("series").value = days.some((column) => column.dataset.column === along) ? along : "";
  document.querySelector("[data-series]").hidden = !days.length;
  for (const part of document.querySelectorAll("[data-along]")) part.hidden = !at("series").value;
  document.querySelector("[data-rows]").hidden ||= !at("unit").value;
  document.querySelector("[data-unit]").hidden = !at("unit").value;
  document.querySelector("[data-delta]").hidden = !columns.some((column) => kind(column) === "unknown");
  for (const part of document.querySelectorAll("[data-budget]")) part.hidden = !at("how1").checked || part.dataset.budget !== at("budget").value;
  at("margin").parentElement.hidden = at("how1").checked;
  const [split, numbers] = [ways(), columns.filter((column) => numeric.includes(kind(column)))];
  for (const question of at("questions").children) {
    const [what, of, weight] = question.querySelectorAll("select");
    question.querySelector("[data-of]").hidden = PLAIN.includes(what.value);
    question.querySelector("[data-size]").hidden = !SIZED.includes(what.value);
    for (const part of question.querySelectorAll("[data-total]")) part.hidden = what.value !== "totals";
    question.querySelector("[data-weight]").hidden = !numbers.length || !document.body.dataset.weighted.split(" ").includes(what.value);
    for (const list of [of, weight]) {
      const [chosen, once] = [list.value, list === weight ? [make("option", { value: "", textContent: document.body.dataset.once })] : []];
      list.replaceChildren(...once, ...numbers.map((column) => make("option", { value: column.dataset.column, textContent: column.dataset.name })));
      if (numbers.some((column) => column.dataset.column === chosen)) list.value = chosen;
    }
    splits(question, `a${question.dataset.number}.by.`, split);
  }
  for (const total of at("totals").children) splits(total, `p${total.dataset.number}.by.`, split);
  for (const part of document.querySelectorAll("[data-sdmx]")) part.hidden = !at("formats.sdmx").checked;
  sections();
}

// The ticks of a table: the ways in which it may be split, with those ticked before.
function splits(table, prefix, split) {
  const ticks = table.querySelector(".ticks");
  const before = new Set([...ticks.querySelectorAll("input:checked")].map((tick) => tick.name));
  const wanted = split.map(([way, name]) => [`${prefix}${way}`, name]);
  if ([...ticks.querySelectorAll("input")].map((tick) => tick.name).join() === wanted.map(([name]) => name).join()) return;
  for (const old of ticks.querySelectorAll("label")) old.remove();
  ticks.append(...wanted.map(([name, words]) => make("label", {}, make("input", { type: "checkbox", name, checked: before.has(name) }), ` ${words}`)));
}

function addLevel(column, name) {
  const made = at("level").content.cloneNode(true).firstElementChild;
  const prefix = `c${column.dataset.column}.${name}`;
  made.dataset.level = name;
  made.setAttribute("aria-label", `${column.dataset.name}: ${name.slice(1)}`);
  for (const field of made.querySelectorAll("[data-field]")) {
    field.id = field.name = `${prefix}.${field.dataset.field}`;
    field.previousElementSibling.htmlFor = field.id;
  }
  made.querySelector("button").addEventListener("click", () => {
    made.remove();
    column.querySelector(".add-level").focus();
    refresh();
    record();
  });
  column.querySelector(".levels").append(made);
  return made;
}
for (const column of columns) {
  column.querySelector(".add-level").addEventListener("click", () => {
    const used = new Set([...column.querySelectorAll(".level")].map((level) => level.dataset.level));
    const free = [...Array(Number(document.body.dataset.levels)).keys()].map((number) => `l${number}`).find((name) => !used.has(name));
    if (!free) return;
    const made = addLevel(column, free);
    refresh();
    made.querySelector("input").focus();
  });
  // One column is open at a time, also in browsers that do not close the others.
  column.addEventListener("toggle", () => {
    if (column.open) for (const other of columns) if (other !== column) other.open = false;
  });
}

function question(number = questions) {
  const made = at("question").content.cloneNode(true).firstElementChild;
  questions = number + 1;
  made.dataset.number = number;
  made.querySelector("legend").textContent = `${document.body.dataset.table} ${number + 1}`;
  for (const field of made.querySelectorAll("[data-field]")) {
    field.id = field.name = `a${number}.${field.dataset.field}`;
    field.previousElementSibling.htmlFor = field.id;
  }
  made.querySelector("button").addEventListener("click", () => { made.remove(); at("more").focus(); refresh(); record(); });
  at("questions").append(made);
  refresh();
  return made;
}

// Public totals: numbers of all rows, or of each group.
let totals = 0;
function total(number = totals) {
  const made = at("total").content.cloneNode(true).firstElementChild;
  totals = number + 1;
  made.dataset.number = number;
  made.querySelector("legend").textContent = `${document.body.dataset.total} ${number + 1}`;
  for (const field of made.querySelectorAll("[data-field]")) {
    field.id = field.name = `p${number}.${field.dataset.field}`;
    field.previousElementSibling.htmlFor = field.id;
  }
  made.querySelector("button").addEventListener("click", () => { made.remove(); at("more-totals").focus(); refresh(); record(); });
  at("totals").append(made);
  refresh();
  return made;
}

// What was filled in is kept while the language changes, by this tab alone.
addEventListener("leaving", () => sessionStorage.setItem("filled", JSON.stringify(filled())));
function restore() {
  const kept = sessionStorage.getItem("filled");
  sessionStorage.removeItem("filled");
  if (kept) fillIn(JSON.parse(kept));
  else question();
}

// Fill the form in with these fields alone.
function fillIn(fields) {
  at("questions").replaceChildren();
  at("totals").replaceChildren();
  questions = totals = 0;
  for (const column of columns) column.querySelector(".levels").replaceChildren();
  for (const name of Object.keys(fields)) {
    const level = name.match(/^c(\d+)\.(l\d+)\.name$/);
    if (level) addLevel(columns.find((column) => column.dataset.column === level[1]), level[2]);
    if (/^a\d+\.what$/.test(name)) question(Number(name.slice(1, -5)));
    if (/^p\d+\.counts$/.test(name)) total(Number(name.slice(1, -7)));
  }
  for (let pass = 0; pass < 2; pass += 1) { // the second pass fills in the fields that the first one adds
    for (const field of at("form").elements) {
      if (!field.name) continue;
      if (field.type === "checkbox") field.checked = field.name in fields;
      else if (field.type === "radio") field.checked = fields[field.name] === field.value;
      else if (field.name in fields) field.value = fields[field.name];
    }
    refresh();
  }
}

// The forms before each change, and the forms before each undo, as texts.
const [past, future] = [[], []];
let current = "";
function buttons() { at("undo").disabled = !past.length; at("redo").disabled = !future.length; }
function record() {
  const now = JSON.stringify(filled());
  if (now === current) return;
  past.push(current);
  future.length = 0;
  current = now;
  buttons();
}
function move(from, to, words) {
  if (!from.length) return;
  to.push(current);
  current = from.pop();
  fillIn(JSON.parse(current));
  buttons();
  say("");
  write(at("status"), words);
}
undoing(
  () => { record(); move(past, future, document.body.dataset.undone); },
  () => move(future, past, document.body.dataset.redone),
);

function cell(tag, text, className) { return make(tag, { textContent: text, className: className || "" }); }

async function show(view) {
  at("planned").hidden = false;
  write(at("status"), view.status);
  write(at("lead"), view.lead);
  write(at("text"), view.text);
  at("warnings").replaceChildren(...view.warnings.map((text) => cell("li", text)));
  at("facts").replaceChildren(...view.facts.flatMap(([name, value]) => [cell("dt", name), cell("dd", value)]));
  at("rows").replaceChildren(...view.rows.map((row, place) => make("tr", {}, Object.assign(cell("th", view.names[place]), { scope: "row" }),
    cell("td", row.typical, "n strong"), cell("td", row.largest, "n"), cell("td", row.verdict))));
  at("invented").hidden = !view.charts.length;
  at("charts").replaceChildren();
  for (const { chart, alt } of view.charts) {
    const figure = make("figure", {});
    figure.setAttribute("role", "img");
    at("charts").append(make("div", { className: "drawn" }, figure, cell("p", alt, "small")));
    await draw(figure, chart, alt);
  }
}

// After a refusal, mark the fields that are empty, and open the first column with one.
function mark() {
  refused = true;
  refresh();
  const first = columns.find((column) => column.querySelector("[aria-invalid]"));
  if (first) first.open = true;
}

let planning = 0;
at("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  planning += 1;
  const number = planning;
  say("");
  for (let view = await ask("/plan", { form: filled() }, mark); view && number === planning; view = await ask("/view")) {
    refused = false;
    if (view.error) { say(view.error); return; }
    if (view.ended) { await show(view); at("result").focus(); at("result").scrollIntoView(); return; }
    write(at("status"), view.status);
    await new Promise((done) => { setTimeout(done, 300); });
  }
});
at("form").addEventListener("input", refresh);
at("form").addEventListener("change", ({ target }) => {
  if (target.type === "checkbox" && target.checked && target.name.includes(".by.")) { // values of a column, or groups of them
    const rest = target.name.split(".").slice(0, 3).join(".");
    for (const other of target.closest(".ticks").querySelectorAll("input")) {
      if (other !== target && other.name.startsWith(`${rest}.`)) other.checked = false;
    }
  }
  refresh();
  record();
});
at("more").addEventListener("click", () => { question().querySelector("select").focus(); record(); });
at("more-totals").addEventListener("click", () => { total().querySelector("input").focus(); record(); });
at("save").addEventListener("click", async () => {
  say("");
  const saved = await ask("/save", { form: filled(), name: at("name").value });
  if (!saved) return;
  write(at("saved"), saved.done);
  write(at("commands"), saved.commands.join("\n"));
  at("after").hidden = false;
  at("further").dataset.name = saved.name;
  at("further").hidden = !saved.asked;
  sections();
});
at("further").addEventListener("click", async () => { if (await ask("/further", { name: at("further").dataset.name })) again(); });
restore();
current = JSON.stringify(filled());
