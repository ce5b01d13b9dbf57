import { expect, test } from 'vitest';
import { fuzz, loadTarget, targetNames } from './fuzz.ts';

test.each(targetNames())('%s: no input of a short run breaks it', async (name) => {
  expect(fuzz(await loadTarget(name), 3000, 11).failure).toBeNull();
});

test('the broken target is found out, and the failure is found again by its number', async () => {
  const canary = await loadTarget('canary');
  const { failure } = fuzz(canary, 3000, 11);
  expect(failure?.what).toContain('read past the end');
  const again = fuzz(canary, 1, 11, failure!.input).failure;
  expect(again).toMatchObject({ input: failure!.input, bytesHex: failure!.bytesHex });
});
