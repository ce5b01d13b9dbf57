/** A temporary folder for the tests of one run, gone with it. What they leave there fails the run: it would fill the system's. */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * Kept by tools that tests start, and used by the next of them; and what files of one process share until it ends, which
 * may be by a signal. They go with the folder.
 */
const caches = /^(tsx|node-compile-cache|v8-compile-cache|annals-shared-)/;

export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'annals-tests-'));
  process.once('exit', () => {
    const left = readdirSync(folder).filter((name) => !caches.test(name));
    rmSync(folder, { recursive: true, force: true });
    if (left.length === 0) return;
    console.error(`tests left in the temporary folder: ${left.join(', ')}`);
    process.exitCode = 1;
  });
  return folder;
}
