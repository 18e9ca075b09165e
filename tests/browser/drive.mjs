// One browser for all tests: node drive.mjs chrome|firefox EXECUTABLE. A line of the standard input names a script beside this one and gives it
// its arguments; it gets windows of its own, and what it found, or why it failed, is a line of JSON on the standard output.
import { createInterface } from "node:readline";
import puppeteer from "puppeteer-core";

const [kind, executablePath] = process.argv.slice(2);
const browser = await puppeteer.launch({
  browser: kind, executablePath, headless: true, args: kind === "chrome" ? ["--no-sandbox"] : [], timeout: 0, protocolTimeout: 0,
});
try {
  for await (const line of createInterface({ input: process.stdin })) {
    const [script, ...given] = JSON.parse(line);
    const windows = await browser.createBrowserContext();
    try {
      const { default: use } = await import(`./${script}`);
      console.log(JSON.stringify({ found: await use(kind, windows, ...given) }));
    } catch (error) {
      console.log(JSON.stringify({ failed: String(error.stack) }));
    } finally {
      await windows.close();
    }
  }
} finally {
  await browser.close();
}
