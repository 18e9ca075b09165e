// Uses a page of the studio in a real browser, by keys alone, and says what it found: begin, plan, horizon, explore or tabs; with pictures, if there is a
// folder for them.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf-8");
const patience = { timeout: 600000, polling: 100 }; // a tab behind another draws nothing
let kind, browser, folder, found, page;

const text = (selector) => page.$eval(selector, (element) => element.textContent);
const column = (place) => page.$$eval("#rows tr", (rows, at) => rows.map((row) => row.cells[at].textContent), place);

// Tab until the element that is wanted has the focus, from where the focus is or, where the element is above it, from the start of the page;
// false where no number of steps leads there.
async function reach(selector) {
  await page.evaluate((wanted) => {
    const element = document.querySelector(wanted);
    if (document.activeElement.matches("input, select, button, summary") && element
      && document.activeElement.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING) return;
    const top = document.querySelector("header");
    top.tabIndex = -1;
    top.focus();
  }, selector);
  for (let step = 0; step < 200; step += 1) {
    await page.keyboard.press("Tab");
    if (await page.evaluate((wanted) => document.activeElement.matches(wanted), selector)) return true;
  }
  return false;
}

async function plans() {
  const ready = () => page.waitForFunction(() => document.getElementById("status").textContent.startsWith("The plan matches these settings"), patience);
  await ready();
  found.first = await column(3);
  found.reached = [await reach("#keep")];
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.body.classList.contains("compared"), patience);
  found.reached.push(await reach("#slider"));
  for (let step = 0; step < 10; step += 1) await page.keyboard.press("ArrowRight");
  await page.waitForFunction((before) => document.querySelector("#rows tr").cells[3].textContent !== before, patience, found.first[0]);
  await ready();
  found.size = await page.$eval("#size", (field) => field.value);
  found.second = await column(3);
  found.before = await column(5);
  found.reached.push(await reach("#rows tr:nth-child(2) input[type=checkbox]"));
  await page.keyboard.press(" ");
  await page.waitForFunction(() => document.querySelectorAll("#rows tr")[1].classList.contains("off"), patience);
  found.reached.push(await reach("#rows tr:nth-child(3) .number"));
  await page.keyboard.type("4");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Tab");
  await ready();
  found.reached.push(await reach("#find"));
  await page.keyboard.type("kids");
  found.shown = await page.$$eval("#rows tr", (rows) => rows.filter((row) => !row.hidden).length);
  found.reached.push(await reach("#save"));
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.getElementById("saved").textContent, patience);
  found.saved = await text("#saved");
}

// The horizon of a series by keys on a phone: what the facts say before and after, and the spec that is saved.
async function horizons() {
  await page.setViewport({ width: 380, height: 800 });
  const facts = () => page.$$eval("#facts dt, #facts dd", (parts) => parts.map((part) => part.textContent));
  const planned = (periods) => page.waitForFunction((start) => !document.body.classList.contains("waiting")
    && [...document.querySelectorAll("#facts dd")].some((part) => part.textContent.startsWith(start)), patience, `${periods}, `);
  await planned(4);
  found.first = await facts();
  found.reached = [await reach("#horizon")];
  for (let step = 0; step < 3; step += 1) await page.keyboard.press("ArrowRight");
  await planned(7);
  found.longer = await facts();
  await page.keyboard.press("Home");
  await planned(2);
  found.shortest = await facts();
  found.spoken = await page.$eval("#horizon", (slider) => slider.getAttribute("aria-valuetext"));
  found.narrow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  found.reached.push(await reach("#save"));
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.getElementById("saved").textContent, patience);
}

const violations = async () => {
  await page.evaluate(axe);
  const result = await page.evaluate(() => window.axe.run(document));
  return result.violations.map((one) => `${one.id}: ${one.nodes.length} x ${one.nodes[0].html.slice(0, 120)}`);
};

// The lower ends of the second group while its edge is dragged, pixel by pixel as knobs are not equally wide in all browsers, until one is read;
// the last is what is left when the button is let go.
async function dragged(groups, wanted) {
  const edge = async () => (await text(groups)).split(" | ")[1].split("-")[0];
  const knob = await page.$(".edges input:nth-of-type(2)");
  await knob.evaluate((slider) => slider.scrollIntoView({ block: "center" }));
  const [{ x, y, width, height }, share] = [await knob.boundingBox(), await knob.evaluate((slider) => (slider.value - slider.min) / (slider.max - slider.min))];
  const ends = [await edge()];
  await page.mouse.move(x + 9 + (width - 18) * share, y + height / 2);
  await page.mouse.down();
  for (let pixel = 1; pixel < 100 && ends.at(-1) !== wanted; pixel += 1) {
    await page.mouse.move(x + 9 + (width - 18) * share + pixel, y + height / 2);
    const now = await edge();
    if (now !== ends.at(-1)) ends.push(now);
  }
  await page.mouse.up();
  return [...ends, await edge(), await page.$eval("[id='c2.edges']", (field) => field.value)];
}

// By keys but for one edge that is dragged, at the width of a phone, in German, from no file to a spec that is saved.
async function begins() {
  await page.setViewport({ width: 380, height: 800 });
  found.reached = [];
  found.narrow = [];
  const fill = async (selector, words) => { found.reached.push(await reach(selector)); await page.keyboard.type(words); };
  const press = async (selector, key = "Enter") => { found.reached.push(await reach(selector)); await page.keyboard.press(key); };
  const open = (column) => press(`[data-column='${column}'] > summary`);
  const over = async () => found.narrow.push(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth));
  const leads = (act) => Promise.all([page.waitForNavigation({ waitUntil: "load", timeout: 0 }), act()]);
  found.english = await text("h1");
  await leads(() => fill("#language", "D"));
  await fill("#path", "people.parquet");
  await over();
  found.axe_begin = await violations();
  await leads(() => press("#form button"));
  found.german = await text("h1");
  await open(1);
  await fill("[id='c1.kind']", "Codes oder");
  await fill("[id='c1.list']", "F");
  await page.keyboard.press("Enter");
  await page.keyboard.type("M");
  await open(2); // which closes the other
  found.open = await page.$$eval("details[data-column][open]", (opened) => opened.map((column) => column.dataset.name));
  await fill("[id='c2.kind']", "ganze");
  await fill("[id='c2.low']", "0");
  await fill("[id='c2.high']", "99");
  await fill("[id='c2.edges']", "0, 15, 65");
  found.dragged = await dragged("[data-column='2'] p[aria-live]", "18");
  await press(".edges input:nth-of-type(2)", "ArrowRight"); // an edge is moved by keys: 19
  found.groups = await text("[data-column='2'] p[aria-live]");
  await press("[data-column='2'] .add-level");
  await page.keyboard.type("Jahrfünft"); // the name has the focus
  await fill("[id='c2.l0.way']", "eine Anzahl");
  await fill("[id='c2.l0.width']", "5");
  await press("[data-column='2'] .level button"); // removed, and brought back
  await press("#undo");
  found.undone = [await page.$eval("[id='c2.l0.width']", (field) => field.value), await text("[data-column='2'] .state")];
  await open(3);
  await fill("[id='c3.kind']", "Zahlen");
  for (const [field, words] of [["low", "0"], ["high", "1000"], ["step", "10"], ["unit", "EUR"]]) await fill(`[id='c3.${field}']`, words);
  await open(5);
  await fill("[id='c5.kind']", "Zahlen");
  for (const [field, words] of [["low", "0"], ["high", "5"], ["step", "0,25"]]) await fill(`[id='c5.${field}']`, words);
  await press("[name='a0.by.1.cells']", " ");
  await press("[name='a0.by.2.l0']", " ");
  await press("[name='a0.by.2.cells']", " ");
  await press("[name='a0.by.2.group']", " "); // in the place of the values
  await press("#undo");
  await press("#redo");
  await press("#public > summary");
  await press("#more-totals");
  await page.keyboard.type("50000"); // the numbers have the focus
  await press("#totals button"); // removed, and brought back
  await press("#undo");
  found.total = await page.$eval("[id='p0.counts']", (field) => field.value);
  await press("#outputs > summary");
  await press("[id='formats.sdmx']", " ");
  await press("#sdmx > summary");
  await fill("[id='sdmx.agency']", "AT1");
  await press("#more");
  await fill("[id='a1.what']", "Mittel");
  await fill("[id='a1.of']", "pay");
  await fill("[id='a1.weight']", "weight");
  await press("[name='a1.by.1.cells']", " ");
  await press("#plan"); // who is protected is not said yet: the fault is said in the language of the page
  await page.waitForFunction(() => !document.getElementById("error").hidden, patience);
  found.refused = await text("#error");
  await fill("#max_rows", "20");
  await over();
  await press("#plan");
  await page.waitForFunction(() => !document.getElementById("planned").hidden && document.querySelectorAll("#charts svg").length, patience);
  found.focus = await page.evaluate(() => document.activeElement.id);
  found.rows = await page.$$eval("#rows tr", (rows) => rows.map((row) => row.cells[0].textContent));
  found.invented = await text("#charts p");
  await over();
  await press("#save");
  await page.waitForFunction(() => document.getElementById("commands").textContent, patience);
  found.commands = await text("#commands");
  found.axe_begin.push(...await violations());
  for (const width of folder ? [380, 1400] : []) {
    await page.setViewport({ width, height: 900 });
    await page.screenshot({ path: `${folder}/${kind}-whole-${width}.png`, fullPage: true });
  }
  await leads(() => press("#further"));
  await page.waitForFunction(() => document.getElementById("status").textContent, patience);
}

// Whether an element is to be seen where the page is scrolled to, with nothing before it.
const visible = (tab, id) => tab.evaluate((wanted) => {
  const element = document.getElementById(wanted);
  const box = element.getBoundingClientRect();
  return box.height > 0 && box.top >= 0 && box.bottom <= innerHeight && element.contains(document.elementFromPoint(box.left + 4, box.top + box.height / 2));
}, id);

async function tabs() {
  // this tab does not look again by itself, as if its time had not come yet
  await page.evaluateOnNewDocument(() => {
    const wait = window.setTimeout;
    window.setTimeout = (done, time) => wait(done, time === 2000 ? 1e9 : time);
    const listen = document.addEventListener.bind(document);
    document.addEventListener = (name, ...more) => name === "visibilitychange" || listen(name, ...more);
  });
  const ready = (tab) => tab.waitForFunction(() => seen && seen.ready && !seen.busy, patience);
  await page.reload({ waitUntil: "load" });
  await ready(page);
  const other = await browser.newPage();
  await other.goto(found.address, { waitUntil: "load" });
  await ready(other);
  const type = (tab, id, words) => tab.evaluate((wanted, value) => {
    const field = document.getElementById(wanted);
    field.value = value;
    field.dispatchEvent(new Event("change", { bubbles: true }));
  }, id, words);
  const size = (tab) => tab.$eval("#size", (field) => field.value);
  const fits = (tab, wanted) => tab.waitForFunction((value) => document.getElementById("size").value === value, patience, wanted);
  await type(other, "size", "3");
  await other.waitForFunction(() => seen.size === "3", patience);
  found.shown = await size(page);
  await page.$eval("#save", (button) => button.click());
  await fits(page, "3");
  found.refused = await text("#error");
  found.unsaved = await text("#saved");
  await page.$eval("#save", (button) => button.click());
  await page.waitForFunction(() => document.getElementById("saved").textContent, patience);
  found.error = await text("#error");
  // what is typed is done before what is clicked behind it, and where it is refused, nothing is
  await page.evaluate(() => {
    const field = document.getElementById("size");
    for (const value of ["2", "no number"]) {
      field.value = value;
      field.dispatchEvent(new Event("change", { bubbles: true }));
      document.getElementById("name").value = value === "2" ? "two.toml" : "none.toml";
      document.getElementById("save").click();
    }
  });
  await page.waitForFunction(() => document.getElementById("error").textContent.includes("no number"), patience);
  await fits(page, "2");
  // the other tab learns of it, in a field that has the focus, and says so
  await other.focus("#size");
  await fits(other, "2");
  found.told = await other.$eval("#other", (element) => !element.hidden);
  await other.select("#bulk-target", "margin");
  await other.$eval("#bulk-most", (field) => { field.value = "5"; });
  found.visible = [];
  for (const width of [390, 800, 1400]) {
    await other.setViewport({ width, height: 700 });
    for (const id of ["slider", "set", "rows", "save"]) {
      await other.$eval(`#${id}`, (element) => element.scrollIntoView({ block: "center" }));
      found.visible.push(await visible(other, "status"));
    }
  }
  await other.$eval("#set", (button) => button.click());
  await other.waitForFunction(() => !document.getElementById("error").hidden, patience);
  await new Promise((done) => { setTimeout(done, 2500); }); // it has looked again
  found.bulk = await other.$eval("#error", (element) => element.textContent);
  found.visible.push(await visible(other, "error"));
  await other.$eval("#least", (field) => field.click());
  await other.waitForFunction(() => document.getElementById("status").textContent.includes("No plan exists"), patience);
  found.vain = await other.$eval("#error", (element) => element.textContent);
  await other.close();
  await page.bringToFront();
}

async function explores() {
  await page.waitForSelector("#chart svg", patience);
  found.drawn = await page.$$eval("#chart svg path, #chart svg text", (parts) => parts.length);
  found.cells = await column(1);
  found.reached = [await reach("#rows tr:nth-child(2) input")];
  await page.keyboard.press(" ");
  await page.waitForFunction(() => document.getElementById("sum").textContent.startsWith("one cell"), patience);
  found.sum = await text("#sum");
  found.reached.push(await reach("select[data-name=kids]"));
  await page.keyboard.type("every");
  found.reached.push(await reach("#ask button"));
  await page.keyboard.press("Enter");
  await page.waitForFunction((before) => document.querySelectorAll("#rows tr").length !== before, patience, found.cells.length);
  found.wider = (await column(1)).length;
  // a line for each sex: colours and dashes have one legend, of which nothing is said on the console
  await reach("select[data-name=zone]");
  await page.keyboard.type("summed");
  await reach("select[data-name=kids]");
  await page.keyboard.type("up to");
  await reach("#ask button");
  await page.keyboard.press("Enter");
  await page.waitForFunction((before) => document.querySelectorAll("#rows tr").length !== before, patience, found.wider);
  await page.waitForSelector("#chart svg", patience);
  found.lines = (await column(1)).length;
}

export default async function studio(...given) {
  let address, mode;
  [kind, browser, address, mode, folder] = given;
  found = { said: [], loaded: [], overflow: {} };
  page = await browser.newPage();
  page.setDefaultTimeout(0);
  page.on("console", (message) => found.said.push(`${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => found.said.push(String(error)));
  page.on("request", (request) => found.loaded.push(request.url()));
  await page.goto(address, { waitUntil: "load" });
  found.address = await page.evaluate(() => location.href);
  await page.setViewport({ width: 1400, height: 900 });
  await { begin: begins, plan: plans, explore: explores, horizon: horizons, tabs }[mode]();
  for (const width of [390, 800, 1400]) {
    await page.setViewport({ width, height: 900 });
    found.overflow[width] = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    if (folder) await page.screenshot({ path: `${folder}/${kind}-${mode}-${width}.png`, fullPage: false });
  }
  await page.reload({ waitUntil: "load" }); // the address without the token, by the session
  found.again = await text("h1");
  if (mode === "explore") await page.waitForSelector("#chart svg", patience);
  found.axe = await violations();
  return found;
}
