/**
 * Threads of the sources start from the bundle in dist, where it was made of these sources: through the loader each thread would
 * compile anew what it imports, which takes more than most of them do. A bundle that is older than a source is left alone.
 */
import { existsSync, readdirSync, statSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import threads, { type WorkerOptions } from 'node:worker_threads';

const root = join(import.meta.dirname, '../..');
const sources = `${pathToFileURL(join(root, 'src')).href}/`;
const stamp = join(root, 'dist/.bundled');
const { Worker: Thread } = threads;
/** It is told by messages which sources it is to load. */
const loadsSources = `${sources}log/threads/stepping-job.ts`;
let current: boolean | null = null;

class BundledThread extends Thread {
  constructor(start: string | URL, options: WorkerOptions = {}) {
    super(...(startOf(start, options) ?? [start, options]));
  }
}

/** Of every process once. */
export function startThreadsFromBundle(): void {
  if (threads.Worker.name === BundledThread.name) return;
  threads.Worker = BundledThread;
  syncBuiltinESMExports();
}

/** Null for what is no source, or a job that the bundle has not. */
function startOf(start: string | URL, options: WorkerOptions): [URL, WorkerOptions] | null {
  if (options.eval !== true || typeof start !== 'string') return null;
  const file = bundled(/import\("(file:[^"]+\.ts)"\)/.exec(start)?.[1]);
  const data = options.workerData as { readonly module?: string } | null;
  const module = data?.module === undefined ? null : bundled(data.module);
  if (file === null || (data?.module !== undefined && module === null) || !isCurrent()) return null;
  return [file, { ...options, eval: false, workerData: module === null ? data : { ...data, module: module.href } }];
}

function bundled(source: string | undefined): URL | null {
  if (source?.startsWith(sources) !== true || source === loadsSources) return null;
  const path = join(root, 'dist', `${source.slice(sources.length, -3).replaceAll('/', '.')}.js`);
  return existsSync(path) ? pathToFileURL(path) : null;
}

function isCurrent(): boolean {
  current ??= existsSync(stamp) && newest(join(root, 'src')) <= statSync(stamp).mtimeMs;
  return current;
}

function newest(directory: string): number {
  const times = readdirSync(directory, { withFileTypes: true }).map((entry) => {
    const path = join(directory, entry.name);
    return entry.isDirectory() ? newest(path) : statSync(path).mtimeMs;
  });
  return Math.max(0, ...times);
}
