/**
 * Sixteen partitions by the top four bits of a hash whose seed depends on the level (O6, O18): what aggregation and
 * join have in common. The records that the kernels read are laid out in kernels/assembly/partitions.ts.
 */
import type { HashTable } from "./hash-table.ts";
import { roomOf } from "./hash-table.ts";
import { putU64, type Workspace } from "./operator-context.ts";

export const FANOUT = 16;
/** Levels 0 to 15 (O12, O22, I22). */
export const MAX_PARTITION_DEPTH = 16;

/** Hash bits that kernels look at: all, or none of those that choose the partition, when there is only one. */
export const KEEP_ALL = 0xffffffff;
export const KEEP_ONE = 0x0fffffff;

export const ABSENT = 0;
export const IN_MEMORY = 1;
export const SPILLED = 2;
/** In memory, but its probe rows wait until there are many (hash-join.ts). */
export const STAGED = 3;
type RecordState = typeof ABSENT | typeof IN_MEMORY | typeof SPILLED | typeof STAGED;

/** Buckets of a slice of 256 rows, and a word (find() in kernels/assembly/partitions.ts). */
export const SLOT_BYTES = 1024 + 64;

const RECORD_BYTES = 64;
const STATE = 0;
const CURSOR = 4;
const BUCKETS = 16;
const MASK = 20;
const FILLED = 24;
const ROOM = 28;
const RAW_CURSOR = 32;
const LINKS = 44;
const NODE = 48;
const NODE_END = 52;

export class PartitionRecords {
  readonly address: number;
  readonly #words: Uint32Array;

  constructor(workspace: Workspace) {
    this.address = workspace.take(FANOUT * RECORD_BYTES);
    this.#words = workspace.words;
  }

  at(partition: number): number {
    return this.address + partition * RECORD_BYTES;
  }
  /** Cursor of the stream of built or grouped rows. */
  cursor(partition: number): number {
    return this.at(partition) + CURSOR;
  }
  /** Cursor of the stream of raw or probe rows. */
  rawCursor(partition: number): number {
    return this.at(partition) + RAW_CURSOR;
  }

  /** Where raw rows go now, none of them yet. */
  setRawCursor(partition: number, address: number, bytes: number): void {
    this.#set(partition, RAW_CURSOR, address);
    this.#set(partition, RAW_CURSOR + 4, address + bytes);
    this.#set(partition, RAW_CURSOR + 8, 0);
  }

  rawRows(partition: number): number {
    return this.#get(partition, RAW_CURSOR + 8);
  }

  setState(partition: number, state: RecordState): void {
    this.#set(partition, STATE, state);
  }

  /** What kernels look up; null: no table. The number of rows in it is kept. */
  setTable(partition: number, table: HashTable | null): void {
    this.#set(partition, BUCKETS, table?.bucketsAt ?? 0);
    this.#set(partition, MASK, table === null ? 0 : table.bucketCount - 1);
    this.#set(partition, ROOM, table === null ? 0 : roomOf(table.bucketCount));
    this.#set(partition, LINKS, table?.linksAt ?? 0);
  }

  setNodes(partition: number, address: number, bytes: number): void {
    this.#set(partition, NODE, address);
    this.#set(partition, NODE_END, address + bytes);
  }

  filled(partition: number): number {
    return this.#get(partition, FILLED);
  }

  clear(partition: number): void {
    const at = this.at(partition) >>> 2;
    this.#words.fill(0, at, at + RECORD_BYTES / 4);
  }

  #get(partition: number, field: number): number {
    return this.#words[(this.at(partition) + field) >>> 2]!;
  }
  #set(partition: number, field: number, value: number): void {
    this.#words[(this.at(partition) + field) >>> 2] = value;
  }
}

export const levelSeed = (level: number): bigint => BigInt.asUintN(64, 0x5851f42d4c957f2dn * BigInt(level + 1));

/** Eight bytes with the hash seed of each level; unlike ones, so that a level splits what the one above left together. */
export function levelSeeds(workspace: Workspace): number {
  const address = workspace.take(MAX_PARTITION_DEPTH * 8);
  for (let level = 0; level < MAX_PARTITION_DEPTH; level++)
    putU64(workspace.words, address + 8 * level, levelSeed(level));
  return address;
}

/** The victim: most bytes, ties to the lowest index (O8, O18); -1 when there is none. */
export function largest(bytes: readonly number[]): number {
  let victim = -1;
  for (const [index, b] of bytes.entries()) if (b > (victim < 0 ? -1 : bytes[victim]!)) victim = index;
  return victim;
}
