/** What the model believes of a store, and how answers of the real one are held to it. */
import assert from 'node:assert/strict';
import type fc from 'fast-check';
import type { Outcome } from '../../src/projections/command.ts';
import { type Bitemporal, FOREVER, type ModelCell, type Sent, tenantOf, type Version } from './bitemporal.ts';
import type { Branched, Refusal } from './branched.ts';
import type { SubjectBelief, Subjects } from './erasures.ts';
import { edgeType, type RealRow, type RealStore, type as factType, type Step, type Write } from './store.ts';

/** A backup, and what was believed when it was taken. */
export interface Saved {
  readonly backup: string;
  readonly model: Branched;
  readonly subjects: Subjects;
  readonly last: bigint;
  /** Who was erased since. */
  readonly erased: { readonly tenant: string | null; readonly subject: string }[];
}

/** The model may be replaced by what a crash turned out to have left, or by that of a backup. */
export interface Believed {
  model: Branched;
  subjects: Subjects;
  /** Last nanosecond at which a write was placed. */
  last: bigint;
  saved: Saved | null;
  /** Whether facts have edges. */
  readonly hasEdges: boolean;
  /** Ids of schedules and holds, in force or not. */
  readonly ids: string[];
  /** How often each command was done, and each thing came of one. */
  readonly ran: Record<string, number>;
  readonly came: Record<string, number>;
}

export type Command = fc.AsyncCommand<Believed, RealStore>;

export function believing(model: Branched, subjects: Subjects, hasEdges = false): Believed {
  return { model, subjects, hasEdges, last: 0n, saved: null, ids: [], ran: {}, came: {} };
}

export function count(counts: Record<string, number>, what: string): void {
  counts[what] = (counts[what] ?? 0) + 1;
}

// Small domains on purpose, so that commands meet: few keys, few paths of which two are prefixes as text, few subjects.
export const keys = ['a', 'b', 'ab', '%'];
export const paths = [null, 'acme', 'acme-evil', 'acme/eu'];
export const subjects = ['ann', 'bob'];

export const columns = '_pk, valid_from, valid_to, system_from, system_to, namespace_path, name, n, x, who';

export async function compareEverything(believed: Believed, real: RealStore): Promise<void> {
  await compareEdges(believed, real);
  for (const branch of believed.model.names()) {
    for (const path of paths) await compare(believed, real, branch, path, '', { system: 'all', valid: 'all' });
  }
}

export async function compare(
  believed: Believed,
  real: RealStore,
  branch: string,
  path: string | null,
  clause: string,
  times: Parameters<Bitemporal['read']>[1],
): Promise<void> {
  const { rows } = await real.query(path, `SELECT ${columns} FROM ${factType} ${clause}`, branch);
  assert.deepEqual(rows, believed.model.on(branch).read(path, times).map(asRow), `${branch} ${path} ${clause}`);
}

export function nameOf(believed: Believed, branch: number): string {
  const names = believed.model.names();
  return names[branch % names.length]!;
}

/** Tells the model what was acknowledged, and holds the reply to what the model makes of it. */
export function apply(believed: Believed, write: Write, outcome: Outcome, clock: bigint): void {
  // A write that changed nothing has no place; what refused its rows was the clock, or a later instant that was given out.
  const now = clock > believed.last ? clock : believed.last + 1n;
  const times = outcome.steps?.map(({ systemFrom }) => systemFrom);
  const refused = place(believed, write, outcome.changed ? outcome.systemFrom : now, times);
  assert.deepEqual(
    outcome.errors.map(({ index, code, detail }) => ({ index, holds: code === 'REL_CONFLICT' ? holdsTold(detail) : [] })),
    refused,
    'refused rows',
  );
  if (refused.some(({ holds }) => holds.length > 0)) count(believed.came, 'removal refused by a hold');
  if (!outcome.changed) return;
  assert.ok(outcome.systemFrom > believed.last, 'system time rises');
  believed.last = outcome.systemFromLast;
}

/** `times`: of each step of a batch that was written. */
export function place(believed: Believed, write: Write, time: bigint, times: readonly bigint[] = []): Refusal[] {
  const branch = nameOf(believed, write.branch);
  const refusals = (indexes: readonly number[]): Refusal[] => indexes.map((index) => ({ index, holds: [] }));
  if (write.kind === 'batch') return placeBatch(believed, write, time, times);
  if (write.kind === 'put') {
    const refused = believed.model.on(branch).put(write.path, write.rows, time, write.how);
    const written = write.rows.filter((_, index) => !refused.includes(index));
    for (const belief of beliefsOf(believed, write.path, written)) belief.written = true;
    return refusals(refused);
  }
  if (write.kind === 'delete') return refusals(believed.model.on(branch).delete(write.path, write.keys, time));
  return believed.model.remove(branch, write.path, write.keys);
}

/** All of its steps, or the first refusal, under which nothing was written. */
function placeBatch(
  believed: Believed,
  { branch: number, path, steps }: Extract<Write, { kind: 'batch' }>,
  time: bigint,
  times: readonly bigint[],
): Refusal[] {
  const branch = nameOf(believed, number);
  const of = keysOf(steps);
  const refused = (trial: Bitemporal): boolean =>
    steps.some((step, i) => placeStep(trial, path, step, times[i] ?? time).length > 0);
  if (new Set(of).size < of.length || refused(believed.model.on(branch).copy())) {
    count(believed.came, 'batch refused');
    return [{ index: -1, holds: [] }];
  }
  count(believed.came, 'batch written');
  steps.forEach((step, i) => {
    placeStep(believed.model.on(branch), path, step, times[i] ?? time);
    if (step.kind === 'put') for (const belief of beliefsOf(believed, path, step.rows)) belief.written = true;
  });
  return [];
}

/** Of all steps: those that one of them names several times once. */
function keysOf(steps: readonly Step[]): string[] {
  return steps.flatMap((step) => [...new Set(step.kind === 'put' ? step.rows.map(({ key }) => key) : step.keys)]);
}

export function placeStep(model: Bitemporal, path: string | null, step: Step, time: bigint): number[] {
  return step.kind === 'put' ? model.put(path, step.rows, time, step.how) : model.delete(path, step.keys, time);
}

/** Edges that rows have whose type names their ends, each with the version that it is of. */
export async function compareEdges(believed: Believed, real: RealStore): Promise<void> {
  if (!believed.hasEdges) return;
  for (const branch of believed.model.names()) {
    // A path shows what lies below it.
    for (const path of [null, 'acme', 'acme-evil']) {
      const sql = `SELECT from_id, to_id, derived_from, valid_from, valid_to FROM ${edgeType} WHERE system_to = ${FOREVER} AND valid_from < valid_to`;
      const { rows } = await real.query(path, sql, branch);
      const open = believed.model.on(branch).read(path, { system: 'all', valid: 'all' });
      const expected = open
        .filter(({ systemTo, validFrom, validTo }) => systemTo === FOREVER && validFrom < validTo)
        .flatMap(edgesOf);
      const inOrder = (edges: readonly RealRow[]): string[] => edges.map(shown).toSorted();
      assert.deepEqual(inOrder(rows), inOrder(expected), `edges on ${branch} of ${path}`);
    }
  }
}

function edgesOf({ key, cells, systemFrom, validFrom, validTo }: Version): RealRow[] {
  const ends: (readonly [ModelCell, ModelCell])[] = [
    [cells['name'] ?? null, cells['who'] ?? null],
    [cells['n'] ?? null, key],
  ];
  const derived = systemFrom.toString(16).padStart(16, '0');
  return ends
    .filter(([from, to]) => from !== null && from !== '' && to !== null && to !== '')
    .map(([from, to]) => ({
      from_id: String(from),
      to_id: String(to),
      derived_from: derived,
      valid_from: validFrom,
      valid_to: validTo,
    }));
}

/** Of whom rows are. */
export function beliefsOf({ model, subjects: known }: Believed, path: string | null, rows: readonly Sent[]): SubjectBelief[] {
  if (!model.hasSubjects) return [];
  return rows.flatMap(({ cells: { who } }) => (typeof who === 'string' ? [known.of(tenantOf(path), who)] : []));
}

export function asRow(version: Version): RealRow {
  const { key, path, validFrom, validTo, systemFrom, systemTo, cells } = version;
  return {
    _pk: key,
    valid_from: validFrom,
    valid_to: validTo,
    system_from: systemFrom,
    system_to: systemTo,
    namespace_path: path,
    name: cells['name'] ?? null,
    n: cells['n'] ?? null,
    x: (cells['x'] ?? null) as ModelCell,
    who: cells['who'] ?? null,
  };
}

export function shown(asked: object): string {
  return JSON.stringify(asked, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value));
}

/** Ids of holds that a refusal names, in order. */
export function holdsTold(text: string): string[] {
  return text.match(/\bk\d{4}\b/g) ?? [];
}

export function repeat<T>(times: number, item: T): T[] {
  return Array.from({ length: times }, () => item);
}
