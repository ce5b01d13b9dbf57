/** Child processes of a bench: started pinned to a core, stopped by their own id, never left behind. */
import { type ChildProcess, type SpawnOptions, spawn, spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { availableParallelism, cpus } from 'node:os';
import { fileURLToPath } from 'node:url';

/** The measured product has one core and the load the other, where there are two and `taskset` can say so. */
const canPin = availableParallelism() > 1 && spawnSync('taskset', ['-p', String(process.pid)]).status === 0;
export const serverCore = canPin ? '1' : null;
export const clientCore = canPin ? '0' : null;
/** All of them, for whoever wants to be measured with all. */
export const everyCore = canPin ? `0-${cpus().length - 1}` : null;

const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1));

/** A program of this directory in a process of its own, over the built product. */
export function program(file: string, ...args: readonly string[]): string[] {
  const path = (relative: string): string => fileURLToPath(new URL(relative, import.meta.url));
  return ['--import', 'tsx', '--import', path('../scripts/built.mjs'), path(file), ...args];
}

export function pinned(core: string | null, command: readonly string[]): string[] {
  return core === null ? [...command] : ['taskset', '-c', core, ...command];
}

/** Moves a running process, its threads and its children to other cores; what they start later stays there too. */
export function confine(pid: number, cores: string | null): void {
  if (cores === null) return;
  spawnSync('taskset', ['-a', '-c', '-p', cores, String(pid)]);
  for (const child of childrenOf(pid)) confine(child, cores);
}

function childrenOf(pid: number): number[] {
  const tasks = `/proc/${pid}/task`;
  if (!existsSync(tasks)) return [];
  return readdirSync(tasks).flatMap((task) => {
    const text = readFileSync(`${tasks}/${task}/children`, 'utf8').trim();
    return text === '' ? [] : text.split(' ').map(Number);
  });
}

/** Seconds of CPU that a process, its threads and its children that ended have taken. */
export function cpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  // utime, stime and the same of children waited for, in hundredths: fields 14 to 17 of proc(5).
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / 100;
}

/** Of the children of this process that ended. */
export function childrenCpuSeconds(): number {
  return cpuSeconds(process.pid) - process.cpuUsage().user / 1e6 - process.cpuUsage().system / 1e6;
}

/** Memory of a process in MB: now, and at most so far. */
export function residentMb(pid: number): { now: number; peak: number } {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const kilobytes = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)![1]);
  return { now: (kilobytes('VmRSS') * 1024) / 1e6, peak: (kilobytes('VmHWM') * 1024) / 1e6 };
}

export function start(command: readonly string[], options: SpawnOptions = {}): ChildProcess {
  const child = spawn(command[0]!, command.slice(1), { stdio: ['ignore', 'pipe', 'pipe'], ...options });
  running.add(child);
  child.once('exit', () => running.delete(child));
  return child;
}

export interface Ran {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly seconds: number;
}

export async function run(command: readonly string[], options: SpawnOptions & { input?: Buffer } = {}): Promise<Ran> {
  const { input, ...spawnOptions } = options;
  const began = performance.now();
  const child = start(command, { ...spawnOptions, stdio: [input ? 'pipe' : 'ignore', 'pipe', 'pipe'] });
  const out: Buffer[] = [];
  const err: Buffer[] = [];
  child.stdout!.on('data', (bytes: Buffer) => out.push(bytes));
  child.stderr!.on('data', (bytes: Buffer) => err.push(bytes));
  child.stdin?.on('error', () => undefined);
  if (input) child.stdin!.end(input);
  const status = await exited(child);
  return {
    status,
    stdout: Buffer.concat(out).toString(),
    stderr: Buffer.concat(err).toString(),
    seconds: (performance.now() - began) / 1000,
  };
}

export async function mustRun(command: readonly string[], options: SpawnOptions & { input?: Buffer } = {}): Promise<Ran> {
  const ran = await run(command, options);
  if (ran.status !== 0) throw new Error(`${command.join(' ').slice(0, 200)}: exit ${ran.status}\n${ran.stderr.slice(0, 2000)}`);
  return ran;
}

export async function stop(child: ChildProcess, signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill(signal);
  await exited(child);
}

function exited(child: ChildProcess): Promise<number | null> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve(child.exitCode);
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
}
