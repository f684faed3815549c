/**
 * Where the entry files of threads are: beside src, TypeScript in a clone and under vitest, JavaScript in the package.
 */
const extension = import.meta.url.endsWith(".ts") ? ".ts" : ".js";

export const entryFile = (name: string): URL => new URL(`../../workers/${name}${extension}`, import.meta.url);
