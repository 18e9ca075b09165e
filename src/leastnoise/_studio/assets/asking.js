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
