/** What the model believes of a store, and how answers of the real one are held to it. */
import assert from 'node:assert/strict';
import type fc from 'fast-check';
import type { Outcome } from '../../src/projections/command.ts';
import { type Bitemporal, type ModelCell, type Sent, tenantOf, type Version } from './bitemporal.ts';
import type { Branched, Refusal } from './branched.ts';
import type { SubjectBelief, Subjects } from './erasures.ts';
import { type RealRow, type RealStore, type as factType, type Write } from './store.ts';

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
  /** Ids of schedules and holds, in force or not. */
  readonly ids: string[];
  /** How often each command was done, and each thing came of one. */
  readonly ran: Record<string, number>;
  readonly came: Record<string, number>;
}

export type Command = fc.AsyncCommand<Believed, RealStore>;

export function believing(model: Branched, subjects: Subjects): Believed {
  return { model, subjects, last: 0n, saved: null, ids: [], ran: {}, came: {} };
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
  const refused = place(believed, write, outcome.changed ? outcome.systemFrom : now);
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

export function place(believed: Believed, write: Write, time: bigint): Refusal[] {
  const branch = nameOf(believed, write.branch);
  const refusals = (indexes: readonly number[]): Refusal[] => indexes.map((index) => ({ index, holds: [] }));
  if (write.kind === 'put') {
    const refused = believed.model.on(branch).put(write.path, write.rows, time);
    const written = write.rows.filter((_, index) => !refused.includes(index));
    for (const belief of beliefsOf(believed, write.path, written)) belief.written = true;
    return refusals(refused);
  }
  if (write.kind === 'delete') return refusals(believed.model.on(branch).delete(write.path, write.keys, time));
  return believed.model.remove(branch, write.path, write.keys);
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
