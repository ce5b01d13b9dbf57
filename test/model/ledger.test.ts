/** The stories that `fixtures/ledger/README.md` tells are what the store answers, filing by filing. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { formatInstant } from '../../src/log/values/timestamp.ts';
import { readIngest } from '../../src/planner/formats/ingest-reader.ts';
import { analyst, TestStore } from '../harness.ts';

const folder = join(import.meta.dirname, '../../fixtures/ledger');
const files = readdirSync(folder)
  .filter((name) => name !== 'README.md')
  .toSorted();

let store: TestStore;
/** Instant up to which each filing is believed. */
const believed: string[] = [];

beforeAll(async () => {
  store = await TestStore.open('2026-01-01');
  for (const file of files) {
    store.clock.wallNs += 1_000_000_000n;
    await store.invoke(analyst, 'ingest', async (invocation) => {
      const definition = invocation.snapshot().catalog.type('Cover') ?? null;
      const source = (async function* () {
        yield readFileSync(join(folder, file));
      })();
      for await (const { rows, rejections } of readIngest(source, { definition, batchRows: 1000, batchBytes: 1e6 })) {
        expect(rejections).toEqual([]);
        const provenance = { source: file, method: 'ingest', confidence: 1, derivedFrom: null };
        const outcome = await invocation.submit({
          kind: 'put-rows',
          type: 'Cover',
          rows,
          atomic: true,
          createType: true,
          provenance,
        });
        believed.push(formatInstant(outcome.systemFromLast));
      }
    });
  }
});

afterAll(() => store.close());

async function coverOn(day: string, vessel: string, filing: number): Promise<string> {
  const rows = await store.rows(
    `SELECT insurer, status FROM Cover AS OF SYSTEM TIME '${believed[filing]}' WHERE id = '${vessel}' AND valid_from <= '${day}' AND valid_to > '${day}'`,
  );
  return rows.map(({ insurer, status }) => (insurer === null ? String(status) : String(insurer))).join(' and ');
}

describe('who covered the Aurelia on 10 March 2024', () => {
  const answers = ['Northgate Mutual', 'Northgate Mutual', 'cancelled', 'Baltic Indemnity'];
  for (const [filing, answer] of answers.entries()) {
    it(`as believed after ${files[filing]}: ${answer}`, async () => {
      expect(await coverOn('2024-03-10', 'aurelia', filing)).toBe(answer);
    });
  }
});

describe('the other stories', () => {
  const stories: [string, string, number, string][] = [
    ['ingrid', '2024-03-10', 2, 'suspended'],
    ['ingrid', '2024-03-10', 3, 'Harbour & Lee'],
    ['ingrid', '2024-03-15', 3, 'suspended'],
    ['ingrid', '2024-03-20', 3, 'Harbour & Lee'],
    ['estrella', '2024-02-01', 2, 'cancelled'],
    ['estrella', '2024-02-01', 3, 'Harbour & Lee'],
    ['westerly', '2024-03-07', 3, 'Harbour & Lee'],
    ['westerly', '2024-03-10', 3, 'cancelled'],
    ['westerly', '2024-03-22', 3, 'Tern Marine'],
  ];
  for (const [vessel, day, filing, answer] of stories) {
    it(`${vessel} on ${day}, as believed after ${files[filing]}: ${answer}`, async () => {
      expect(await coverOn(day, vessel, filing)).toBe(answer);
    });
  }

  it('on every day and after every filing, each vessel has exactly one cover', async () => {
    for (let filing = 0; filing < files.length; filing++) {
      for (const day of ['2024-01-01', '2024-02-20', '2024-03-12', '2024-03-19', '2024-05-01', '2025-01-01']) {
        const rows = await store.rows(
          `SELECT id, COUNT(*) AS n FROM Cover AS OF SYSTEM TIME '${believed[filing]}' WHERE valid_from <= '${day}' AND valid_to > '${day}' GROUP BY id`,
        );
        expect(rows.filter(({ n }) => n !== 1n)).toEqual([]);
        expect(rows).toHaveLength(24);
      }
    }
  });
});
