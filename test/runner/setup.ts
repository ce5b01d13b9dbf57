/** Runs before every test file: measures what it takes, and passes on what it tells. */
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

// Vitest wants a pattern, and there is nothing in it.
// oxlint-disable-next-line no-empty-pattern
afterAll(({}, { file }) => {
  const total = cpuSeconds();
  file.meta.cpuSeconds = total - (measured.cpuSecondsBefore ?? 0);
  measured.cpuSecondsBefore = total;
  if (told.length > 0) file.meta.told = told.splice(0);
});
