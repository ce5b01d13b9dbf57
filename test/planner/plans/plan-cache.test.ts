import { expect, test } from 'vitest';
import { PlanCache } from '../../../src/planner/plans/plan-cache.ts';

test('other branches’ plans push each other out, never those of pinned branches', () => {
  const cache = new PlanCache<{ of: string }>({ plansMax: 8, pinned: new Set(['keep']) });
  cache.set('keep', 'a', { of: 'keep' });
  for (let i = 0; i < 100; i++) cache.set('main', `m${i}`, { of: 'main' });
  expect(cache.get('keep', 'a')).toEqual({ of: 'keep' });
  expect(cache.get('main', 'm0')).toBeUndefined();
  expect(cache.get('main', 'm99')).toEqual({ of: 'main' });
});

test('names are exact: a branch called alike is not pinned', () => {
  const cache = new PlanCache<object>({ plansMax: 8, pinned: new Set(['keep']) });
  for (const branch of ['keep/child', 'Keep', 'keep ']) {
    cache.set(branch, branch, {});
    for (let i = 0; i < 100; i++) cache.set('main', `m${i}`, {});
    expect(cache.get(branch, branch)).toBeUndefined();
  }
});

test('pinned branches have their part and no more', () => {
  const cache = new PlanCache<object>({ plansMax: 8, pinned: new Set(['keep']) });
  cache.set('main', 'm', {});
  for (let i = 0; i < 100; i++) cache.set('keep', `k${i}`, {});
  expect(cache.get('main', 'm')).toBeDefined();
  expect(cache.get('keep', 'k97')).toBeUndefined();
  expect([cache.get('keep', 'k98'), cache.get('keep', 'k99')]).toEqual([{}, {}]);
});

test('without pinned branches all of it is everybody’s', () => {
  const cache = new PlanCache<object>({ plansMax: 8, pinned: new Set() });
  for (let i = 0; i < 8; i++) cache.set('main', `m${i}`, {});
  for (let i = 0; i < 8; i++) expect(cache.get('main', `m${i}`)).toBeDefined();
});
