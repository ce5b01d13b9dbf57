import { expect, test } from 'vitest';
import { AdvisoryLocks, advisoryLocksMax } from '../../../src/doors/relational/advisory-locks.ts';

const { signal } = new AbortController();
const named = (key: string, tenant = 'a'): { tenant: string; key: string } => ({ tenant, key });

test('the bound is of one tenant, and counts what is held again and what is waited for', async () => {
  const locks = new AdvisoryLocks();
  const [one, two] = [{}, {}];
  for (let i = 2; i < advisoryLocksMax; i++) expect(locks.tryTake(one, named('x'), 'exclusive')).toBe(true);
  expect(locks.tryTake(two, named('x'), 'shared')).toBe(false);
  expect(locks.tryTake(two, named('y'), 'shared')).toBe(true);
  const gone = new AbortController();
  const waits = locks.take(two, named('x'), 'shared', gone.signal);
  expect(() => locks.tryTake(two, named('z'), 'shared')).toThrow(`${advisoryLocksMax} advisory locks`);
  expect(locks.tryTake(two, named('x', 'b'), 'shared')).toBe(true);
  gone.abort();
  await expect(waits).rejects.toThrow('cancelled');
  expect(locks.tryTake(two, named('z'), 'shared')).toBe(true);
  expect(locks.free(one, named('x'), 'exclusive')).toBe(true);
  expect(locks.tryTake(two, named('x'), 'shared')).toBe(false);
});

test('who would wait in a circle is refused, through any number of sessions and from shared to exclusive', async () => {
  const locks = new AdvisoryLocks();
  const sessions = [{}, {}, {}];
  for (const [i, session] of sessions.entries()) expect(locks.tryTake(session, named(String(i)), 'exclusive')).toBe(true);
  const taken = [0, 1].map((i) => locks.take(sessions[i]!, named(String(i + 1)), 'exclusive', signal));
  await expect(locks.take(sessions[2]!, named('0'), 'shared', signal)).rejects.toMatchObject({ facts: { reason: 'deadlock' } });
  expect(locks.free(sessions[2]!, named('2'), 'exclusive')).toBe(true);
  await taken[1];
  expect(locks.free(sessions[1]!, named('1'), 'exclusive')).toBe(true);
  await taken[0];

  const [one, two, three] = [{}, {}, {}];
  for (const session of [one, two]) expect(locks.tryTake(session, named('s'), 'shared')).toBe(true);
  const third = locks.take(three, named('s'), 'exclusive', signal);
  const raised = locks.take(one, named('s'), 'exclusive', signal);
  await expect(locks.take(two, named('s'), 'exclusive', signal)).rejects.toMatchObject({ facts: { reason: 'deadlock' } });
  expect(locks.free(two, named('s'), 'shared')).toBe(true);
  await raised;
  for (const mode of ['exclusive', 'shared'] as const) expect(locks.free(one, named('s'), mode)).toBe(true);
  await third;
});
