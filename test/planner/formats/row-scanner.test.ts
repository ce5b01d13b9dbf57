import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
// @ts-expect-error a script without types
import { compiledModule } from '../../../scripts/kernels.mjs';

it('runs what its source says', async () => {
  const carried = readFileSync(new URL('../../../src/planner/formats/row-scanner-code.ts', import.meta.url), 'utf8');
  expect(await (compiledModule as (name: string) => Promise<string>)('row-scanner')).toBe(carried);
}, 60_000);
