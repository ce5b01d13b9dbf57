/**
 * Compares what test files take, in CPU seconds (null: all of it was skipped), with the rows of test/durations.json.
 *
 * Machines, and one machine at different times, differ by more than a mistake costs. So a row is not a time but a share: what a file
 * takes is compared with its row times the pace of the run, which is what its other files take in all, by what their rows say.
 */

/** Run beside a few files that are measured, to tell the pace: steady ones, of servers, logs and computing alike. */
export const paceFiles = [
  'test/backup-digests.test.ts',
  'test/governance/erasure/resume.test.ts',
  'test/planner/executor/kernels.test.ts',
  'test/projections/zones.test.ts',
];

/** Of all files but those that are asked about: 2 where they take twice what their rows say. */
export function paceOf(rows, measured, besides = []) {
  let [taken, expected] = [0, 0];
  for (const [file, seconds] of Object.entries(measured)) {
    if (seconds === null || !rows[file] || besides.includes(file)) continue;
    taken += seconds;
    expected += rows[file];
  }
  return expected > 0 ? taken / expected : 1;
}

/** Twice its row and five seconds more: a small file may double, a heavy one may not, and neither unseen. */
export function tooSlow(rows, measured, pace) {
  return Object.entries(measured)
    .filter(([file, seconds]) => {
      const row = rows[file] * pace;
      return rows[file] !== undefined && seconds !== null && seconds > 2 * row && seconds > row + 5;
    })
    .map(([file, seconds]) => ({
      file,
      line:
        `${file} takes ${seconds.toFixed(1)} CPU seconds; test/durations.json says ${rows[file]}, ` +
        `${(rows[file] * pace).toFixed(1)} at the pace of this run. ` +
        `Make it cheaper, or take the new figure: npm test -- --update-durations ${file}`,
    }));
}

/** Test files that the table does not know, and rows of files that are gone. */
export function withoutRow(rows, files) {
  const added = files.filter((file) => rows[file] === undefined);
  const gone = Object.keys(rows).filter((file) => !files.includes(file));
  return [
    ...added.map((file) => `${file} has no row in test/durations.json. Add it: npm test -- --update-durations ${file}`),
    ...gone.map((file) => `test/durations.json has a row of ${file}, which is gone: remove the row`),
  ];
}

export function slowest(measured, count) {
  return Object.entries(measured)
    .filter(([, seconds]) => seconds !== null)
    .sort(([, a], [, b]) => b - a)
    .slice(0, count)
    .map(([file, seconds]) => `${seconds.toFixed(1).padStart(7)}  ${file}`);
}

/**
 * The table after a run of all files, or of some at this pace. Rows that are about right stay, so that a change shows what changed.
 */
export function updated(rows, measured, some, pace) {
  const near = (row, seconds) => Math.abs(row - seconds) <= Math.max(1, 0.25 * row);
  const fresh = {};
  for (const [file, row] of Object.entries(rows)) if (some || measured[file] !== undefined) fresh[file] = row;
  for (const [file, taken] of Object.entries(measured)) {
    const seconds = taken === null ? null : taken / pace;
    if (rows[file] === undefined) fresh[file] = Number((seconds ?? 0).toFixed(1));
    else if (seconds !== null && !near(rows[file], seconds)) fresh[file] = Number(seconds.toFixed(1));
  }
  return Object.fromEntries(Object.entries(fresh).sort(([a], [b]) => (a < b ? -1 : 1)));
}
