// What every page needs: to ask the studio for something, and to say what it refuses.
"use strict";
history.replaceState(null, "", "/");
const at = (id) => document.getElementById(id);

function write(element, text) { if (element.textContent !== text) element.textContent = text; }

function say(text) { at("error").hidden = !text; write(at("error"), text); }

// What comes back, or null where it was refused, after what is to be done then.
async function ask(path, body, refused) {
  const sent = body === undefined ? {} : { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  let answer;
  try {
    answer = await fetch(path, sent);
  } catch {
    say(document.body.dataset.ended);
    return null;
  }
  if (answer.status === 403) { say(document.body.dataset.ended); return null; }
  const found = await answer.json();
  if (found.refused === undefined) return found;
  say(found.refused);
  if (refused) await refused(found.refused);
  return null;
}

// A chart of a page, whose words are said by its figure alone.
async function draw(figure, spec, alt) {
  figure.hidden = !spec;
  figure.setAttribute("aria-label", alt);
  if (!spec) return;
  while (!window.vegaEmbed) await new Promise((done) => { setTimeout(done, 50); });
  await window.vegaEmbed(figure, spec, { actions: false, ast: true, renderer: "svg", loader: { http: false } });
  for (const part of figure.querySelectorAll("[role], [aria-label], [aria-roledescription]")) {
    for (const name of ["role", "aria-label", "aria-roledescription", "tabindex"]) part.removeAttribute(name);
  }
  for (const part of figure.querySelectorAll("svg")) part.setAttribute("aria-hidden", "true");
}

// The studio may show another page at this address now.
const again = () => location.replace("/");

// What was filled in stays when the language changes.
if (at("language")) at("language").addEventListener("change", async () => {
  dispatchEvent(new Event("leaving"));
  await ask("/language", { language: at("language").value });
  again();
});

// Undo and redo by their buttons, and by keys outside of text fields, which have their own undo.
function undoing(undo, redo) {
  at("undo").addEventListener("click", undo);
  at("redo").addEventListener("click", redo);
  document.addEventListener("keydown", (event) => {
    const key = event.key.toLowerCase();
    if (!(event.ctrlKey || event.metaKey) || event.altKey || !["z", "y"].includes(key)) return;
    if (event.target.matches("textarea, input:not([type=checkbox], [type=radio], [type=range])")) return;
    event.preventDefault();
    const button = at(key === "y" || event.shiftKey ? "redo" : "undo");
    if (!button.disabled) button.click();
  });
}
