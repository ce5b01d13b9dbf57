/**
 * Questions and their answers as files: `queries/*.test`, about the history in `people.ts`. A block is a statement that
 * ends in `;`, then the column names and the rows, or `! CODE detail`. Those of `wide-*.test` are asked in the wide dialect. `npm test -- --update` writes what is answered
 * now; the difference is the review.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ServiceError } from '../../src/errors.ts';
import { rowsOf, shownCell, type TestStore } from '../harness.ts';
import { openPeople } from './people.ts';

const directory = join(import.meta.dirname, 'queries');
let store: TestStore;

beforeAll(async () => {
  store = await openPeople();
});
afterAll(async () => {
  await store.close();
});

describe('answers', () => {
  const files = readdirSync(directory).filter((name) => name.endsWith('.test'));
  test('are there', () => expect(files.length).toBeGreaterThan(5));

  test.each(files)('%s', async (name) => {
    const path = join(directory, name);
    store.dialect = name.startsWith('wide-') ? 'wide' : 'spec';
    const blocks = readFileSync(path, 'utf8').trimEnd().split(/\n\n+/);
    const answered: string[] = [];
    for (const block of blocks) answered.push(await answeredBlock(block));
    await expect(`${answered.join('\n\n')}\n`).toMatchFileSnapshot(path);
  });
});

async function answeredBlock(block: string): Promise<string> {
  const lines = block.split('\n');
  const end = lines.findIndex((line) => line.endsWith(';'));
  if (end < 0) return block;
  const head = lines.slice(0, end + 1);
  const sql = head.filter((line) => !line.startsWith('#')).join('\n');
  return [...head, ...(await shownAnswer(sql))].join('\n');
}

async function shownAnswer(sql: string): Promise<string[]> {
  try {
    const answer = await store.answer(sql);
    const names = answer.columns.map(({ name }) => name);
    const rows = rowsOf(answer).map((row) => answer.columns.map(({ name, type }) => shownCell(row[name]!, type)).join(' | '));
    return [names.join(' | '), ...rows];
  } catch (error) {
    if (error instanceof ServiceError) return [`! ${error.code} ${error.message}`];
    throw error;
  }
}
