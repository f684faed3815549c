/**
 * What people build when they need admission across processes: a Redis server and a Lua script that checks a
 * pool and admits, queues or rejects (DESIGN 6). One server of our own on a socket, gone afterwards.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";

/** Running count, pool memory, queue length: a small part of the rules, atomically. */
const ADMIT = `
local pool = redis.call('HMGET', KEYS[1], 'running', 'mem', 'queued')
local running, mem, queued = tonumber(pool[1]) or 0, tonumber(pool[2]) or 0, tonumber(pool[3]) or 0
local need, maxRunning, maxMem, maxQueued = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
if queued >= maxQueued then return 2 end
if queued > 0 or running >= maxRunning or mem + need > maxMem then
  redis.call('HINCRBY', KEYS[1], 'queued', 1)
  redis.call('RPUSH', KEYS[2], ARGV[1])
  return 1
end
redis.call('HSET', KEYS[1], 'running', running + 1, 'mem', mem + need)
return 0`;

const RELEASE = `
redis.call('HINCRBY', KEYS[1], 'running', -1)
redis.call('HINCRBY', KEYS[1], 'mem', -tonumber(ARGV[1]))
return 0`;

export interface RedisCost {
  /** Nanoseconds of one admit + release, waiting for each answer, and with a thousand under way. */
  readonly oneByOneNs: number;
  readonly pipelinedNs: number;
}

const KEYS = ["pool:root.dashboards", "queue:root.dashboards"] as const;
const NEED = 16_106_127_360;
const LIMITS = ["20", "500000000000", "50"] as const;
const PIPELINE = 1000;

export interface RedisRun {
  /** For each of the two ways, over all rounds. */
  readonly seconds: number;
  readonly rounds: number;
}

/** The cost, or why there is none. */
export async function redisRival(given: RedisRun): Promise<RedisCost | string> {
  if (spawnSync("redis-server", ["--version"]).error !== undefined) return "skipped: no redis-server";
  const dir = mkdtempSync(join(tmpdir(), "decision-"));
  const path = join(dir, "redis.sock");
  const server = spawn("redis-server", ["--port", "0", "--unixsocket", path, "--save", "", "--dir", dir], {
    stdio: "ignore",
  });
  try {
    return await measure(path, given);
  } finally {
    await stopped(server);
    rmSync(dir, { recursive: true, force: true });
  }
}

async function measure(path: string, { seconds, rounds }: RedisRun): Promise<RedisCost> {
  const redis = new Redis({ path, retryStrategy: () => 50 });
  redis.on("error", () => undefined); // until the server listens
  try {
    const [admit, release] = await Promise.all([redis.script("LOAD", ADMIT), redis.script("LOAD", RELEASE)]);
    const scripts = { admit: String(admit), release: String(release) };
    let [oneByOneNs, pipelinedNs] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
    for (let round = 0; round < rounds; round++) {
      oneByOneNs = Math.min(oneByOneNs, await timed(seconds / rounds, 1, () => onePair(redis, scripts)));
      pipelinedNs = Math.min(pipelinedNs, await timed(seconds / rounds, PIPELINE, () => pipelined(redis, scripts)));
    }
    return { oneByOneNs, pipelinedNs };
  } finally {
    redis.disconnect();
  }
}

interface Scripts {
  readonly admit: string;
  readonly release: string;
}

async function onePair(redis: Redis, scripts: Scripts): Promise<void> {
  const answer = await redis.evalsha(scripts.admit, 2, ...KEYS, "q", NEED, ...LIMITS);
  if (answer !== 0) throw new Error(`the rival's pool should have room, it said ${String(answer)}`);
  await redis.evalsha(scripts.release, 1, KEYS[0], NEED);
}

async function pipelined(redis: Redis, scripts: Scripts): Promise<void> {
  const pipeline = redis.pipeline();
  for (let i = 0; i < PIPELINE; i++) {
    pipeline.evalsha(scripts.admit, 2, ...KEYS, "q", NEED, ...LIMITS);
    pipeline.evalsha(scripts.release, 1, KEYS[0], NEED);
  }
  const answers = await pipeline.exec();
  if (answers?.some(([error]) => error !== null)) throw new Error("the rival failed");
}

/** Nanoseconds per pair, after a first call that doesn't count. */
async function timed(seconds: number, pairs: number, call: () => Promise<void>): Promise<number> {
  await call();
  const start = performance.now();
  let calls = 0;
  while (performance.now() - start < seconds * 1000) {
    await call();
    calls++;
  }
  return ((performance.now() - start) * 1e6) / (calls * pairs);
}

async function stopped(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null) return;
  const over = new Promise((done) => server.once("exit", done));
  server.kill("SIGTERM");
  await over;
}
