/**
 * Asks `/health` every few milliseconds from a process of its own, over one connection, one question at a time; what it
 * measures is the server's, not that of whoever is busy with a big answer, and not that of a machine that gave its cores to others:
 * while the server's thread or this one was ready and got none, no time passes.
 */
import { Agent, get } from 'node:http';
import { threadOf } from './thread.ts';

/** Milliseconds of the slowest and the 99th percentile since the last report. */
export interface Polled {
  readonly polls: number;
  /** Answers that were not 200. */
  readonly failed: number;
  readonly worstMs: number;
  readonly p99Ms: number;
  /** The slowest by the clock on the wall. */
  readonly wallMs: number;
}

const [port, everyMs, server] = process.argv.slice(2).map(Number) as [number, number, number];
const agent = new Agent({ keepAlive: true, maxSockets: 1 });
let times: { readonly ms: number; readonly wallMs: number }[] = [];
let failed = 0;
let askedAt: Instant | null = null;

interface Instant {
  readonly wallMs: number;
  /** What this thread and the server's have waited for a core. */
  readonly readyMs: number;
}

function now(): Instant {
  return { wallMs: performance.now(), readyMs: threadOf(process.pid).readyMs + threadOf(server).readyMs };
}

function noteSince(from: Instant, to: Instant): void {
  const wallMs = to.wallMs - from.wallMs;
  times.push({ ms: Math.max(0, wallMs - (to.readyMs - from.readyMs)), wallMs });
}

function poll(): void {
  askedAt = now();
  const request = get({ port, host: '127.0.0.1', path: '/health', agent }, (response) => {
    response.resume();
    response.on('end', () => done(response.statusCode === 200));
  });
  request.on('error', () => done(false));
}

function done(healthy: boolean): void {
  noteSince(askedAt!, now());
  if (!healthy) failed++;
  askedAt = null;
  setTimeout(poll, everyMs);
}

process.once('disconnect', () => process.exit(0));
process.on('message', () => {
  // A question that waits for its answer has waited at least this long; what it waits from here on is of the next report.
  if (askedAt !== null) {
    const here = now();
    noteSince(askedAt, here);
    askedAt = here;
  }
  const sorted = times.map(({ ms }) => ms).toSorted((a, b) => a - b);
  const report: Polled = {
    polls: sorted.length,
    failed,
    worstMs: sorted.at(-1) ?? 0,
    p99Ms: sorted[Math.floor(sorted.length * 0.99)] ?? 0,
    wallMs: Math.max(0, ...times.map(({ wallMs }) => wallMs)),
  };
  times = [];
  failed = 0;
  process.send!(report);
});

poll();
process.send!('polling');
