/** LOOKUP_IDENTITY against every cell brought to its form, one by one. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { canonicalIdentifier, identifiersIn, kindOfName } from '../../../../src/projections/identity/identifiers.ts';
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
