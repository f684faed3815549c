/** What the operators call (see ../kernels.ts), all of it hot: bench/spill.ts. Compiled by scripts/build-kernels.mjs. */
export { addInOrder, addSums, copyBytes, pageSum, prepare, zero } from "./rows";
export { generate } from "./generate";
export { insertRows, orderByBucket, rehash, route, scatter } from "./partitions";
export { addPairSums, probe } from "./join";
export { aggregate } from "./aggregate";
export { clusterRun, sortRun } from "./sort";
export { flatten, layInOrder, loadKey, mergeRows, mergeTuples, playTree, resume, toTuples } from "./merge";
