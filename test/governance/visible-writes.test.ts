/** Who is told that rows became visible, and when. */
import { describe, expect, test } from 'vitest';
import { sees } from '../../src/governance/caller.ts';
import type { WriteScope } from '../../src/governance/gate-contract.ts';
import type { EntryDraft } from '../../src/log/entries/entry.ts';
import type { Appended } from '../../src/log/log-store.ts';
import { WriteNotices } from '../../src/governance/writing/write-notices.ts';

function draft(type: string, path: string | null, branch = 'main', kind: 'rows' | 'removal' | 'type' = 'rows'): EntryDraft {
  const tenant = path?.split('/')[0] ?? null;
  const context = { branch, tenant, path, principal: '', door: '', purpose: null, correlationId: '', policyDigest: '' };
  const body = kind === 'type' ? { kind, definition: { name: type } } : { kind, type };
  return { context, body } as unknown as EntryDraft;
}

/** The store has a branch `dev`, and so has the tenant globex. */
const idOf = (branch: string, tenant: string | null): number => (branch === 'main' ? 0 : tenant === 'globex' ? 2 : 1);

const after = (acknowledged: Promise<unknown>): Appended =>
  ({ entries: [], acknowledged, written: Promise.resolve() }) as unknown as Appended;

async function told(
  drafts: readonly EntryDraft[],
  scope: { type?: string; path?: string | null; branch?: string; tenant?: string; shows?: WriteScope['shows'] } = {},
): Promise<number> {
  const tasks: (() => void)[] = [];
  const writes = new WriteNotices((task) => tasks.push(task), idOf);
  let calls = 0;
  const { path = 'acme', ...rest } = scope;
  writes.listen(
    { branch: 'main', tenant: path?.split('/')[0] ?? null, type: 'T', shows: (row) => sees(path, row), ...rest },
    () => calls++,
  );
  writes.onPlaced(drafts, after(Promise.resolve('synced')));
  await Promise.resolve();
  await Promise.resolve();
  for (const task of tasks.splice(0)) task();
  return calls;
}

describe('a listener is told', () => {
  test.each<[string, EntryDraft, number]>([
    ['its own path', draft('T', 'acme'), 1],
    ['a path below', draft('T', 'acme/eu'), 1],
    ['a removal', draft('T', 'acme', 'main', 'removal'), 1],
    ['a removal on another branch, which may have been its source', draft('T', 'acme', 'dev', 'removal'), 1],
    ['a removal of another type', draft('U', 'acme', 'main', 'removal'), 0],
    ['the path above', draft('T', null), 0],
    ['a sibling that starts alike', draft('T', 'acme-evil'), 0],
    ['another type', draft('U', 'acme'), 0],
    ['another branch', draft('T', 'acme', 'dev'), 0],
    ['a definition', draft('T', 'acme', 'main', 'type'), 0],
  ])('of a write in %s: %#', async (_, written, calls) => {
    expect(await told([written])).toBe(calls);
  });

  test('on its tenant’s own branch of a name, of no write to another tenant’s, nor to the store’s', async () => {
    const everybody = { tenant: 'globex', branch: 'dev', shows: () => true };
    expect(await told([draft('T', 'globex/eu', 'dev')], everybody)).toBe(1);
    expect(await told([draft('T', 'acme', 'dev'), draft('T', null, 'dev')], everybody)).toBe(0);
    // Those who have none of their own follow the store's.
    expect(await told([draft('T', null, 'dev')], { ...everybody, tenant: 'acme' })).toBe(1);
    expect(await told([draft('T', 'globex', 'dev')], { ...everybody, tenant: 'acme' })).toBe(0);
  });

  test('once of many writes', async () => {
    expect(await told([draft('T', 'acme'), draft('T', 'acme/eu'), draft('T', 'acme')])).toBe(1);
  });

  test('without a path, of rows without a tenant only', async () => {
    expect(await told([draft('T', null)], { path: null })).toBe(1);
    expect(await told([draft('T', 'acme')], { path: null })).toBe(0);
  });

  test('after durability, in a turn of its own, never of what failed, and not after it left', async () => {
    const tasks: (() => void)[] = [];
    const writes = new WriteNotices((task) => tasks.push(task), idOf);
    const calls: string[] = [];
    const scope = { branch: 'main', tenant: null, type: 'T', shows: (row: string | null) => row === null };
    const leave = writes.listen(scope, () => calls.push('gone'));
    writes.listen(scope, () => calls.push('stays'));
    let acknowledge!: (value: unknown) => void;
    writes.onPlaced([draft('T', null)], after(new Promise((resolve) => (acknowledge = resolve))));
    await new Promise((resolve) => setImmediate(resolve));
    expect(tasks.length).toBe(0);
    acknowledge('synced');
    await new Promise((resolve) => setImmediate(resolve));
    expect([tasks.length, calls]).toEqual([1, []]);
    leave();
    for (const task of tasks.splice(0)) task();
    expect(calls).toEqual(['stays']);
    writes.onPlaced([draft('T', null)], after(Promise.reject(new Error('failed'))));
    await new Promise((resolve) => setImmediate(resolve));
    expect(tasks.length).toBe(0);
  });
});
