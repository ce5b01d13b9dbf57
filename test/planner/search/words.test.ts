/** Words that capitals part are found as they are written in small letters, and the other way round; BOOLEAN reads parentheses. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { inlineWorker } from '../../../src/log/workers.ts';
import { MemoryDisk } from '../../../src/log/memory-disk.ts';
import { TestStore } from '../../harness.ts';

const texts = [
  'The YouTube channel',
  'GitHub and PostgreSQL',
  'a youtube video',
  'you push the tube',
  'Über ÄpfelBaum, HTTPServer42',
  'github page; YouTube YouTube',
  'foo bar',
  'foo latte',
  'bar latte',
];
let store: TestStore;

beforeAll(async () => {
  const settings = {
    SERVICE_IN_MEMORY: 'false',
    SERVICE_DATA_DIR: '/data',
    SERVICE_WAL_SYNC: 'off',
    SERVICE_KEK: '07'.repeat(32),
  };
  const derived = { machineBytes: 2 ** 31, checkpointBytes: 2 ** 40, segmentRows: 8 };
  store = await TestStore.open('2024-01-01', settings, { disk: new MemoryDisk(), startKept: inlineWorker, derived });
  await store.register('Text', { id: 'integer', body: 'string' }, 'id');
  await store.put(
    'Text',
    texts.map((body, id) => ({ id, body })),
  );
});
afterAll(async () => {
  await store.close();
});

/** Numbers of the texts, by index and by each text itself. */
async function found(query: string, mode: string): Promise<number[]> {
  const match = `MATCH(body, '${query}'${mode === 'ANY' ? '' : `, ${mode}`})`;
  const indexed = await store.column(`SELECT id FROM Text WHERE ${match} ORDER BY id`);
  const plain = await store.column(`SELECT id FROM (SELECT id, body FROM Text) q WHERE ${match} ORDER BY id`);
  expect(plain).toEqual(indexed);
  return indexed.map(Number);
}

describe('words that capitals part', () => {
  test.each([
    ['youtube', 'ANY', [0, 2, 5]],
    ['YOUTUBE', 'ALL', [0, 2, 5]],
    ['YouTube', 'ANY', [0, 2, 3, 5]],
    ['YouTube', 'ALL', [0, 2, 3, 5]],
    ['YouTube video', 'ALL', [2]],
    ['video YouTube', 'LAST', [0, 2, 3, 5]],
    ['github', 'ANY', [1, 5]],
    ['GitHub page', 'ALL', [5]],
    ['postgresql', 'BOOLEAN', [1]],
    ['GitHub NOT page', 'BOOLEAN', [1]],
    ['äpfelbaum', 'ANY', [4]],
    ['httpserver', 'ANY', [4]],
    ['postgre*', 'ANY', [1]],
    ['utub', 'INFIX', [0, 2, 5]],
    ['sql', 'SUFFIX', [1]],
    ['yutube', 'FUZZY', [0, 2, 5]],
    ['youtubes', 'STEMMED', [0, 2, 5]],
    ['the youtube channel', 'PHRASE', [0]],
    ['youtube channel', 'PHRASE', [0]],
    ['the youtube', 'PHRASE', [0]],
    ['The YouTube channel', 'PHRASE', [0]],
    ['youtube youtube', 'PHRASE', [5]],
    ['page youtube youtube', 'PHRASE', [5]],
    ['you channel', 'PHRASE', []],
    ['github and postgresql', 'PHRASE', [1]],
    ['and postgre sql', 'PHRASE', [1]],
    ['youtube tube', 'PHRASE', []],
  ])('%s, %s', async (query, mode, expected) => {
    expect(await found(query, mode)).toEqual(expected);
  });

  test('are marked as they are written', async () => {
    const [row] = await store.rows(
      "SELECT id FROM Text WHERE MATCH(body, 'youtube channel') COMPUTE shown AS HIGHLIGHT(body) ORDER BY id LIMIT 1",
    );
    expect(row!['shown']).toBe('The <em>YouTube</em> <em>channel</em>');
  });
});

describe('BOOLEAN', () => {
  test.each([
    ['foo AND (bar OR latte)', [6, 7]],
    ['(foo AND bar) OR (bar AND latte)', [6, 8]],
    ['latte NOT (foo OR youtube)', [8]],
    ['(bar)', [6, 8]],
    ['NOT (foo OR bar OR youtube OR github OR tube)', [4]],
    ['foo AND bar OR latte', [6, 7, 8]],
  ])('%s', async (query, expected) => {
    expect(await found(query, 'BOOLEAN')).toEqual(expected);
  });

  test.each(['foo AND (bar', 'foo) AND bar', `${'('.repeat(40)}foo${')'.repeat(40)}`])('refuses %s', async (query) => {
    expect((await store.refusal(`SELECT id FROM Text WHERE MATCH(body, '${query}', BOOLEAN)`)).code).toBe('REL_INVALID');
  });
});
