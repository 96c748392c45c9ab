/**
 * Repeats the three sessions of docs/sessions in the page. Each must reach the line at fault. Also takes the pictures of docs/sessions/explorer.md.
 *
 *     node sessions.mjs CHROMIUM FOLDER_FOR_PICTURES NAME=URL …
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { end, open, settled, start, wrong } from "./driver.mjs";
import { smaller } from "./smaller.mjs";

const [executablePath, folder, ...served] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
const urls = new Map(served.map((one) => [one.slice(0, one.indexOf("=")), one.slice(one.indexOf("=") + 1)]));
const browser = await start(executablePath);

/** The maximum size of a picture in bytes. The limit is low because the pictures are kept in the repository. */
const MOST = 80_000;

/** Performs a user's actions in a page. */
class Hand {
  constructor(page, name) {
    this.page = page;
    this.name = name;
  }

  async click(what, text) {
    const found = text ? this.page.locator(what, { hasText: text }) : this.page.locator(what);
    await found.first().click();
    await settled(this.page);
  }

  async press(key) {
    await this.page.keyboard.press(key);
    await settled(this.page);
  }

  /** Chooses the first byte of a printed text. */
  async printed(line, text) {
    const units = this.page.locator(".printed .line", { hasText: line }).first().locator("[data-unit]");
    const all = (await units.allInnerTexts()).join("");
    await units.nth(all.indexOf(text)).click();
    await settled(this.page);
  }

  /** Types into the search, and opens the first result that contains a text. */
  async search(words, result) {
    await this.page.keyboard.press("/");
    await this.page.keyboard.type(words);
    await this.page.locator(".search li", { hasText: result }).first().click();
    await settled(this.page);
  }

  /** Checks that an element with a text is on the page. */
  async sees(what, text) {
    const seen = await this.page.locator(what, { hasText: text }).count();
    if (!seen) wrong.push(`${this.name}: ${text} is not seen in ${what}; the page is at ${await this.page.evaluate(() => location.hash)}`);
  }

  async picture(name) {
    const path = `${folder}/${this.name}-${name}.png`;
    await this.page.mouse.move(500, 3);
    await this.page.evaluate(() => document.activeElement?.blur());
    const picture = smaller(await this.page.screenshot());
    writeFileSync(path, picture);
    if (picture.length > MOST) wrong.push(`${path} has ${picture.length} bytes, more than ${MOST}`);
    console.log(`${path}: ${(picture.length / 1000).toFixed(0)} kB`);
  }
}

const sessions = {
  /** Repeats the session about a wrong checksum. */
  async bzip2(hand) {
    await hand.printed("status -4", "-4");
    await hand.click(".chosen button", "Why?");
    await hand.sees(".chain", "bzlib.c:847");
    await hand.picture("printed");
    await hand.click("button", "why this one?");
    await hand.sees(".chain", "compress.c:608");
    await hand.click("button.operand", "left 379154398");
    await hand.sees(".chain", ">> 30");
    await hand.click(".chain .place", "compress.c:607");
    await hand.sees(".row.here", ">> 30");
    await hand.picture("guilty");
    // The member is reached through a pointer, and stays open at the next moment.
    await hand.page.evaluate(() => { location.hash = "#view=source&at=compress.c:607%232"; });
    await settled(hand.page);
    await hand.page.locator('[aria-label="Target of s"]').click();
    await settled(hand.page);
    await hand.sees(".members", "combinedCRC");
    await hand.press("n");
    await hand.sees(".members", "combinedCRC");
    const crc = hand.page.locator(".members > div", { has: hand.page.locator("dt", { hasText: /^combinedCRC$/ }) });
    const held = await hand.page.evaluate(async () => (await (await fetch("api/values?at=compress.c:608&instances=2..2&var=s->combinedCRC")).json()).instances[0].value);
    if (!(await crc.innerText()).includes(held)) wrong.push(`s->combinedCRC is ${held}, and the page shows ${await crc.innerText()}`);
    await crc.locator("button.link").click();
    await settled(hand.page);
    await hand.sees("h1", "Where did s->combinedCRC come from?");
    await hand.click(".choice button", "Uses");
    await hand.sees(".chain", "compress.c:608");
    // The variable is in a local of WebAssembly. The compiler gives its write the line of the variable's first use.
    await hand.page.evaluate(() => { location.hash = "#view=source&at=compress.c:201%231000&about=var:ll_i"; });
    await settled(hand.page);
    await hand.press("w");
    await hand.sees(".row.here", "if (yy[0] == ll_i)");
  },
  /** Repeats the session about a constant that a compiler takes for a smaller one. */
  async lua(hand) {
    await hand.printed("141", "141");
    await hand.click(".chosen button", "Why?");
    await hand.sees(".chain", "lvm.c:1403");
    await hand.picture("printed");
    await hand.click("button.operand", "right 128");
    await hand.sees(".chain", "lcode.c:1474");
    await hand.click(".chain .place", "lcode.c:1474");
    await hand.sees(".row.here", "int2sC(-v2)");
    await hand.click(".row", "if (!(fitsC(i2)");
    await hand.press("Enter");
    await hand.press("y");
    await hand.sees(".chain", "lcode.c:661");
    await hand.picture("guilty");
  },
  /** Repeats the session about a branch that was not taken. */
  async markdown(hand) {
    await hand.search("table_head_bytes", "let end_ix = table_head_ix + table_head_bytes");
    await hand.sees(".row.never.on", "let end_ix = table_head_ix");
    await hand.click(".row.never.on .whynot");
    await hand.sees(".cause", "firstpass.rs:839");
    await hand.sees(".chain", "byte 0 of standard input, '#'");
    await hand.picture("why-not");
    await hand.click("button", "What did this byte influence?");
    await hand.sees(".said", "of output depend on it");
    await hand.click(".choice button", "Values only");
    await hand.sees(".follows", "Only values computed from the byte");
    await hand.search("count_header_cols", "function");
    await hand.click(".title .choice button", "Calls");
    await hand.click("table.list button", "#1");
    await hand.sees(".row.here", "start = scan_whitespace_no_nl");
    await hand.sees(".row .values", "start 10");
    await hand.picture("guilty");
    // A function with too many blocks for a picture is shown as a table.
    await hand.search("FirstPass::parse_block", "function");
    await hand.click(".title .choice button", "Control flow");
    await hand.click(".blocks .row button", "line");
    await hand.sees(".row.here", "");
  },
};

for (const [name, url] of urls) {
  const page = await open(browser, url, { width: 1090, height: 560 });
  await settled(page);
  try {
    await sessions[name](new Hand(page, name));
    console.log(`${name}: came to the line`);
  } catch (error) {
    wrong.push(`${name}: ${error.message}`);
    await page.screenshot({ path: `${folder}/${name}-wrong.png` });
  }
  await page.context().close();
}
await browser.close();
end();
