/** Runs before every test file: measures what it takes, passes on what it tells, and sees what it leaves to the next one. */
import { afterAll } from 'vitest';
import { cpuSeconds } from '../../scripts/cpu.mjs';
import { told } from './tell.ts';

declare module 'vitest' {
  interface TaskMeta {
    cpuSeconds?: number;
    told?: string[];
  }
}

/** Files that share a process share what came before them too. */
const measured = globalThis as { cpuSecondsBefore?: number };
const before = processState();

// Vitest wants a pattern, and there is nothing in it.
// oxlint-disable-next-line no-empty-pattern
afterAll(({}, { file }) => {
  const total = cpuSeconds();
  file.meta.cpuSeconds = total - (measured.cpuSecondsBefore ?? 0);
  measured.cpuSecondsBefore = total;
  if (told.length > 0) file.meta.told = told.splice(0);
  if (file.projectName !== 'shared') return;
  const after = processState();
  for (const [what, was] of Object.entries(before)) {
    if (after[what] !== was) throw new Error(`this file leaves ${what} changed to the next: ${was} became ${after[what]}`);
  }
});

/** What a test file may change, and the next one in its process would find. */
function processState(): Record<string, string> {
  return {
    'the environment': JSON.stringify(Object.entries(process.env).toSorted(([a], [b]) => (a < b ? -1 : 1))),
    'the working directory': process.cwd(),
    'signal listeners': String(process.listenerCount('SIGTERM') + process.listenerCount('SIGINT')),
  };
}
