import { readdirSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Test files that have a process of their own. All others share two, and with them what they import: starting a process and
 * importing the sources costs more than most files do.
 */
export const aloneFiles = [
  // Replace functions of the sources, arguments of V8, or a property of the process, and don't put them back.
  'planner/equal-answers',
  'planner/equal-at-size',
  'simulation/crash',
  'simulation/crash-even',
  'simulation/jobs-crash',
  'simulation/stored-crash',
  'simulation/stored-rounds',
  'doors/http/query',
  'doors/http/erasure',
  'log/append/group-commit',
  'cli',
  'chunks',
  // Compare two servers to the byte, or measure memory or turns of the event loop.
  'leaks/governed',
  'leaks/open',
  'hostile/hostile',
  'upkeep-thread',
  // So long that an import is nothing, and their functions run faster compiled for them alone.
  'model/model',
  'planner/passes/passes',
  'planner/sql-metamorphic',
  'planner/sqlite-differential',
  'simulation/tampering',
].map((name) => `test/${name}.test.ts`);

const root = join(import.meta.dirname, '../..');

export const sharedFiles = readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' })
  .map((name) => `test/${name}`)
  .filter((path) => path.endsWith('.test.ts') && !aloneFiles.includes(path));
