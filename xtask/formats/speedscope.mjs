// Opens files in speedscope's page: `node speedscope.mjs BROWSER PICTURE FILE…`. Prints the frames of each file with their own and total weights, and takes a picture of the first file.
import { readFileSync } from "node:fs";
import { chromium } from "playwright-core";

const [executablePath, picture, ...files] = process.argv.slice(2);
const release = new URL("node_modules/speedscope/dist/release/", import.meta.url);
const types = { css: "text/css", html: "text/html", js: "text/javascript", woff2: "font/woff2" };
// The page does not expose the profiles that it has opened, so store them in a global variable.
const [loaded, shown] = ["this.setProfileGroup=n=>{", "this.setProfileGroup=n=>{globalThis.opened=n;"];
let hooked = false;

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const profiles = [];
try {
  for (const file of files) {
    const page = await browser.newPage({ viewport: { width: 1000, height: 480 } });
    const warnings = [];
    page.on("console", message => {
      if (message.type() === "warning" && !message.text().includes("GL Driver")) warnings.push(message.text());
    });
    page.on("dialog", dialog => {
      warnings.push(dialog.message());
      dialog.dismiss();
    });
    await page.route("http://speedscope.localhost/**", route => {
      const name = new URL(route.request().url()).pathname.slice(1) || "index.html";
      let body = readFileSync(new URL(name, release));
      if (/^speedscope.*\.js$/.test(name)) {
        hooked = body.includes(loaded);
        body = body.toString().replace(loaded, shown);
      }
      return route.fulfill({ body, contentType: types[name.split(".").pop()] ?? "application/octet-stream" });
    });
    await page.goto("http://speedscope.localhost/#view=left-heavy");
    if (!hooked) throw new Error("this version of speedscope has another way to keep what it opens");
    await page.setInputFiles("input[type=file]", file);
    await page.waitForFunction(() => globalThis.opened, null, { timeout: 30000 }).catch(() => {
      throw new Error(`${file}: not opened: ${warnings}`);
    });
    if (warnings.length) throw new Error(`${file}: ${warnings.length} warnings, the first: ${warnings[0]}`);
    profiles.push(
      await page.evaluate(() => {
        const [profile, ...others] = globalThis.opened.profiles;
        if (others.length) throw new Error(`${others.length + 1} profiles`);
        const frames = [];
        profile.forEachFrame(frame => frames.push([frame.name, frame.getSelfWeight(), frame.getTotalWeight()]));
        return { total: profile.getTotalWeight(), frames };
      }),
    );
    if (file === files[0]) {
      // speedscope draws its canvas in the frame after next.
      await page.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))));
      await page.screenshot({ path: picture });
    }
    await page.close();
  }
} finally {
  await browser.close();
}
console.log(JSON.stringify(profiles));
