/**
 * All that the pools of one moment are made of: the two files, the flags, and what stands around the process.
 */
import type { AllocationFile } from "./allocation-file.ts";
import { DEFAULT_FLAGS, type ImpalaFlags } from "./impala-flags.ts";
import { NO_SURROUNDINGS, type SiteFile, type Surroundings } from "./site-file.ts";
import { NO_GROUPS, type UserGroups } from "./user-groups.ts";

export interface PoolSettings {
  /** null: no allocation file, one pool by flags; then `site` has no say either. */
  readonly allocation: AllocationFile | null;
  readonly site: SiteFile | null;
  readonly flags: ImpalaFlags;
  readonly groups: UserGroups;
  readonly around: Surroundings;
  /** What percentages of `--default_pool_mem_limit` are of. */
  readonly physicalMemory: number;
}

export const DEFAULT_SETTINGS: PoolSettings = {
  allocation: null,
  site: null,
  flags: DEFAULT_FLAGS,
  groups: NO_GROUPS,
  around: NO_SURROUNDINGS,
  physicalMemory: 0,
};
