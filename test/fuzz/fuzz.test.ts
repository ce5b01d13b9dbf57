import { expect, test } from 'vitest';
import { seedBase } from '../runner/seed.ts';
import { tell } from '../runner/tell.ts';
import { whole } from '../runner/turn.ts';
import { fuzz, loadTarget, targetNames } from './fuzz.ts';

const inputs = whole ? 3_000 : 300;
tell(`${inputs} inputs of each target, seed ${seedBase} (npm run fuzz -- --all --n 1e6 --seed ${seedBase})`);

test.each(targetNames())('%s: no input of a short run breaks it', async (name) => {
  expect(fuzz(await loadTarget(name), inputs, seedBase).failure).toBeNull();
});

test('the broken target is found out, and the failure is found again by its number', async () => {
  const canary = await loadTarget('canary');
  const { failure } = fuzz(canary, 3000, 11);
  expect(failure?.what).toContain('read past the end');
  const again = fuzz(canary, 1, 11, failure!.input).failure;
  expect(again).toMatchObject({ input: failure!.input, bytesHex: failure!.bytesHex });
});
