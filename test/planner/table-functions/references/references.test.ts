/**
 * Each function of the domain beside a slow one that is written from its rules: small worlds at random, asked at bases of every branch, path
 * and axis. A run tries a few bases, which move with the seed; `npm run quality -- references` tries a hundred.
 */
import { expect, test } from 'vitest';
import { seedBase } from '../../../runner/seed.ts';
import { whole } from '../../../runner/turn.ts';
import { compareWorlds } from './compare.ts';

/** Names of sections 2 to 5, less the judgements, which are made while a world is. */
const functions = 25;

test('functions of the domain are what their rules say, at bases of every branch, path and axis', {
  timeout: 120_000,
}, async () => {
  const { differences, questions } = await compareWorlds(seedBase, whole ? 100 : 8);
  expect(differences).toEqual([]);
  expect(questions.size).toBe(functions);
});
