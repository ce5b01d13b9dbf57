/** Governance over the real log and the real projections: what one organisation does never shows in another's answers. */
import { describe, expect, test } from 'vitest';
import type { Caller } from '../../src/governance/caller.ts';
import { draftRotation, draftToken } from '../../src/governance/authentication/bearer-tokens.ts';
import type { RowBlock, ScanRequest } from '../../src/projections/access-paths.ts';
import { loadSettings } from '../../src/config.ts';
import { MemoryDisk } from '../../src/log/disk/memory-disk.ts';
import { Service } from '../../src/service.ts';
import { analyst, type Row, rowsOf, TestClock, TestRandom, TestStore } from '../harness.ts';
import { Seeded } from '../simulation/seeded.ts';
import { refusalOf } from './world.ts';

const paths = [null, 'acme', 'acme/eu', 'acme/eu/fr', 'acme-evil', 'acme-evil/eu', 'globex'];
const at = (path: string | null): Caller => ({ ...analyst, path });
const shown = ['_pk', 'tenant_id', 'namespace_path', 'n'] as const;
const types = { _pk: 'string', tenant_id: 'string', namespace_path: 'string', n: 'integer' } as const;
const all: ScanRequest = { type: 'Person', columns: shown, time: { system: 'all', valid: 'all' } };

/** Rows of a governed scan, and everything else that the reader was told. */
async function scan(store: TestStore, who: Caller, request: Partial<ScanRequest> = {}) {
  return store.invoke(who, 'query', async (invocation) => {
    const { rows } = invocation.snapshot();
    const asked = { ...all, ...request };
    const found: Row[] = [];
    const blocks = rows.scan(asked);
    for (let step = blocks.next(); step.done !== true; step = blocks.next()) found.push(...rowsIn(step.value));
    return { found, estimate: rows.estimate(asked) };
  });
}

function rowsIn(block: RowBlock): Row[] {
  const columns = shown.map((name) => ({ name, type: types[name] }));
  return rowsOf({ columns, batches: [block] });
}

/** The same keys in every organisation, written in random order; `strangers` says how many rows others write in between. */
async function filled(strangers: number): Promise<TestStore> {
  const store = await TestStore.open();
  const random = new Seeded(11);
  await store.register('Person', { n: 'integer' });
  for (let n = 0; n < 40; n++) {
    store.clock.wallNs += 1_000_000_000n;
    const path = random.pick(paths);
    await store.put('Person', [{ _pk: `key-${n % 5}`, n }], at(path));
    const foreign = Array.from({ length: strangers }, (_, i) => ({ _pk: `key-${i}`, n: 1000 + i }));
    if (strangers > 0) await store.put('Person', foreign, at(n % 2 === 0 ? 'strangers' : 'acme-strangers'));
  }
  return store;
}

const below = (mine: string | null, row: Row): boolean => {
  const path = row['namespace_path'] as string | null;
  if (mine === null || path === null) return mine === path;
  return path === mine || path.startsWith(`${mine}/`);
};

describe('rows of the real store', () => {
  test('every caller sees exactly the rows of their path and below, by every access path', async () => {
    const store = await filled(0);
    const everything: Row[] = [];
    for (const path of [null, 'acme', 'acme-evil', 'globex']) everything.push(...(await scan(store, at(path))).found);
    expect(everything.length).toBe(40);
    for (const path of [...paths, 'acm', 'nowhere']) {
      const mine = everything.filter((row) => below(path, row));
      for (const request of [{}, { blockRows: 1 }, { time: { system: store.clock.wallNs * 2n, valid: 'all' } as const }]) {
        const { found } = await scan(store, at(path), request);
        for (const row of found) expect(below(path, row)).toBe(true);
        if (!('time' in request)) expect(numbers(found)).toEqual(numbers(mine));
      }
      const { found } = await scan(store, at(path), { keys: ['key-1', 'key-3', 'absent'] });
      expect(numbers(found)).toEqual(numbers(mine.filter((row) => row['_pk'] === 'key-1' || row['_pk'] === 'key-3')));
      for (const row of found) expect(row['tenant_id']).toBe((row['namespace_path'] as string | null)?.split('/')[0] ?? null);
    }
    await store.close();
  });

  test('answers, estimates and refusals are the same whether others wrote nothing or a thousand rows', async () => {
    const [quiet, busy] = [await filled(0), await filled(25)];
    for (const path of [...paths, 'nowhere']) {
      for (const request of [{}, { keys: ['key-1', 'key-2'] }, { keys: ['key-20'] }, { blockRows: 3 }]) {
        const [one, other] = [await scan(quiet, at(path), request), await scan(busy, at(path), request)];
        expect(other.found).toEqual(one.found);
        expect(other.estimate).toEqual(one.estimate);
      }
      const records = async (store: TestStore) =>
        (await store.invoke(at(path), 'audit', (invocation) => invocation.audit().count({ action: 'ingest' }))).count;
      expect(await records(busy)).toBe(await records(quiet));
    }
    await Promise.all([quiet.close(), busy.close()]);
  });

  test('the same key in two organisations is two rows: writing and deleting one leaves the other', async () => {
    const store = await TestStore.open();
    await store.register('Person', { n: 'integer' });
    for (const path of ['acme', 'globex']) await store.put('Person', [{ _pk: 'x', n: 1 }], at(path));
    await store.put('Person', [{ _pk: 'x', n: 2 }], at('acme'));
    await store.delete('Person', ['x'], at('acme'));
    const live = { time: { system: store.clock.wallNs + 1_000_000n, valid: store.clock.wallNs + 1_000_000n } } as const;
    expect(numbers((await scan(store, at('acme'), live)).found)).toEqual([]);
    expect(numbers((await scan(store, at('globex'), live)).found)).toEqual(['1']);
    await store.close();
  });
});

describe('tokens of the real registry', () => {
  const admin: Caller = { ...analyst, principal: 'admin', credential: 'admin' };
  const request = { action: 'administer', purpose: null, correlationId: 'test' } as const;

  test('minted, rotated and revoked ones open and close at once, and the log never holds a secret', async () => {
    const store = await TestStore.open();
    const { gate, authenticator, ids, random, clock } = store.service;
    const { log } = store.service.store;
    const credentials = (token: string) => ({ authorization: `Bearer ${token}`, door: 'http' });
    const opens = async (token: string): Promise<string> => {
      try {
        return authenticator.dataCaller(credentials(token)).principal;
      } catch (error) {
        return (await refusalOf(Promise.reject(error))).code;
      }
    };
    const first = draftToken({ principal: 'ada', tenant: 'acme' }, ids, random, clock.now());
    expect(await opens(first.token)).toBe('REL_UNAUTHENTICATED');
    await gate.invoke(admin, request, (invocation) => invocation.submit({ kind: 'mint-token', token: first.record }));
    expect(await opens(first.token)).toBe('ada');

    const ada = authenticator.dataCaller(credentials(first.token));
    const second = draftRotation(first.record, ids, random);
    await gate.invoke(ada, request, (i) => i.submit({ kind: 'rotate-token', id: first.record.id, token: second.record }));
    expect([await opens(first.token), await opens(second.token)]).toEqual(['REL_UNAUTHENTICATED', 'ada']);

    const again = authenticator.dataCaller(credentials(second.token));
    expect((await gate.invoke(again, { ...request, action: 'inspect' }, async (i) => i.tokens())).map(({ id }) => id)).toEqual([
      second.record.id,
    ]);
    await gate.invoke(again, request, (invocation) => invocation.submit({ kind: 'revoke-token', id: second.record.id }));
    expect(await opens(second.token)).toBe('REL_UNAUTHENTICATED');

    let said = '';
    for await (const entry of log.read(0)) {
      said += JSON.stringify(entry, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value));
    }
    expect(said).toContain(first.record.secretHash);
    for (const { token } of [first, second]) expect(said).not.toContain(token.slice(-43));
    await store.close();
  });

  test('past the cap of the registry minting is a conflict', async () => {
    const store = await TestStore.open('2024-01-01', { SERVICE_TOKEN_REGISTRY_MAX: '2' });
    const { gate, ids, random, clock } = store.service;
    const mint = () => {
      const { record } = draftToken({}, ids, random, clock.now());
      return gate.invoke(admin, request, (invocation) => invocation.submit({ kind: 'mint-token', token: record }));
    };
    await mint();
    await mint();
    const refusal = await refusalOf(mint());
    expect([refusal.code, refusal.status]).toEqual(['REL_TOKEN_CAP', 409]);
    await store.close();
  });
});

describe('access records of the real log', () => {
  test('one for each invocation, in the order in which they ended, through the audit reader', async () => {
    const store = await TestStore.open();
    await store.register('Person', { n: 'integer' });
    await store.put('Person', [{ n: 1 }], at('acme'));
    await scan(store, at('acme'));
    await refusalOf(store.invoke(at('acme'), 'query', async (invocation) => invocation.snapshot(), 'gossip'));
    const page = await store.invoke(at('acme'), 'audit', (invocation) => invocation.audit().entries({ limit: 10 }));
    expect(page.entries.map(({ action, decision, code, rowCount }) => [action, decision, code, rowCount])).toEqual([
      ['ingest', 'allow', null, 1],
      ['query', 'allow', null, 0],
      ['query', 'deny', 'REL_PURPOSE_UNKNOWN', 0],
    ]);
    await store.close();
  });

  test('reading moves no position, and a reader’s instant follows the clock through any number of reads', async () => {
    const clock = new TestClock('2024-01-01');
    // A log that stays unsealed: nothing but access records is written, and no fsync comes to cover them.
    const service = await Service.open({
      settings: loadSettings({ env: { SERVICE_IN_MEMORY: 'true' }, workingDirectory: '/nowhere', homeDirectory: '/nowhere' }),
      disk: new MemoryDisk(),
      clock,
      random: new TestRandom(),
      version: 'test',
      say: () => undefined,
      sealIdleMs: 3_600_000,
    });
    const { positions, leaves } = service.store.log.status();
    const request = { action: 'query', purpose: null, correlationId: 'test' } as const;
    for (let i = 0; i < 20; i++) {
      clock.wallNs += 1_000_000_000n;
      expect(await service.gate.invoke(analyst, request, async (i) => i.snapshot().instant)).toBe(clock.wallNs);
    }
    expect(service.store.log.status()).toMatchObject({ positions, leaves: leaves + 20 });
    await service.close();
  });
});

const numbers = (rows: readonly Row[]): string[] => rows.map((row) => String(row['n'])).sort();
