import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
// @ts-expect-error a script without types
import { compiledModule } from '../../../scripts/kernels.mjs';

test.each([
  ['column-kernels', 'compiled-kernels'],
  ['vector-kernels', 'vector-kernels-code'],
])(
  'what is committed of %s is what the compiler makes of its source: `npm run kernels`',
  async (source, target) => {
    const committed = readFileSync(new URL(`../../../src/planner/kernels/${target}.ts`, import.meta.url), 'utf8');
    expect(await (compiledModule as (name: string) => Promise<string>)(source)).toBe(committed);
  },
  60_000,
);
