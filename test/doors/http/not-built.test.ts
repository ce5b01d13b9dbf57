/**
 * What the dialect knows and this version has no projection for (text, vectors, graph, identity) answers with one typed
 * error that names what it needs, through every entrance that takes SQL.
 */
import { spawn } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { StoreWorld } from './store-world.ts';
import { loading, running } from '../../runner/running.ts';

/** By what they need. */
const constructs: Readonly<Record<string, readonly string[]>> = {
  'vectors of images, faces and voices, which nothing makes': ["SIMILAR_IMAGE('media-1')"],
};

type Ask = (sql: string) => Promise<{ status: number; text: string }>;

let world: StoreWorld;
beforeAll(async () => {
  world = await StoreWorld.open();
  await world.call('POST', '/types', {
    name: 'Doc',
    properties: { id: 'string', name: 'string', n: 'integer', emb: { type: 'vector', dims: 2 } },
  });
  await world.call('POST', '/ingest?object_type=Doc', [{ id: 'a', name: 'Ada', n: 1 }]);
});
afterAll(() => world.close());

const posted =
  (route: string): Ask =>
  (sql) =>
    world.call('POST', route, { sql });

const entrances: Readonly<Record<string, Ask>> = {
  '/query': posted('/query'),
  '/query/arrow': posted('/query/arrow'),
  '/query/stream': posted('/query/stream'),
  '/export': (sql) => world.call('GET', `/export?format=csv&sql=${encodeURIComponent(sql)}`),
};

const every = Object.entries(constructs).flatMap(([need, statements]) => statements.map((sql) => ({ need, sql })));

describe.each(Object.entries(entrances))('%s', (_, ask) => {
  test.each(every)('$sql', async ({ need, sql }) => {
    const { status, text } = await ask(sql);
    expect([status, text]).toEqual([501, expect.stringContaining('REL_NOT_IMPLEMENTED')]);
    const { detail } = JSON.parse(text) as { detail: string };
    expect(detail).toMatch(/ is not implemented: it needs /);
    expect(detail.endsWith(need)).toBe(true);
  });
});

test('annals query says what each needs', async () => {
  const { door, token } = world;
  const asked = Object.values(constructs).map(([sql]) => sql!);
  // The sources as they are, not what was built last; one process for all.
  const entry = `const { main } = await import(${JSON.stringify(running('src/main').href)});
    for (const sql of ${JSON.stringify(asked)}) {
      await main(['query', sql]);
      console.error('ended with ' + process.exitCode);
    }`;
  const child = spawn(process.execPath, [...loading, '--input-type=module', '-e', entry], {
    env: { PATH: process.env['PATH'], ANNALS_URL: door.dataUrl, ANNALS_TOKEN: token },
  });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text));
  const code = await new Promise((resolve) => child.once('close', resolve));
  const lines = said.split(/ended with 3\n/);
  expect([code, lines.length, lines.at(-1)]).toEqual([3, asked.length + 1, '']);
  for (const [i, need] of Object.keys(constructs).entries()) {
    expect(lines[i]).toContain('REL_NOT_IMPLEMENTED');
    expect(lines[i]).toContain(`it needs ${need}`);
  }
});
