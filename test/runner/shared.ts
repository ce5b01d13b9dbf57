import { readdirSync } from 'node:fs';
import { join } from 'node:path';

/** Test files that share a process, and with it what they import: starting one and importing the sources costs half a second. */
const folders = [
  'governance/cedar',
  'log',
  'planner/executor',
  'planner/expressions',
  'planner/formats',
  'planner/kernels',
  'planner/languages',
  'projections',
];

/** Of these folders, what opens a service, starts processes or threads, reads the environment or changes what others see. */
export const aloneFiles = [
  'log/backup-copy',
  'log/bulk-sealer',
  'log/disks',
  'log/group-commit',
  'log/open-trace',
  'log/proofs',
  'log/subject-log',
  'log/tree-store',
  'log/workers',
  'planner/executor/answers',
  'planner/executor/kernels',
  'planner/executor/long-texts',
  'planner/formats/csv-rows',
  'planner/formats/parquet-rows',
  'projections/contract',
  'projections/erasure',
  'projections/replayed-bodies',
  'projections/restart',
  'projections/table-digest',
].map((name) => `test/${name}.test.ts`);

const root = join(import.meta.dirname, '../..');

export const sharedFiles = folders
  .flatMap((folder) =>
    readdirSync(join(root, 'test', folder), { recursive: true, encoding: 'utf8' }).map((name) => `test/${folder}/${name}`),
  )
  .filter((path) => path.endsWith('.test.ts') && !aloneFiles.includes(path));
