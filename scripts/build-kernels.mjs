/**
 * Compiles the operators' kernels (AssemblyScript) to dist, where the built package and the sources both look.
 *
 * No static data, no heap, no runtime: the module's only memory is the arena it is given, so nothing of its own may
 * lie in it. The checks below keep that true.
 */
import { mkdirSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const folder = "src/runtime/operators/kernels/assembly";
const target = "dist/src/runtime/operators/kernels/operators.wasm";

/** Also vitest's global set-up: tests need no build before them. */
export async function setup() {
  if (!isUpToDate()) await build();
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await setup();

async function build() {
  const { default: asc } = await import("assemblyscript/asc");
  mkdirSync(dirname(join(root, target)), { recursive: true });
  const memory =
    "--importMemory --sharedMemory --initialMemory 1 --maximumMemory 65536 --memoryBase 0 --noExportMemory";
  const flags = `${process.env.KERNEL_NAMES ? "--debug " : ""}-O3 --noAssert --runtime stub --enable threads --enable bulk-memory ${memory}`;
  const { error, stderr } = await asc.main([`${folder}/index.ts`, "--outFile", target, ...flags.split(" ")], {
    baseDir: root,
  });
  if (error) fail(`${stderr.toString()}\n${error.message}`);
  const bytes = readFileSync(join(root, target));
  const module = await WebAssembly.compile(bytes);
  const foreign = WebAssembly.Module.imports(module).filter((i) => i.kind !== "memory");
  if (foreign.length > 0) fail(`kernels import ${foreign.map((i) => i.name).join(", ")}; only memory is given to them`);
  if (sections(bytes).has(11)) fail("kernels have static data; it would be written over the arena");
}

function isUpToDate() {
  const time = (path) => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const sources = readdirSync(join(root, folder)).map((f) => time(join(root, folder, f)));
  return time(join(root, target)) > Math.max(time(fileURLToPath(import.meta.url)), ...sources);
}

/** Ids of a module's sections. */
function sections(bytes) {
  const found = new Set();
  for (let at = 8; at < bytes.length; ) {
    found.add(bytes[at++]);
    let length = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[at++];
      length |= (byte & 127) << shift;
      if (byte < 128) break;
    }
    at += length;
  }
  return found;
}

function fail(why) {
  console.error(why);
  process.exit(1);
}
