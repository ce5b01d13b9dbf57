/** SANCTIONS_SCREEN: what names are alike, and what a list says of it. */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { countSteps, finishSteps } from '../../../finish-steps.ts';
import { featuresOf } from '../../../../src/planner/table-functions/domain/names/name-features.ts';
import { NameIndex } from '../../../../src/planner/table-functions/domain/names/name-index.ts';
import { matchNames, plainJaccard } from '../../../../src/planner/table-functions/domain/names/name-score.ts';
import { toLatin } from '../../../../src/planner/table-functions/domain/names/transliterate.ts';
import { TestRandom, TestStore } from '../../../harness.ts';

const score = (left: string, right: string): number => matchNames(featuresOf(left), featuresOf(right)).score;

test.each([
  ['Ivan Petrov', 'Ivan Petrov', 1],
  ['Ivan Petrov', 'Petrov, IVAN', 1],
  ['Golden Harbour Fishing', 'Golden Harbour Mining', 1 / 2],
  ['Golden Harbour Fishing', 'Silver Mountain', 0],
  ['Walter Brandt Zimmer', 'Walter Brandt', 2 / 3],
])('plain words score as the textbook has it: %s, %s', (left, right, expected) => {
  expect(score(left, right)).toBeCloseTo(expected, 12);
  expect(plainJaccard(left, right)).toBeCloseTo(expected, 12);
});

test.each([
  ['Владимир Путин', 'vladimir putin'],
  ['محمد', 'mhmd'],
  ['김정은', 'kim jung eun'],
  ['习近平', 'xi jin ping'],
  ['トヨタ きょうこ', 'toyota kyouko'],
  ['Müller Straße Łódź', 'muller strasse lodz'],
])('%s is %s', (name, latin) => {
  expect(toLatin(name).text.trim().replaceAll(/\s+/g, ' ')).toBe(latin);
});

test.each([
  ['Juan Ginpel', 'Juna Ginpel', true],
  ['Omar Garnekta', 'Oar Garnekta', true],
  ['Olga Karova', 'Oga Karova', true],
  ['Ali Robert Lombrapel', 'Ail Robert Lombrapel', true],
  ['Wang Wei', 'Wan Wei', false],
  ['Li Qiang', 'Lin Qiang', false],
  ['Fenro Marfen GmbH', 'Fenro Marfen GbmH', true],
])('a slip of the hand in a short word: %s, %s', (left, right, isAlike) => {
  expect(score(left, right) >= 0.75).toBe(isAlike);
});

test.each([
  ['Bob Karova', 'Robert Karova', true],
  ['Mikhail Karova', 'Michael Karova', true],
  ['Juan Karova', 'Ivan Karova', false],
  ['Pierre Karova', 'Pedro Karova', false],
  ['Juan Mendez Karova', 'Giovanni Mendez Karova', true],
])('a short form stands for a name, a form in another language only beside more: %s, %s', (left, right, isAlike) => {
  expect(score(left, right) >= 0.75).toBe(isAlike);
});

test.each([
  ['Sergei Dorpel', 'Sergei Vorpel', false],
  ['Maria Zardor', 'Maria Mardor', false],
  ['Omar Garnekta', 'Omar Karnekta', true],
  ['Omar Menpel', 'Omar Nenpel', true],
  ['Omar Lombrapel', 'Omar Lombrapelt', true],
])('another consonant says less against two names where it sounds like the one: %s, %s', (left, right, isAlike) => {
  expect(score(left, right) >= 0.75).toBe(isAlike);
});

/** Two of one line are pairs of one label; lines with odd numbers were not tuned on. */
function pairsOf(file: string): readonly (readonly [string, string])[] {
  const text = readFileSync(new URL(`../../../../fixtures/names/${file}.txt`, import.meta.url), 'utf8');
  const lines = text.trim().split('\n');
  return lines
    .filter((_, i) => i % 2 === 1)
    .flatMap((line) => {
      const names = line.split(' | ');
      return names.flatMap((left, i) => names.slice(i + 1).map((right) => [left, right] as const));
    });
}

test('labelled pairs of the half that was not tuned on: F1 at 0.75 is at least 0.7', () => {
  const isAlike = ([left, right]: readonly [string, string]): boolean => score(left, right) >= 0.75;
  const hits = pairsOf('same').filter(isAlike).length;
  const misses = pairsOf('same').length - hits;
  const wrong = pairsOf('different').filter(isAlike).length;
  expect((2 * hits) / (2 * hits + misses + wrong)).toBeGreaterThan(0.7);
});

test('the index finds what comparing with every name finds', () => {
  const bytes = new TestRandom(7).fill(new Uint8Array(4_000));
  const parts = 'ka ro mi ta len vor ber gin son ski dov mar al abdul j ltd sha fen bra'.split(' ');
  const given = ['Ivan', 'Bob', 'Robert', 'Mohammed', 'محمد', 'Иван', 'Al', 'J.', 'Anna', 'Sea Star'];
  const names = Array.from({ length: 300 }, (_, i) => {
    const [a, b, c, d, e] = bytes.subarray(5 * i, 5 * i + 5);
    return `${given[a! % given.length]!} ${parts[b! % parts.length]!}${c! % 3 === 0 ? ' ' : ''}${parts[d! % parts.length]!}${parts[e! % parts.length]!}`;
  });
  const index = new NameIndex();
  names.forEach((name, i) => index.add(i, name));
  const features = names.map(featuresOf);
  for (const [i, name] of names.slice(0, 20).entries()) {
    const expected = features.flatMap((each, j) => (matchNames(features[i]!, each).score >= 0.6 - 1e-9 ? [j] : []));
    const found = finishSteps(index.find(name, 0.6, () => undefined)).map(({ owner }) => owner);
    expect(
      found.sort((a, b) => a - b),
      name,
    ).toEqual(expected);
  }
});

let store: TestStore;

beforeAll(async () => {
  store = await TestStore.open('2024-03-01');
  const columns = {
    name: 'string',
    kind: 'string',
    aliases: 'json',
    birth_date: 'string',
    country: 'string',
    list: 'string',
  } as const;
  await store.register('Listing', { id: 'string', ...columns }, 'id');
  await store.put('Listing', [
    { id: 'l1', name: 'Robert Johnson', kind: 'person', birth_date: '1970-05-01', country: 'GB', list: 'eu' },
    { id: 'l2', name: 'Acme Trading GmbH', kind: 'company', aliases: ['Fast Parcels'], list: 'un' },
  ]);
});
afterAll(() => store.close());

const hits = async (sql: string): Promise<readonly unknown[]> =>
  (await store.rows(`SELECT * FROM ${sql}`)).map((row) => [row['nodeId'], Math.round(Number(row['score']) * 100) / 100]);

test('a name is screened against names and aliases, as the list was known', async () => {
  const [hit] = await store.rows("SANCTIONS_SCREEN('Johnson, Bob')");
  expect(hit).toMatchObject({ nodeId: 'l1', type: 'Listing', name: 'Robert Johnson', list: 'eu', plain_jaccard: 1 / 3 });
  expect(hit!['features']).toBe('["word:johnson","nickname:bob=robert"]');
  expect(String(hit!['list_version'])).toContain('2024-03-01');
  expect(await hits("SANCTIONS_SCREEN('FAST PARCELS LTD.')")).toEqual([['l2', 1]]);
  store.clock.set('2024-06-01');
  await store.put('Listing', [{ id: 'l3', name: 'Bob Jonson', list: 'eu' }]);
  expect(await hits("SANCTIONS_SCREEN('Bob Johnson')")).toEqual([
    ['l3', 0.95],
    ['l1', 0.9],
  ]);
  expect(await hits("SANCTIONS_SCREEN('Bob Johnson') AS OF SYSTEM TIME '2024-03-15'")).toEqual([['l1', expect.any(Number)]]);
});

test('kind, date of birth and country narrow and weigh', async () => {
  const asked = "SANCTIONS_SCREEN('Robert Johnson', THRESHOLD => 0.5";
  expect(await hits(`${asked}, KIND => 'company')`)).toEqual([['l3', expect.any(Number)]]);
  expect(await hits(`${asked}, BIRTH_DATE => '1970')`)).toContainEqual(['l1', 1]);
  expect(await hits(`${asked}, BIRTH_DATE => '1985-01-01')`)).toContainEqual(['l1', 0.7]);
  expect(await hits(`${asked}, COUNTRY => 'FR')`)).toContainEqual(['l1', 0.9]);
  expect(await store.refusal(`${asked}, BIRTH_DATE => 'May')`)).toMatchObject({ code: 'REL_INVALID' });
  expect(await store.refusal("SANCTIONS_SCREEN('x', THRESHOLD => 1.5)")).toMatchObject({ code: 'REL_INVALID' });
});

test('a list of names that are all alike is compared in steps, and counted as it is', () => {
  const index = new NameIndex();
  for (let i = 0; i < 2_000; i++) index.add(i, 'Maria Gonzalez');
  let looks = 0;
  const { value, count } = countSteps(index.find('Maria Gonzales', 0.6, (more) => (looks += more)));
  expect([value.length, looks, count]).toEqual([2_000, 2_000, 7]);
});
