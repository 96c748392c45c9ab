// Reads a file of profile.proto with npm's decoder: `node pprof.mjs FILE`. Prints own and inclusive values by function.
import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { Profile } from "pprof-format";

const profile = Profile.decode(gunzipSync(readFileSync(process.argv[2])));
const text = number => profile.stringTable.strings[Number(number)];
const functions = new Map(profile.function.map(one => [one.id, text(one.name)]));
const names = new Map(
  profile.location.map(place => [place.id, place.line.map(line => functions.get(line.functionId))]),
);
const own = {};
const inclusive = {};
for (const sample of profile.sample) {
  const value = Number(sample.value[0]);
  const stack = sample.locationId.flatMap(place => names.get(place));
  own[stack[0]] = (own[stack[0]] ?? 0) + value;
  for (const name of new Set(stack)) inclusive[name] = (inclusive[name] ?? 0) + value;
}
const types = profile.sampleType.map(one => `${text(one.type)} ${text(one.unit)}`);
console.log(JSON.stringify({ types, samples: profile.sample.length, own, inclusive }));
