/** Who waits goes on one after the other, one in each round of the event loop; kinds of work take turns. */
import { expect, test } from 'vitest';
import { TurnQueue, type WorkKind } from '../../../src/planner/execution/turn-queue.ts';
import { TurnsBehind } from '../../../src/planner/execution/background-turns.ts';

class Rounds {
  #tasks: (() => void)[] = [];
  readonly defer = (task: () => void): void => void this.#tasks.push(task);

  async pass(): Promise<void> {
    for (const task of this.#tasks.splice(0)) task();
    await new Promise((resolve) => setImmediate(resolve));
  }
}

test('one goes on in each round, the longest-waiting first, whoever asks again meanwhile', async () => {
  const rounds = new Rounds();
  const queue = new TurnQueue(rounds.defer);
  const went: string[] = [];
  const work = async (name: string, slices: number): Promise<void> => {
    for (let slice = 0; slice < slices; slice++) {
      await queue.next();
      went.push(name);
    }
  };
  const all = [work('a', 3), work('b', 200), work('c', 1)];
  await rounds.pass();
  expect(went).toEqual(['a']);
  all.push(work('d', 1));
  for (let round = 0; round < 5; round++) await rounds.pass();
  expect(went).toEqual(['a', 'b', 'c', 'a', 'd', 'b']);
  for (let round = 0; round < 199; round++) await rounds.pass();
  await Promise.all(all);
  expect(went.length).toBe(205);
  // An empty queue starts again.
  all.push(work('e', 1));
  await rounds.pass();
  expect(went.at(-1)).toBe('e');
});

test('each of many who wait at once goes on, in the order in which they came', async () => {
  const rounds = new Rounds();
  const queue = new TurnQueue(rounds.defer);
  const went: number[] = [];
  const numbers = Array.from({ length: 150 }, (_, i) => i);
  for (const i of numbers) void queue.next().then(() => went.push(i));
  for (let round = 0; round < 150; round++) await rounds.pass();
  expect(went).toEqual(numbers);
});

test('kinds of work take turns, however many of one kind wait', async () => {
  const rounds = new Rounds();
  const queue = new TurnQueue(rounds.defer);
  const went: string[] = [];
  const work = async (name: string, kind: WorkKind, slices: number): Promise<void> => {
    for (let slice = 0; slice < slices; slice++) {
      await queue.next(kind);
      went.push(name);
    }
  };
  const all = [work('a', 'queries', 3), work('b', 'queries', 3), work('body', 'bodies', 3), work('seal', 'seals', 2)];
  for (let round = 0; round < 11; round++) await rounds.pass();
  await Promise.all(all);
  expect(went.join(' ')).toBe('a body seal b body seal a body b a b');
});

test('chores go on when nobody else waits, and in one of sixteen turns otherwise', async () => {
  const rounds = new Rounds();
  const queue = new TurnQueue(rounds.defer);
  const went: string[] = [];
  const work = async (name: string, kind: WorkKind, slices: number): Promise<void> => {
    for (let slice = 0; slice < slices; slice++) {
      await queue.next(kind);
      went.push(name);
    }
  };
  const all = [work('c', 'chores', 3), work('q', 'queries', 17)];
  for (let round = 0; round < 20; round++) await rounds.pass();
  await Promise.all(all);
  expect(went.join('')).toBe(`${'q'.repeat(15)}cqqcc`);
});

test('erasures have three turns for one of the others, who go on taking turns', async () => {
  const rounds = new Rounds();
  const queue = new TurnQueue(rounds.defer);
  const went: string[] = [];
  const work = async (name: string, kind: WorkKind, slices: number): Promise<void> => {
    for (let slice = 0; slice < slices; slice++) {
      await queue.next(kind);
      went.push(name);
    }
  };
  const all = [work('q', 'queries', 3), work('b', 'bodies', 2), work('c', 'chores', 1), work('e', 'erasures', 11)];
  for (let round = 0; round < 17; round++) await rounds.pass();
  await Promise.all(all);
  expect(went.join('')).toBe('eeeqeeebeeeqeebcq');
  // Alone they have all of them, and a chore has its turn beside them.
  went.length = 0;
  all.push(work('e', 'erasures', 5));
  for (let round = 0; round < 4; round++) await rounds.pass();
  all.push(work('c', 'chores', 1));
  for (let round = 0; round < 2; round++) await rounds.pass();
  await Promise.all(all);
  expect(went.join('')).toBe('eeeece');
});

test('tells what waits', async () => {
  const rounds = new Rounds();
  const queue = new TurnQueue(rounds.defer);
  expect(queue.waits('queries')).toBe(false);
  const turn = queue.next('queries');
  expect([queue.waits('queries'), queue.waits('bodies')]).toEqual([true, false]);
  await rounds.pass();
  await turn;
  expect(queue.waits('queries')).toBe(false);
});

test('work behind callers rests eight times its slice while they ask, and not at all otherwise', async () => {
  let nowMs = 1_000;
  const rests: number[] = [];
  const sleep = async (ms: number): Promise<void> => {
    rests.push(ms);
    nowMs += ms;
  };
  const turns = new TurnsBehind({ monotonicMs: () => nowMs, sleep }, () => Promise.resolve());
  const slice = (ms: number): Promise<void> => {
    nowMs += ms;
    return turns.next();
  };
  await turns.next();
  await slice(2);
  turns.noteRequest();
  await slice(2);
  // The last request is old, and then another one comes at the end of a slice that has waited for something.
  await slice(100);
  nowMs += 100;
  turns.noteRequest();
  await slice(0);
  expect(rests).toEqual([16, 50]);
});
