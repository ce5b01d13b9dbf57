/**
 * What a verb of the command line loads before it does anything: a question to a running server, or `--help`, waits for no store.
 * Followed through the imports as they are written; what is imported when it is needed is not among it.
 */
import { readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '../src');
/** An import or re-export of values: types alone are gone when a file is compiled. */
const valueImport = /^(?:import|export)\s+(?!type\s)(?:([^'"]*?)\s+from\s+)?'([^']+)';/gm;

function loads(file: string, found = new Set<string>()): Set<string> {
  if (found.has(file)) return found;
  found.add(file);
  for (const [, names, from] of readFileSync(join(root, file), 'utf8').matchAll(valueImport)) {
    const named = /^\{([^}]*)\}$/s.exec(names ?? '')?.[1];
    if (named?.split(',').every((name) => /^\s*(type\s.*)?$/s.test(name))) continue;
    if (from!.startsWith('.')) loads(relative(root, join(root, dirname(file), from!)), found);
    else found.add(from!);
  }
  return found;
}

const store = /^(service|projections\/|planner\/(planner|executor|operators)|doors\/http\/(server|routes)|log\/log\.ts)/;
const large = ['apache-arrow', 'fastify', 'zod', 'hyparquet-writer', 'prom-client'];

test('the program loads its verbs when they are asked for', () => {
  const loaded = [...loads('main.ts')];
  expect(loaded.filter((name) => name.startsWith('cli/')).toSorted()).toEqual(['cli/exit-codes.ts']);
  expect(loaded.filter((name) => store.test(name) || large.includes(name))).toEqual([]);
});

/** Some 0.5 to 2 ms of CPU each, and 15 for what the table of settings brings: `annals --help` and a question take below 150. */
test.each([
  ['main.ts', 6],
  ['cli/query.ts', 16],
])('%s loads at most %i files and packages', (file, most) => {
  const loaded = [...loads(file)];
  expect(loaded).not.toContain('config.ts');
  expect(loaded.length, loaded.join(' ')).toBeLessThanOrEqual(most);
});

test.each(['query', 'export', 'ingest', 'branch', 'token', 'proof'])(
  'what of %s works on a running server loads no store',
  (verb) => {
    const loaded = [...loads(`cli/${verb}.ts`)];
    expect(loaded).toContain('cli/remote-server.ts');
    expect(loaded.filter((name) => store.test(name) || large.includes(name))).toEqual([]);
  },
);

test('whoever works on a directory loads the store and no listener', () => {
  const loaded = [...loads('service.ts')];
  expect(loaded).toContain('projections/projections.ts');
  expect(loaded.filter((name) => name.startsWith('doors/http/server') || large.includes(name))).toEqual([]);
});
