// A mix of small JavaScript benchmarks. SCALE is set by the line put before this text; the value of the script is a
// line of check sums. No clock, no randomness: the numbers come from a linear congruential step.
"use strict";

let seed = 42;
function chance(bound) {
  seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff;
  return seed % bound;
}

function hash(text) {
  let sum = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) sum = Math.imul(sum ^ text.charCodeAt(i), 0x01000193);
  return sum >>> 0;
}

function repeated(rounds, work) {
  let total = 0;
  for (let i = 0; i < rounds; i++) total += work(i);
  return total;
}

function fibonacci(n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

function sieve(limit) {
  const composite = new Uint8Array(limit);
  let primes = 0;
  for (let i = 2; i < limit; i++) {
    if (composite[i]) continue;
    primes++;
    for (let j = i * 2; j < limit; j += i) composite[j] = 1;
  }
  return primes;
}

class Shape {
  constructor(side) { this.side = side; }
  area() { return 0; }
}
class Square extends Shape {
  area() { return this.side * this.side; }
}
class Triangle extends Shape {
  area() { return (this.side * this.side) / 2; }
}
function shapes(count) {
  let total = 0;
  for (let i = 0; i < count; i++) total += (i % 3 ? new Square(i % 17) : new Triangle(i % 19)).area();
  return total;
}

function words(count) {
  const seen = new Map();
  for (let i = 0; i < count; i++) {
    const word = "w" + chance(500).toString(36);
    seen.set(word, (seen.get(word) || 0) + 1);
  }
  const ranked = [...seen].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  return hash(ranked.map(([word, times]) => `${word}:${times}`).join(","));
}

function json(rounds) {
  let text = "";
  let value = { name: "root", list: [1, 2.5, -3e10, null, true], child: { text: "tab\there \u00e9" } };
  for (let i = 0; i < rounds; i++) {
    text = JSON.stringify(value);
    value = JSON.parse(text);
    value.list.push(i % 10);
    if (value.list.length > 60) value.list.length = 5;
  }
  return hash(text);
}

function matching(rounds) {
  const text = "size_t count = table[12]->offset + 0xff; /* 2024-02-29 */ ".repeat(4);
  let found = 0;
  for (let i = 0; i < rounds; i++) {
    found += (text.match(/\b[a-z_]+\b/g) || []).length;
    found += text.replace(/(\d+)-(\d+)-(\d+)/g, "$3/$2/$1").length;
  }
  return found;
}

function queens(size) {
  let solutions = 0;
  const place = (row, columns, left, right) => {
    if (row === size) { solutions++; return; }
    for (let free = ~(columns | left | right) & ((1 << size) - 1); free; free &= free - 1) {
      const bit = free & -free;
      place(row + 1, columns | bit, (left | bit) << 1, (right | bit) >> 1);
    }
  };
  place(0, 0, 0, 0);
  return solutions;
}

function bodies(steps) {
  const all = [[0, 0, 0, 0, 40], [5, 0, 0, 2, 1], [0, 9, -2, 0, 1], [-14, 0, 0, -1.5, 2]];
  for (let step = 0; step < steps; step++) {
    for (const a of all) {
      for (const b of all) {
        if (a === b) continue;
        const x = b[0] - a[0], y = b[1] - a[1];
        const pull = (b[4] * 0.001) / Math.pow(x * x + y * y + 0.01, 1.5);
        a[2] += x * pull;
        a[3] += y * pull;
      }
    }
    for (const a of all) { a[0] += a[2] * 0.001; a[1] += a[3] * 0.001; }
  }
  return all.map((a) => a[0].toFixed(6)).join(" ");
}

function* countdown(n) {
  while (n > 0) yield n--;
}
function thrown(rounds) {
  let total = 0;
  for (let i = 0; i < rounds; i++) {
    try {
      for (const n of countdown(5)) if (n === i % 7) throw new Error("stop at " + n);
      total += 1;
    } catch (error) {
      total += error.message.length;
    }
  }
  return total;
}

[
  "fibonacci " + repeated(SCALE, () => fibonacci(17)),
  "sieve " + sieve(6000 * SCALE),
  "shapes " + shapes(3000 * SCALE),
  "words " + words(2000 * SCALE),
  "json " + json(150 * SCALE),
  "matching " + matching(20 * SCALE),
  "queens " + repeated(SCALE, (i) => queens(6 + (i % 2))),
  "bodies " + bodies(150 * SCALE),
  "thrown " + thrown(500 * SCALE),
].join("\n");
