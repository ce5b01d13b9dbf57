/**
 * The history that the SQL tests ask about. Every kind of change is in it once: an update, a late fact that reaches back,
 * a correction of one month in the middle, a deletion.
 *
 *   2024-01-01  five people become known
 *   2024-02-01  Bob has moved to Lyon and is 26
 *   2024-03-01  it becomes known that Cleo was there since 2023-06-01, with a score of 8
 *   2024-04-01  Zoë is deleted
 *   2024-05-01  it becomes known that Ada's score was 5 in February 2024, and only then
 *   2024-06-01  now
 */
import { TestStore } from '../harness.ts';

export async function openPeople(): Promise<TestStore> {
  const store = await TestStore.open('2023-12-31');
  await store.register(
    'Person',
    {
      id: 'string',
      name: 'string',
      age: 'integer',
      score: 'number',
      active: 'boolean',
      city: 'string',
      joined: 'timestamp',
      notes: 'json',
    },
    'id',
  );
  store.clock.set('2024-01-01');
  await store.put('Person', [ada, bob, cleo, edith, zoe]);
  store.clock.set('2024-02-01');
  await store.put('Person', [{ ...bob, age: 26, city: 'Lyon' }]);
  store.clock.set('2024-03-01');
  await store.put('Person', [{ ...cleo, score: 8, valid_from: '2023-06-01' }]);
  store.clock.set('2024-04-01');
  await store.delete('Person', ['e']);
  store.clock.set('2024-05-01');
  await store.put('Person', [{ ...ada, score: 5, valid_from: '2024-02-01', valid_to: '2024-03-01' }]);
  store.clock.set('2024-06-01');
  return store;
}

const ada = {
  id: 'a',
  name: 'Ada',
  age: 36,
  score: 9.5,
  active: true,
  city: 'London',
  joined: '2020-01-01',
  notes: { langs: ['en'] },
};
const bob = { id: 'b', name: 'Bob', age: 25, score: null, active: false, city: 'Paris', joined: '2021-06-01', notes: null };
const cleo = { id: 'c', name: 'Cleo', age: null, score: 7.25, active: null, city: 'paris', joined: null, notes: null };
const edith = {
  id: 'd',
  name: 'Édith',
  age: 41,
  score: -1.5,
  active: true,
  city: 'Zürich',
  joined: '2022-03-04T05:06:07.123Z',
  notes: null,
};
const zoe = { id: 'e', name: 'Zoë', age: 25, score: 0, active: true, city: null, joined: '2023-01-01', notes: null };
