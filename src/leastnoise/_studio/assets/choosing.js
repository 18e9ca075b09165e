// The page that asks which data: a file or a table.
"use strict";
at("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  if (await ask("/choose", { form: Object.fromEntries(new FormData(at("form"))) })) again();
});
