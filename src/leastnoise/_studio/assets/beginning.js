// The page to begin with: shows the fields that fit, gathers what is filled in, and shows the plan of it.
"use strict";
const columns = [...document.querySelectorAll("[data-column]")];
const kind = (column) => column.querySelector("select").value;
const filled = () => Object.fromEntries([...new FormData(at("form"))].map(([name, value]) => [name, String(value)]));
const numeric = ["number", "whole"];
let questions = 0;

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
    if (["list", "file", "whole"].includes(kind(column)) && value("level")) made.push([`${number}.level`, `${name}: ${value("level")}`]);
    return made;
  });
}

function refresh() {
  for (const column of columns) {
    for (const part of column.querySelectorAll("[data-for]")) part.hidden = !part.dataset.for.split(" ").includes(kind(column));
    column.classList.toggle("chosen", Boolean(kind(column)));
    if (numeric.includes(kind(column))) edges(column);
  }
  document.querySelector("[data-unit]").hidden = !at("unit").value;
  document.querySelector("[data-delta]").hidden = !columns.some((column) => kind(column) === "unknown");
  at("epsilon").parentElement.hidden = !at("how1").checked;
  at("margin").parentElement.hidden = at("how1").checked;
  const [split, numbers] = [ways(), columns.filter((column) => numeric.includes(kind(column)))];
  for (const question of at("questions").children) {
    const [what, of, weight] = question.querySelectorAll("select");
    question.querySelector("[data-of]").hidden = ["counts", "top"].includes(what.value);
    question.querySelector("[data-size]").hidden = ["counts", "top", "sums"].includes(what.value);
    question.querySelector("[data-weight]").hidden = !numbers.length || !document.body.dataset.weighted.split(" ").includes(what.value);
    for (const list of [of, weight]) {
      const [chosen, once] = [list.value, list === weight ? [make("option", { value: "", textContent: document.body.dataset.once })] : []];
      list.replaceChildren(...once, ...numbers.map((column) => make("option", { value: column.dataset.column, textContent: column.dataset.name })));
      if (numbers.some((column) => column.dataset.column === chosen)) list.value = chosen;
    }
    const ticks = question.querySelector(".ticks");
    const [before, prefix] = [new Set([...ticks.querySelectorAll("input:checked")].map((tick) => tick.name)), `a${question.dataset.number}.by.`];
    const wanted = split.map(([way, name]) => [`${prefix}${way}`, name]);
    if ([...ticks.querySelectorAll("input")].map((tick) => tick.name).join() === wanted.map(([name]) => name).join()) continue;
    for (const old of ticks.querySelectorAll("label")) old.remove();
    ticks.append(...wanted.map(([name, words]) => make("label", {}, make("input", { type: "checkbox", name, checked: before.has(name) }), ` ${words}`)));
  }
}

function question(number = questions) {
  const made = at("question").content.cloneNode(true).firstElementChild;
  questions = number + 1;
  made.dataset.number = number;
  made.querySelector("legend").textContent = `${number + 1}`;
  for (const field of made.querySelectorAll("[data-field]")) {
    field.id = field.name = `a${number}.${field.dataset.field}`;
    field.previousElementSibling.htmlFor = field.id;
  }
  made.querySelector("button").addEventListener("click", () => { made.remove(); at("more").focus(); });
  at("questions").append(made);
  refresh();
  return made;
}

// What was filled in is kept while the language changes, by this tab alone.
addEventListener("leaving", () => sessionStorage.setItem("filled", JSON.stringify(filled())));
function restore() {
  const kept = Object.entries(JSON.parse(sessionStorage.getItem("filled") || "{}"));
  sessionStorage.removeItem("filled");
  for (const [name] of kept) if (/^a\d+\.what$/.test(name)) question(Number(name.slice(1, -5)));
  if (!questions) question();
  for (let pass = 0; pass < 2; pass += 1) { // the second one finds what the first one made
    for (const [name, value] of kept) {
      const field = at("form").elements[name];
      if (!field) continue;
      if (field.type === "checkbox") field.checked = true;
      else field.value = value;
    }
    refresh();
  }
}

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

let planning = 0;
at("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  planning += 1;
  const number = planning;
  say("");
  for (let view = await ask("/plan", { form: filled() }); view && number === planning; view = await ask("/view")) {
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
});
at("more").addEventListener("click", () => question().querySelector("select").focus());
at("save").addEventListener("click", async () => {
  say("");
  const saved = await ask("/save", { form: filled(), name: at("name").value });
  if (!saved) return;
  write(at("saved"), saved.done);
  write(at("commands"), saved.commands.join("\n"));
  at("after").hidden = false;
  at("further").dataset.name = saved.name;
  at("further").hidden = !saved.asked;
});
at("further").addEventListener("click", async () => { if (await ask("/further", { name: at("further").dataset.name })) again(); });
restore();
