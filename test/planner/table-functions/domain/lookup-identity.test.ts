/** LOOKUP_IDENTITY against every cell brought to its form, one by one. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { inlineWorker } from '../../../../src/log/threads/workers.ts';
import { canonicalIdentifier, identifiersIn, kindOfName } from '../../../../src/projections/entity-resolution/identifiers.ts';
import { IdentifierRun } from '../../../../src/projections/rows/indexes/identifier-run.ts';
import { TestStore } from '../../../harness.ts';

let store: TestStore;

const phones = ['+44 20 7946 0018', '0044 2079460018', '+442079460019', '020 7946 0018', 'none', null];
const plates = ['AB12 CDE', 'ab-12-cde', 'AB12CDF', null];
const people = phones.map((phone, i) => ({ id: `p${i}`, home_phone: phone, plate: plates[i % 4], note: '+442079460018' }));
const cases = [
  { id: 'c1', subject_ref: '+44 (20) 7946 0018', file: 'K-17' },
  { id: 'c2', subject_ref: 'k-17', file: '+442079460018' },
];

beforeAll(async () => {
  store = await TestStore.open('2024-01-01');
  await store.register('Person', { id: 'string', home_phone: 'string', plate: 'string', note: 'string' }, 'id');
  await store.register('File', { id: 'string', subject_ref: 'string', file: 'string' }, 'id', {
    identifier: ['subject_ref'],
    identifierKinds: { file: 'id' },
  });
  await store.put('Person', people);
  await store.put('File', cases);
});
afterAll(() => store.close());

async function found(sql: string): Promise<string[]> {
  return (await store.rows(sql)).map(({ type, nodeId, kind, column }) => [type, nodeId, kind, column].join(' '));
}

test.each(['+442079460018', '+44 20 7946 0019', 'AB 12 CDE', 'K-17', 'none', 'ab12cdf'])('%s', async (value) => {
  const forms = new Map(identifiersIn(value));
  const expected: string[] = [];
  for (const row of people) {
    for (const column of ['home_phone', 'plate'] as const) {
      const kind = kindOfName(column)!;
      const form = row[column] ? canonicalIdentifier(kind, row[column]) : null;
      if (form !== null && form === forms.get(kind)) expected.push(`Person ${row.id} ${kind} ${column}`);
    }
  }
  for (const row of cases) {
    const shared = identifiersIn(row.subject_ref).find(([kind, form]) => forms.get(kind) === form);
    if (shared) expected.push(`File ${row.id} ${shared[0]} subject_ref`);
    if (canonicalIdentifier('id', row.file) === forms.get('id')) expected.push(`File ${row.id} id file`);
  }
  const sorted = expected.toSorted((a, b) => (a.split(' ')[1]! < b.split(' ')[1]! ? -1 : 1));
  expect(await found(`LOOKUP_IDENTITY('${value}')`)).toEqual(sorted);
});

test('one type alone, and as it was', async () => {
  expect(await found("LOOKUP_IDENTITY('+442079460018', SOURCE => 'Person')")).toEqual([
    'Person p0 phone home_phone',
    'Person p1 phone home_phone',
  ]);
  store.clock.set('2024-02-01');
  await store.put('Person', [{ id: 'p0', home_phone: null }]);
  expect(await found("LOOKUP_IDENTITY('+442079460018', SOURCE => 'Person')")).toEqual(['Person p1 phone home_phone']);
  expect(await found("LOOKUP_IDENTITY('+442079460018', SOURCE => 'Person') AS OF SYSTEM TIME '2024-01-15'")).toHaveLength(2);
  expect((await store.refusal("LOOKUP_IDENTITY('x', SOURCE => 'Nope')")).code).toBe('REL_UNKNOWN_TYPE');
});

test('by the index of sealed segments as by a look at every cell', async () => {
  const large = await TestStore.open(
    '2024-01-01',
    {},
    {
      derived: { machineBytes: 1 << 30, segmentRows: 16 },
      startKept: inlineWorker,
    },
  );
  const property = { required: false, masked: false, indexed: false, subject: false, dims: 0 } as const;
  const types = { id: 'string', phone: 'string', imei: 'integer', ref: 'string' } as const;
  await large.register('Person', types, 'id', { identifier: ['ref'] });
  await large.register('Secret', { id: 'string', phone: { ...property, type: 'string', masked: true } }, 'id');
  const phoneOf = (n: number): string => `+44 20 7946 00${String(n % 23).padStart(2, '0')}`;
  const rows = Array.from({ length: 70 }, (_, i) => ({
    id: `p${i}`,
    phone: i % 3 === 0 ? phoneOf(i).replace('+44 ', '0044') : phoneOf(i),
    imei: i % 5 === 0 ? 490154203237518 : null,
    ref: i % 7 === 0 ? 'Case-1' : phoneOf(i + 1),
  }));
  await large.put('Person', rows);
  await large.put(
    'Secret',
    rows.map(({ id, phone }) => ({ id, phone })),
  );
  large.clock.set('2024-02-01');
  await large.put(
    'Person',
    rows.slice(0, 40).map(({ id, ref }) => ({ id, ref, phone: phoneOf(99), imei: null })),
  );
  const sought = [phoneOf(1), phoneOf(99), '490154203237518', 'case-1', '+442079460090'];
  const asked = sought.flatMap((value) =>
    ['', " AS OF SYSTEM TIME '2024-01-15'"].map((then) => `LOOKUP_IDENTITY('${value}')${then}`),
  );
  const answers = async (): Promise<unknown[]> => Promise.all(asked.map((sql) => large.rows(sql)));
  const scanned = await answers();
  await large.service.settle();
  const { rows: stored } = large.service.store.projections;
  const sealed = stored.table(null, 'Person')!.segments.filter((segment) => segment.sealed);
  const columns = [
    ['phone', 'phone'],
    ['imei', 'imei'],
    ['ref', null],
  ] as const;
  await vi.waitFor(() => {
    for (const segment of sealed) {
      for (const [column, kind] of columns) expect(stored.indexes.identifiers(segment, column, kind)).not.toBe(null);
    }
  });
  const find = vi.spyOn(IdentifierRun.prototype, 'find');
  expect(await answers()).toEqual(scanned);
  expect(find.mock.calls.length).toBeGreaterThan(sealed.length);
  find.mockRestore();
  expect(scanned.map((each) => (each as unknown[]).length > 0)).toEqual([...Array(8).fill(true), false, false]);
  await large.close();
});
