/** Makes a picture smaller by reducing it to its 256 most frequent colors. The page has few colors, apart from those at the edges of letters. */
import { deflateSync, inflateSync } from "node:zlib";

/** @param {Buffer} png 8 bits per channel, not interlaced, as Chromium writes it @returns {Buffer} */
export function smaller(png) {
  const { width, height, channels, data } = read(png);
  const counts = new Map();
  const colors = new Uint32Array(width * height);
  for (let at = 0; at < colors.length; at += 1) {
    // Shades that differ only in their lowest two bits look the same.
    const [r, g, b] = [0, 1, 2].map((channel) => Math.min(255, (data[at * channels + channel] + 2) & ~3));
    colors[at] = (r << 16) | (g << 8) | b;
    counts.set(colors[at], (counts.get(colors[at]) ?? 0) + 1);
  }
  const palette = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 256).map(([color]) => color);
  const nearest = new Map(palette.map((color, index) => [color, index]));
  const find = (color) => {
    let [best, least] = [0, Infinity];
    palette.forEach((other, index) => {
      const far = [16, 8, 0].reduce((sum, shift) => sum + (((color >> shift) & 255) - ((other >> shift) & 255)) ** 2, 0);
      if (far < least) [best, least] = [index, far];
    });
    nearest.set(color, best);
    return best;
  };
  const rows = Buffer.alloc(height * (width + 1));
  for (let y = 0; y < height; y += 1)
    for (let x = 0; x < width; x += 1) {
      const color = colors[y * width + x];
      rows[y * (width + 1) + 1 + x] = nearest.get(color) ?? find(color);
    }
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 3, 0, 0, 0], 8);
  const plte = Buffer.from(palette.flatMap((color) => [color >> 16, (color >> 8) & 255, color & 255]));
  return Buffer.concat([png.subarray(0, 8), chunk("IHDR", head), chunk("PLTE", plte), chunk("IDAT", deflateSync(rows, { level: 9 })), chunk("IEND", Buffer.alloc(0))]);
}

/** @param {Buffer} png */
function read(png) {
  let [at, head] = [8, Buffer.alloc(0)];
  const parts = [];
  while (at < png.length) {
    const length = png.readUInt32BE(at);
    const kind = png.toString("latin1", at + 4, at + 8);
    const body = png.subarray(at + 8, at + 8 + length);
    if (kind === "IHDR") head = body;
    if (kind === "IDAT") parts.push(body);
    at += 12 + length;
  }
  const [width, height] = [head.readUInt32BE(0), head.readUInt32BE(4)];
  const channels = { 2: 3, 6: 4 }[head[9]];
  if (head[8] !== 8 || !channels || head[12]) throw new Error("the picture is not as Chromium writes it");
  const raw = inflateSync(Buffer.concat(parts));
  const wide = width * channels;
  const data = Buffer.alloc(height * wide);
  for (let y = 0; y < height; y += 1) {
    const filter = raw[y * (wide + 1)];
    for (let x = 0; x < wide; x += 1) {
      const left = x < channels ? 0 : data[y * wide + x - channels];
      const up = y ? data[(y - 1) * wide + x] : 0;
      const corner = y && x >= channels ? data[(y - 1) * wide + x - channels] : 0;
      data[y * wide + x] = raw[y * (wide + 1) + 1 + x] + [0, left, up, (left + up) >> 1, paeth(left, up, corner)][filter];
    }
  }
  return { width, height, channels, data };
}

function paeth(left, up, corner) {
  const [a, b, c] = [Math.abs(up - corner), Math.abs(left - corner), Math.abs(left + up - 2 * corner)];
  return a <= b && a <= c ? left : b <= c ? up : corner;
}

/** Computes PNG's checksum (CRC-32). @param {Buffer} bytes */
function crc(bytes) {
  let sum = 0xffffffff;
  for (const byte of bytes) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit += 1) sum = sum & 1 ? (sum >>> 1) ^ 0xedb88320 : sum >>> 1;
  }
  return (sum ^ 0xffffffff) >>> 0;
}

/** @param {string} kind @param {Buffer} body */
function chunk(kind, body) {
  const named = Buffer.concat([Buffer.from(kind, "latin1"), body]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(body.length);
  sum.writeUInt32BE(crc(named));
  return Buffer.concat([length, named, sum]);
}
