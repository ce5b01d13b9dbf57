/**
 * What test files took in the last `npm test`, in CPU seconds, beside the rows of test/durations.json. No check reads these figures.
 *
 *   npm run durations                 prints the ten files that grew most
 *   npm run durations -- --update     writes the figures of the last run to test/durations.json
 *
 * Machines, and one machine at different times, differ by more than a mistake costs. So a row counts times the pace of the run: the
 * sum of what all files took, divided by the sum of their rows.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const table = join(root, 'test/durations.json');

/** CPU seconds by file, written by `npm test`; null for a file whose tests were all skipped. */
export const lastRun = join(root, 'dist/durations.json');

/** 2 where the files take twice what their rows say. */
export function paceOf(rows, measured) {
  let [taken, expected] = [0, 0];
  for (const [file, seconds] of Object.entries(measured)) {
    if (seconds === null || !rows[file]) continue;
    taken += seconds;
    expected += rows[file];
  }
  return expected > 0 ? taken / expected : 1;
}

export function slowest(measured, count) {
  return Object.entries(measured)
    .filter(([, seconds]) => seconds !== null)
    .sort(([, a], [, b]) => b - a)
    .slice(0, count)
    .map(([file, seconds]) => `${seconds.toFixed(1).padStart(7)}  ${file}`);
}

/** Files by how many CPU seconds they took beyond their rows at the pace of the run; a file without a row is new. */
export function grown(rows, measured, count) {
  const pace = paceOf(rows, measured);
  return Object.entries(measured)
    .filter(([, seconds]) => seconds !== null)
    .map(([file, seconds]) => ({ file, seconds, row: (rows[file] ?? 0) * pace, isNew: rows[file] === undefined }))
    .filter(({ seconds, row }) => seconds > row)
    .sort((a, b) => b.seconds - b.row - (a.seconds - a.row))
    .slice(0, count)
    .map(
      ({ file, seconds, row, isNew }) =>
        `${seconds.toFixed(1).padStart(7)}  ${file}, ${isNew ? 'a new file' : `${row.toFixed(1)} by its row`}`,
    );
}

/** The table after a run. Rows that are about right stay, so that a change shows what changed. */
export function updated(rows, measured) {
  const pace = paceOf(rows, measured);
  const near = (row, seconds) => Math.abs(row - seconds) <= Math.max(1, 0.25 * row);
  const fresh = {};
  for (const [file, taken] of Object.entries(measured)) {
    const row = rows[file];
    const seconds = taken === null ? (row ?? 0) : taken / pace;
    fresh[file] = row !== undefined && near(row, seconds) ? row : Number(seconds.toFixed(1));
  }
  return Object.fromEntries(Object.entries(fresh).sort(([a], [b]) => (a < b ? -1 : 1)));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  if (!existsSync(lastRun)) {
    console.error('npm test has not run in this tree yet');
    process.exit(1);
  }
  const [rows, measured] = [table, lastRun].map((file) => JSON.parse(readFileSync(file, 'utf8')));
  if (process.argv[2] === '--update') writeFileSync(table, `${JSON.stringify(updated(rows, measured), null, 2)}\n`);
  else {
    console.log(`pace: ${paceOf(rows, measured).toFixed(2)} times the rows of test/durations.json\ngrown most, in CPU seconds:`);
    console.log(grown(rows, measured, 10).join('\n'));
  }
}
