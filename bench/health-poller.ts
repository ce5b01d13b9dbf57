/**
 * Asks `/health` at a fixed pace from a process of its own, whether the last answer is there or not, for
 * `health.ts`: a question counts from when it was due. Arguments: port, milliseconds between questions.
 * On SIGTERM prints one line of JSON: {polls, failed, p50, p99, max, lateMs}; lateMs is the 99th percentile of how late this
 * process itself was to ask.
 */
import { Agent, get } from 'node:http';
import { quantile } from './report.ts';

const [port, everyMs] = process.argv.slice(2).map(Number) as [number, number];
const agent = new Agent({ keepAlive: true, maxSockets: 64 });
const times: number[] = [];
const late: number[] = [];
let failed = 0;
let open = 0;

const began = performance.now();
let asked = 0;
const timer = setInterval(() => {
  for (let due = began + asked * everyMs; due <= performance.now(); due = began + ++asked * everyMs) ask(due);
}, 1);

function ask(due: number): void {
  late.push(performance.now() - due);
  open++;
  const done = (healthy: boolean): void => {
    open--;
    times.push(performance.now() - due);
    if (!healthy) failed++;
  };
  const request = get({ port, host: '127.0.0.1', path: '/health', agent }, (response) => {
    response.resume();
    response.once('end', () => done(response.statusCode === 200));
  });
  request.once('error', () => done(false));
}

process.once('SIGTERM', () => {
  clearInterval(timer);
  const finish = setInterval(() => {
    if (open > 0) return;
    clearInterval(finish);
    times.sort((a, b) => a - b);
    late.sort((a, b) => a - b);
    const found = { polls: times.length, failed, p50: quantile(times, 0.5), p99: quantile(times, 0.99), max: times.at(-1)! };
    process.stdout.write(`${JSON.stringify({ ...found, lateMs: quantile(late, 0.99) })}\n`, () => process.exit(0));
  }, 5);
});
console.log('asking');
