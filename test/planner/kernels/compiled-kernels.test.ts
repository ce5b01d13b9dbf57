import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
// @ts-expect-error a script without types
import { compiledModule } from '../../../scripts/kernels.mjs';

test('the committed kernels are what the compiler makes of their source: `npm run kernels`', async () => {
  const committed = readFileSync(new URL('../../../src/planner/kernels/compiled-kernels.ts', import.meta.url), 'utf8');
  expect(await (compiledModule as (name: string) => Promise<string>)('column-kernels')).toBe(committed);
}, 60_000);
