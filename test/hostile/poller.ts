/**
 * Asks `/health` every few milliseconds from a process of its own, over one connection, one question at a time; what it
 * measures is the server's, not that of whoever is busy with a big answer.
 */
import { Agent, get } from 'node:http';

/** Milliseconds of the slowest and the 99th percentile since the last report. */
export interface Polled {
  readonly polls: number;
  /** Answers that were not 200. */
  readonly failed: number;
  readonly worstMs: number;
  readonly p99Ms: number;
}

const [port, everyMs] = process.argv.slice(2).map(Number) as [number, number];
const agent = new Agent({ keepAlive: true, maxSockets: 1 });
let times: number[] = [];
let failed = 0;
let askedAt: number | null = null;

function poll(): void {
  askedAt = performance.now();
  const request = get({ port, host: '127.0.0.1', path: '/health', agent }, (response) => {
    response.resume();
    response.on('end', () => done(response.statusCode === 200));
  });
  request.on('error', () => done(false));
}

function done(healthy: boolean): void {
  times.push(performance.now() - askedAt!);
  if (!healthy) failed++;
  askedAt = null;
  setTimeout(poll, everyMs);
}

process.once('disconnect', () => process.exit(0));
process.on('message', () => {
  // A question that waits for its answer has waited at least this long; what it waits from here on is of the next report.
  const now = performance.now();
  if (askedAt !== null) {
    times.push(now - askedAt);
    askedAt = now;
  }
  const sorted = times.toSorted((a, b) => a - b);
  const report: Polled = {
    polls: sorted.length,
    failed,
    worstMs: sorted.at(-1) ?? 0,
    p99Ms: sorted[Math.floor(sorted.length * 0.99)] ?? 0,
  };
  times = [];
  failed = 0;
  process.send!(report);
});

poll();
process.send!('polling');
