/** Compares what test files take, in CPU seconds (null: all of it was skipped), with the rows of test/durations.json. */

/** Twice its row and five seconds more: a small file may double, a heavy one may not, and neither unseen. */
export function tooSlow(rows, measured) {
  return Object.entries(measured)
    .filter(
      ([file, seconds]) => rows[file] !== undefined && seconds !== null && seconds > 2 * rows[file] && seconds > rows[file] + 5,
    )
    .map(([file, seconds]) => ({
      file,
      line:
        `${file} takes ${seconds.toFixed(1)} CPU seconds; test/durations.json says ${rows[file]}. ` +
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

/** The table after a run of some files, or of all. Rows that are about right stay, so that a change shows what changed. */
export function updated(rows, measured, some) {
  const near = (row, seconds) => Math.abs(row - seconds) <= Math.max(1, 0.25 * row);
  const fresh = {};
  for (const [file, row] of Object.entries(rows)) if (some || measured[file] !== undefined) fresh[file] = row;
  for (const [file, seconds] of Object.entries(measured)) {
    if (rows[file] === undefined) fresh[file] = Number((seconds ?? 0).toFixed(1));
    else if (seconds !== null && !near(rows[file], seconds)) fresh[file] = Number(seconds.toFixed(1));
  }
  return Object.fromEntries(Object.entries(fresh).sort(([a], [b]) => (a < b ? -1 : 1)));
}
