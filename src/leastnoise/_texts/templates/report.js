"use strict";
(() => {
  const words = document.getElementById("words").dataset;
  const value = (text) => {
    const plain = text.replaceAll(words.group, "").replace(words.decimal, ".").replace("<= ", "");
    const parts = /^(-?[\d.]+(?:e[-+]?\d+)?)$/.exec(plain.trim());
    return parts ? Number(parts[1]) : NaN;
  };
  const make = (tag, attributes, text) => {
    const made = document.createElement(tag);
    for (const [name, content] of Object.entries(attributes)) made.setAttribute(name, content);
    made.textContent = text || "";
    return made;
  };
  const sortable = (table) => {
    const body = table.tBodies[0];
    const first = [...body.rows];
    [...table.tHead.rows[0].cells].forEach((head, place) => {
      const button = make("button", { type: "button" }, head.textContent);
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const now = head.getAttribute("aria-sort");
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        if (now === "descending") return body.append(...first);
        head.setAttribute("aria-sort", now ? "descending" : "ascending");
        const keyed = first.map((row) => [row, row.cells[place].textContent.trim()]).map(([row, text]) => [row, text, value(text)]);
        const numbers = keyed.every(([, text, number]) => !Number.isNaN(number) || !text);
        keyed.sort((a, b) => (numbers ? (a[2] || 0) - (b[2] || 0) : a[1].localeCompare(b[1], undefined, { numeric: true })));
        if (now) keyed.reverse();
        body.append(...keyed.map(([row]) => row));
      });
    });
  };
  const finder = (label, rows, also) => {
    const field = make("input", { type: "search", placeholder: label, "aria-label": label });
    const shown = make("span", { role: "status" });
    field.addEventListener("input", () => {
      const wanted = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      let count = 0;
      for (const row of rows) {
        const text = [...row.cells].map((cell) => cell.textContent).join(" ").toLowerCase();
        row.hidden = !wanted.every((word) => text.includes(word));
        if (!row.hidden) count += 1;
        if (also) also(row);
      }
      shown.textContent = wanted.length ? `${count} ${words.shown}` : "";
    });
    return [field, shown];
  };
  const quoted = (text) => (/[",\n\r]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text);
  // As `make_inert` does: no spreadsheet runs a label as a formula.
  const inert = (text) => (/^'*(?:[\t\r\n]|[\s\x00-\x1f\x7f-\x9f\u200b\ufeff]*[=+\-@＝＋－＠])/.test(text) && !/^[+-]?[0-9][0-9.,:/ -]*$/.test(text) ? `'${text}` : text);
  const saved = (details, table) => {
    const keys = Number(details.dataset.keys);
    const level = details.dataset.margin.replace(/[^\d.,]/g, "").replace(",", ".");
    const heads = [...table.tHead.rows[0].cells].map((head) => head.textContent.trim());
    const lines = [[...heads.slice(0, keys).map(inert), "answer", `margin_${level}`, "low", "high", ...heads.slice(keys + 2)]];
    for (const row of table.tBodies[0].rows) {
      if (row.hidden) continue;
      const texts = [...row.cells].map((cell) => cell.textContent.trim());
      const [answer, margin, ...rest] = texts.slice(keys).map((text) => (text ? value(text) : ""));
      const ends = [answer - margin, answer + margin].map((end) => Number(end.toPrecision(12)));
      lines.push([...texts.slice(0, keys).map(inert), answer, margin, ...ends, ...rest].map(String));
    }
    const text = lines.map((line) => line.map(quoted).join(",")).join("\r\n") + "\r\n";
    const link = make("a", { download: details.dataset.file, href: URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" })) });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  };
  const ready = (details) => {
    const table = details.querySelector("table");
    if (!details.open || details.dataset.ready) return;
    details.dataset.ready = "yes";
    const tools = make("div", { class: "tools" });
    const button = make("button", { type: "button" }, words.csv);
    button.addEventListener("click", () => saved(details, table));
    tools.append(...finder(words.filter, [...table.tBodies[0].rows]), button);
    details.querySelector("summary").after(tools);
    sortable(table);
  };
  const index = document.getElementById("index");
  const tools = make("div", { class: "tools" });
  const articles = new Map([...document.querySelectorAll("article")].map((article) => [article.id, article]));
  tools.append(...finder(index.dataset.find, [...index.tBodies[0].rows], (row) => {
    const article = articles.get(row.cells[0].textContent.trim());
    if (article) article.hidden = row.hidden;
  }));
  index.parentElement.before(tools);
  sortable(index);
  for (const details of document.querySelectorAll("details")) {
    details.addEventListener("toggle", () => ready(details));
    ready(details);
  }
  let printed = []; // tables that are closed are printed too
  addEventListener("beforeprint", () => {
    printed = [...document.querySelectorAll("details:not([open])")];
    for (const details of printed) { details.open = true; ready(details); }
  });
  addEventListener("afterprint", () => { for (const details of printed.splice(0)) details.open = false; });
  const jump = () => {
    const article = articles.get(location.hash.slice(1));
    const details = article && article.querySelector("details");
    if (details) details.open = true;
  };
  addEventListener("hashchange", jump);
  jump();
})();
