import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { ErrorCode } from '../../src/errors.ts';
import { policyDigest } from '../../src/projections/policies/projection.ts';
import { Store } from './store.ts';

const permit = 'permit(principal, action, resource);';
const forbid = 'forbid(principal, action, resource);';

function refused(code: ErrorCode): unknown {
  return expect.objectContaining({ code });
}

const put = (store: Store, id: string, text: string, branch = 'main'): unknown =>
  store.run({ kind: 'put-policy', id, text }, null, branch);
const remove = (store: Store, id: string): unknown => store.run({ kind: 'delete-policy', id });
const digestOf = (json: string): string => createHash('sha256').update(json).digest('hex');

describe('the policy set', () => {
  test('is empty at first, and has no digest', () => {
    expect(new Store().projections.policies.current).toEqual({ epoch: 0, digest: '', policies: [] });
  });

  test('holds what was installed, by id, with a digest of ids and texts', () => {
    const store = new Store();
    put(store, 'b', permit);
    const at = store.time;
    expect(put(store, 'a', forbid)).toMatchObject({ kind: 'put-policy', ids: ['a'], changed: true });
    const { current } = store.projections.policies;
    expect(current.epoch).toBe(2);
    expect(current.policies.map(({ id, text }) => [id, text])).toEqual([
      ['a', forbid],
      ['b', permit],
    ]);
    expect(current.policies[0]).toEqual({ id: 'a', text: forbid, position: 1, time: at });
    expect(current.digest).toBe(digestOf(`{"a":"${forbid}","b":"${permit}"}`));
    expect(store.entries[1]!.body).toEqual({
      kind: 'policy',
      change: 'installed',
      id: 'a',
      text: forbid,
      digest: current.digest,
    });
  });

  test('the same text again is a no-op, another one takes its place', () => {
    const store = new Store();
    put(store, 'a', permit);
    const before = store.projections.policies.current;
    expect(put(store, 'a', permit)).toMatchObject({ changed: false, accepted: 0 });
    expect(store.projections.policies.current).toBe(before);
    put(store, 'a', forbid);
    expect(store.projections.policies.current).toMatchObject({ epoch: 2, policies: [{ text: forbid, position: 1 }] });
  });

  test('a deleted policy is gone, and the last one takes the digest with it', () => {
    const store = new Store();
    put(store, 'a', permit);
    put(store, 'b', forbid);
    remove(store, 'a');
    expect(store.projections.policies.current).toMatchObject({ digest: digestOf(`{"b":"${forbid}"}`), policies: [{ id: 'b' }] });
    expect(store.entries.at(-1)!.body).toMatchObject({ change: 'deleted', id: 'a', text: '' });
    remove(store, 'b');
    expect(store.projections.policies.current).toEqual({ epoch: 4, digest: '', policies: [] });
    expect(() => remove(store, 'b')).toThrow(refused('REL_NOT_FOUND'));
  });

  test('as of a position is the set that the entries below it left', () => {
    const store = new Store();
    store.put('T', { id: 'string' }, [{ id: 'x' }]);
    const first = store.position;
    put(store, 'a', permit);
    const second = store.position;
    put(store, 'a', forbid);
    const third = store.position;
    remove(store, 'a');
    const { policies } = store.projections;
    const textsAt = (position: number): string[] => policies.setAt(position).policies.map(({ text }) => text);
    expect([0, first, first + 1, second, second + 1, third, third + 1].map(textsAt)).toEqual([
      [],
      [],
      [permit],
      [permit],
      [forbid],
      [forbid],
      [],
    ]);
    expect(policies.setAt(second)).toMatchObject({ epoch: 1, digest: digestOf(`{"a":"${permit}"}`) });
    expect(policies.setAt(store.position)).toBe(policies.current);
  });

  test('is of main, whatever branch it was changed from', () => {
    const store = new Store();
    store.append({ kind: 'genesis', logId: 'l', origin: 'o', engineVersion: 'e' });
    store.run({ kind: 'fork-branch', name: 'dev', source: 'main', shares: 'everything' });
    put(store, 'a', permit, 'dev');
    expect(store.entries.at(-1)!.context.branch).toBe('main');
  });

  test.each([
    ['no id', '', permit],
    ['a control character in its id', 'a\n', permit],
    ['no text', 'a', ''],
    ['a lone surrogate', 'a', '\ud800'],
    ['a text that is too long', 'a', 'x'.repeat(65_537)],
  ])('refuses a policy with %s', (_, id, text) => {
    expect(() => put(new Store(), id, text)).toThrow(refused('REL_INVALID'));
  });

  test('takes a thousand policies and no more', () => {
    const store = new Store();
    for (let i = 0; i < 1000; i++) put(store, `p${i}`, permit);
    expect(() => put(store, 'more', permit)).toThrow(refused('REL_CONFLICT'));
    put(store, 'p7', forbid);
    expect(store.projections.policies.current.policies).toHaveLength(1000);
  });

  test('digests order ids as RFC 8785 does, and know __proto__', () => {
    const policies = [
      { id: '\u{1f600}', text: 'x' },
      { id: '\ufb33', text: 'y' },
      { id: '__proto__', text: 'z' },
    ];
    expect(policyDigest(policies)).toBe(digestOf('{"__proto__":"z","\u{1f600}":"x","\ufb33":"y"}'));
  });
});
