import { describe, expect, test } from 'vitest';
import type { ErrorCode } from '../../src/errors.ts';
import { tokenOf } from './histories.ts';
import { START, Store } from './store.ts';

function refused(code: ErrorCode): unknown {
  return expect.objectContaining({ code });
}

const mint = (store: Store, id: string, more: Parameters<typeof tokenOf>[1] = {}): unknown =>
  store.run({ kind: 'mint-token', token: tokenOf(id, more) });

describe('the registry of tokens', () => {
  test('a minted token is found by id and by secret hash', () => {
    const store = new Store();
    mint(store, 't1');
    const { directory } = store.projections;
    expect(directory.token('t1')).toMatchObject({ record: tokenOf('t1'), mintedAt: START, endedAt: null });
    expect(directory.tokenBySecretHash('hash of t1', store.time)).toEqual(tokenOf('t1'));
    expect(directory.tokenBySecretHash('hash of t2', store.time)).toBeUndefined();
  });

  test('an expired token is not found by its secret from the instant of its expiry on', () => {
    const store = new Store();
    mint(store, 't1', { expiresAt: START + 100n });
    const { directory } = store.projections;
    expect(directory.tokenBySecretHash('hash of t1', START + 99n)).toBeDefined();
    expect(directory.tokenBySecretHash('hash of t1', START + 100n)).toBeUndefined();
  });

  test('a revoked token is not found by its secret any more and stays listed with its end', () => {
    const store = new Store();
    mint(store, 't1');
    const at = store.time;
    store.run({ kind: 'revoke-token', id: 't1' });
    expect(store.projections.directory.tokenBySecretHash('hash of t1', store.time)).toBeUndefined();
    expect(store.projections.directory.tokens()).toMatchObject([{ endedAt: at, replacedBy: null }]);
  });

  test('a rotation ends the old token and brings the new one in one entry', () => {
    const store = new Store();
    mint(store, 't1');
    store.run({ kind: 'rotate-token', id: 't1', token: tokenOf('t2') });
    const { directory } = store.projections;
    expect(store.entries).toHaveLength(2);
    expect(directory.tokenBySecretHash('hash of t1', store.time)).toBeUndefined();
    expect(directory.tokenBySecretHash('hash of t2', store.time)).toEqual(tokenOf('t2'));
    expect(directory.token('t1')?.replacedBy).toBe('t2');
  });

  test('unknown and ended tokens can neither be revoked nor rotated', () => {
    const store = new Store();
    mint(store, 't1');
    store.run({ kind: 'revoke-token', id: 't1' });
    for (const id of ['t1', 'nobody']) {
      expect(() => store.run({ kind: 'revoke-token', id })).toThrow(refused('REL_NOT_FOUND'));
      expect(() => store.run({ kind: 'rotate-token', id, token: tokenOf('t9') })).toThrow(refused('REL_NOT_FOUND'));
    }
  });

  test('the cap counts standing tokens: revoked and expired ones make room, a rotation needs none', () => {
    const store = new Store();
    mint(store, 'soon', { expiresAt: store.time + 6500n });
    for (const id of ['t2', 't3', 't4']) mint(store, id);
    expect(() => mint(store, 't5')).toThrow(refused('REL_TOKEN_CAP'));
    store.run({ kind: 'rotate-token', id: 't2', token: tokenOf('t6') });
    expect(() => mint(store, 't5')).toThrow(refused('REL_TOKEN_CAP'));
    store.run({ kind: 'revoke-token', id: 't3' });
    mint(store, 't5');
    // The first has expired by now.
    mint(store, 't7');
    expect(() => mint(store, 't8')).toThrow(refused('REL_TOKEN_CAP'));
  });

  test('an id or a secret is registered once', () => {
    const store = new Store();
    mint(store, 't1');
    expect(() => mint(store, 't1')).toThrow(refused('REL_CONFLICT'));
    expect(() => mint(store, 't2', { secretHash: 'hash of t1' })).toThrow(refused('REL_CONFLICT'));
  });
});
