/** Access records read back: filters, pages, and who may see whose. */
import { describe, expect, test } from 'vitest';
import type { AccessRecord, CommittedEntry } from '../../src/log/entries/entry.ts';
import { AuditProjection } from '../../src/projections/audit/projection.ts';
import { LogAuditReader } from '../../src/projections/audit/audit-reader.ts';
import { caller, putRows, refusalOf, World } from './world.ts';

const base: AccessRecord = {
  time: 0n,
  correlationId: 'c',
  principal: 'ada',
  tenant: null,
  path: null,
  door: 'http',
  action: 'query',
  purpose: null,
  objectType: null,
  decision: 'allow',
  code: null,
  template: null,
  literalDigest: null,
  basis: 0n,
  rowCount: 0,
  costUnits: 1,
  durationMs: 1,
};

const paths = [null, 'acme', 'acme/eu', 'acme-evil'];

/** Entries of a few records each, with entries of other kinds between; record i has time i. */
function history(entries: number): { entries: CommittedEntry[]; records: AccessRecord[] } {
  const records: AccessRecord[] = [];
  const log = Array.from({ length: entries }, (_, leaf): CommittedEntry => {
    const context = {
      branch: 'main',
      tenant: null,
      path: null,
      principal: 'annals',
      door: 'gate',
      purpose: null,
      correlationId: '',
      policyDigest: '',
    };
    const place = { context, leaf, position: 0, positions: 0, time: BigInt(leaf) };
    if (leaf % 3 === 1) return { ...place, body: { kind: 'seal', treeSize: leaf, checkpoint: '' } };
    const batch = Array.from({ length: (leaf % 5) + 1 }, (_, at): AccessRecord => {
      const n = records.length + at;
      return {
        ...base,
        time: BigInt(n),
        path: paths[n % 4]!,
        action: n % 2 === 0 ? 'query' : 'ingest',
        principal: `p${n % 3}`,
        purpose: n % 5 === 0 ? 'fraud' : null,
        objectType: n % 7 === 0 ? 'Person' : null,
      };
    });
    records.push(...batch);
    return { ...place, body: { kind: 'access', records: batch } };
  });
  return { entries: log, records };
}

function readerOf(entries: readonly CommittedEntry[], visible: (path: string | null) => boolean) {
  const projection = new AuditProjection();
  for (const entry of entries) projection.apply(entry);
  let read = 0;
  async function* readFrom(leaf: number): AsyncIterable<CommittedEntry> {
    for (const entry of entries.slice(leaf)) {
      read++;
      yield entry;
    }
  }
  return { projection, reader: new LogAuditReader(projection, readFrom, visible), entriesRead: () => read };
}

const everything = (): boolean => true;

describe('reading access records back', () => {
  const { entries, records } = history(3000);

  test.each<[string, object, (record: AccessRecord) => boolean]>([
    ['nothing', {}, () => true],
    ['since, inclusive', { since: 100n }, (r) => r.time >= 100n],
    ['until, exclusive', { until: 100n }, (r) => r.time < 100n],
    ['a stretch of time', { since: 4000n, until: 4100n }, (r) => r.time >= 4000n && r.time < 4100n],
    ['the type', { objectType: 'Person' }, (r) => r.objectType === 'Person'],
    ['the principal', { principal: 'p2' }, (r) => r.principal === 'p2'],
    ['the purpose', { purpose: 'fraud' }, (r) => r.purpose === 'fraud'],
    ['the action', { action: 'ingest' }, (r) => r.action === 'ingest'],
    [
      'several at once',
      { action: 'query', principal: 'p0', since: 7n },
      (r) => r.action === 'query' && r.principal === 'p0' && r.time >= 7n,
    ],
    ['what nobody did', { action: 'remove' }, () => false],
  ])('filtered by %s: count and pages agree with the records', async (_, filter, matches) => {
    const { reader } = readerOf(entries, everything);
    const expected = records.filter(matches);
    const { count, byAction } = await reader.count(filter);
    expect(count).toBe(expected.length);
    for (const action of Object.keys(byAction)) expect(byAction[action]).toBe(expected.filter((r) => r.action === action).length);
    const times: bigint[] = [];
    for (let after: string | undefined, pages = 0; pages < 100; pages++) {
      const page = await reader.entries({ ...filter, limit: 1000, ...(after === undefined ? {} : { after }) });
      times.push(...page.entries.map((entry) => entry.time));
      if (page.next === null) break;
      after = page.next;
    }
    expect(times).toEqual(expected.map((record) => record.time));
  });

  test('pages of any size meet without gap or overlap', async () => {
    const { reader } = readerOf(entries.slice(0, 40), everything);
    for (const limit of [1, 2, 3, 7]) {
      const seen: bigint[] = [];
      let after: string | undefined;
      do {
        const page: Awaited<ReturnType<typeof reader.entries>> = await reader.entries(
          after === undefined ? { limit } : { limit, after },
        );
        expect(page.entries.length).toBeLessThanOrEqual(limit);
        seen.push(...page.entries.map((entry) => entry.time));
        after = page.next ?? undefined;
      } while (after !== undefined);
      expect(seen.length).toBeGreaterThan(50);
      expect(seen).toEqual(seen.map((_, i) => BigInt(i)));
    }
  });

  test('a page holds at most a thousand records, and none when none are asked for', async () => {
    const { reader } = readerOf(entries, everything);
    expect((await reader.entries({ limit: 1e9 })).entries.length).toBe(1000);
    expect(await reader.entries({ limit: 0 })).toEqual({ entries: [], next: null });
  });

  test('a narrow stretch of time reads a fraction of the log', async () => {
    const { reader, entriesRead } = readerOf(entries, everything);
    const last = records.at(-1)!.time;
    await reader.entries({ since: last, limit: 10 });
    expect(entriesRead()).toBeLessThan(entries.length / 2);
  });

  test('a cursor of something else is refused', async () => {
    const { reader } = readerOf(entries.slice(0, 5), everything);
    for (const after of ['', 'x', '1', '1.2.3', '-1.0', '1e3.0', '9'.repeat(30)]) {
      expect((await refusalOf(reader.entries({ limit: 1, after }))).code).toBe('REL_INVALID');
    }
  });

  test('an empty log has nothing', async () => {
    const { reader } = readerOf([], everything);
    expect(await reader.count({})).toEqual({ count: 0, byAction: {} });
    expect(await reader.count({ since: 0n })).toEqual({ count: 0, byAction: {} });
    expect(await reader.entries({ limit: 10 })).toEqual({ entries: [], next: null });
  });

  test('counts by scope and by reading agree', async () => {
    for (const visible of [everything, (path: string | null) => path === null, (path: string | null) => path === 'acme']) {
      const { reader } = readerOf(entries, visible);
      expect(await reader.count({})).toEqual(await reader.count({ since: 0n }));
    }
  });

  test('beyond the counted paths, counting falls back to reading', async () => {
    const record = (n: number): AccessRecord => ({ ...base, path: `tenant-${n}`, time: BigInt(n) });
    const many = Array.from(
      { length: 140 },
      (_, leaf): CommittedEntry => ({
        ...entries[0]!,
        leaf,
        body: { kind: 'access', records: Array.from({ length: 500 }, (_unused, at) => record(leaf * 500 + at)) },
      }),
    );
    const { reader, projection } = readerOf(many, (path) => path === 'tenant-69999');
    expect(projection.countByAction(everything)).toBeUndefined();
    expect(await reader.count({})).toEqual({ count: 1, byAction: { query: 1 } });
    const copy = new AuditProjection();
    await copyInto(projection, copy);
    expect(copy.digest()).toBe(projection.digest());
  });
});

describe('the projection', () => {
  test('restored and continued equals replayed from the start, at every cut', async () => {
    const { entries } = history(60);
    const whole = new AuditProjection();
    for (const entry of entries) whole.apply(entry);
    for (let cut = 0; cut <= entries.length; cut += 7) {
      const first = new AuditProjection();
      for (const entry of entries.slice(0, cut)) first.apply(entry);
      const second = new AuditProjection();
      await copyInto(first, second);
      expect(second.digest()).toBe(first.digest());
      for (const entry of entries.slice(cut)) second.apply(entry);
      expect(second.digest()).toBe(whole.digest());
    }
    const digest = whole.digest();
    whole.reset();
    expect(whole.digest()).toBe(new AuditProjection().digest());
    for (const entry of entries) whole.apply(entry);
    expect(whole.digest()).toBe(digest);
  });

  test('every record tells in the digest: one more, one fewer, another path, action or time', () => {
    const { entries } = history(10);
    const digestOf = (list: readonly CommittedEntry[]): string => {
      const projection = new AuditProjection();
      for (const entry of list) projection.apply(entry);
      return projection.digest();
    };
    const changed = (over: Partial<AccessRecord>): CommittedEntry[] => [
      ...entries.slice(0, 9),
      { ...entries[9]!, body: { kind: 'access', records: [{ ...base, time: 9n, ...over }] } },
    ];
    const digests = [digestOf(entries), digestOf(entries.slice(0, 9)), digestOf(changed({}))];
    digests.push(digestOf(changed({ path: 'x' })), digestOf(changed({ action: 'remove' })), digestOf(changed({ time: 99n })));
    expect(new Set(digests).size).toBe(digests.length);
  });

  test('memory grows with stretches, not with records', () => {
    const projection = new AuditProjection();
    const [entry] = history(1).entries;
    const records = Array.from({ length: 100 }, () => base);
    for (let leaf = 0; leaf < 20_000; leaf++) projection.apply({ ...entry!, leaf, body: { kind: 'access', records } });
    expect(projection.rangeCount).toBe(500);
  });
});

describe('whose records one sees through the gate', () => {
  test.each<[string | null, readonly string[]]>([
    [null, ['null']],
    ['acme', ['acme', 'acme/eu']],
    ['acme/eu', ['acme/eu']],
    ['acme-evil', ['acme-evil']],
    ['acm', []],
  ])('under %s those made under %j', async (path, expected) => {
    const world = new World();
    for (const made of paths) await world.invoke(caller({ path: made }), 'ingest', (invocation) => invocation.submit(putRows()));
    const { entries, count } = await world.invoke(caller({ path }), 'audit', async (invocation) => ({
      entries: (await invocation.audit().entries({ limit: 100 })).entries,
      count: (await invocation.audit().count({})).count,
    }));
    expect(entries.map((entry) => String(entry.path))).toEqual(expected);
    expect(count).toBe(expected.length);
  });

  test('the administrator sees everybody’s, with leaf and place', async () => {
    const world = new World();
    for (const path of paths) await world.invoke(caller({ path }), 'ingest', (invocation) => invocation.submit(putRows()));
    const admin = caller({ principal: 'admin', credential: 'admin', tokenId: null });
    const page = await world.invoke(admin, 'audit', (invocation) => invocation.audit().entries({ limit: 100 }));
    expect(page.entries.map(({ path, leaf, indexInEntry }) => [path, leaf, indexInEntry])).toEqual([
      [null, 1, 0],
      ['acme', 3, 0],
      ['acme/eu', 5, 0],
      ['acme-evil', 7, 0],
    ]);
  });

  test('a question about the records leaves a record itself, refused or not', async () => {
    const world = new World();
    await world.invoke(caller(), 'audit', (invocation) => invocation.audit().count({}));
    await refusalOf(world.invoke(caller({ tenant: 'acme', path: 'globex' }), 'audit', async (invocation) => invocation.audit()));
    expect(world.records.map(({ action, decision }) => [action, decision])).toEqual([
      ['audit', 'allow'],
      ['audit', 'deny'],
    ]);
  });
});

async function copyInto(from: AuditProjection, to: AuditProjection): Promise<void> {
  const sections = new Map<string, Uint8Array>();
  await from.checkpoint({
    section: (name, bytes) => void sections.set(name, typeof bytes === 'function' ? bytes() : bytes),
    file: () => undefined,
  });
  await to.restore({ section: (name) => sections.get(name) });
}
