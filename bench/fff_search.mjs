// Answers searches, a line of JSON each, with fff's index of one folder: `node fff_search.mjs FOLDER`.
import { createInterface } from "node:readline";
import { FileFinder } from "@ff-labs/fff-node";

const made = FileFinder.create({ basePath: process.argv[2] });
if (!made.ok) throw new Error(made.error);
const finder = made.value;
await finder.waitForScan(60000);
console.log(JSON.stringify({ ready: true }));
for await (const line of createInterface({ input: process.stdin })) {
  const { pattern, caseSensitive, limit } = JSON.parse(line);
  const mode = /^[\w ]+$/.test(pattern) ? "plain" : "regex";
  const text = caseSensitive || mode === "plain" ? pattern : `(?i)${pattern}`;
  const found = finder.grep(text, { mode, smartCase: !caseSensitive, pageSize: limit });
  const lines = found.ok
    ? found.value.items.map((one) => `${one.relativePath}:${one.lineNumber}:${one.lineContent}`)
    : [];
  console.log(JSON.stringify({ ok: found.ok, error: found.error, lines }));
}
