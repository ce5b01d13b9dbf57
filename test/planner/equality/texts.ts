/**
 * MATCH over every column of texts there is, a column of JSON among them, at sizes around a block, an index and a segment: what indexes find is what the rows'
 * texts say, whoever stores or makes them. Columns are declared, made (`_pk`, `tenant_id`, `namespace_path`, an undeclared `id`) and
 * inherited (all of these read on a fork of the branch that holds them, beside rows of its own).
 */
import type { Caller } from '../../../src/governance/caller.ts';
import { inlineWorker } from '../../../src/log/threads/workers.ts';
import { MemoryDisk } from '../../../src/log/disk/memory-disk.ts';
import { analyst, type InputRow, type Row, rowsOf, TestStore } from '../../harness.ts';

export interface TextSizes {
  /** Rising. */
  readonly sizes: readonly number[];
  readonly segmentRows: number;
  /** Up to this many rows are ingested one by one, further ones by as many at a time as there were blocks of so many. */
  readonly singlyMax: number;
}

const writer: Caller = { ...analyst, path: 'whale/calf', tenant: 'whale' };
const columnSets = [
  ['body'],
  ['doc'],
  ['doc', 'body'],
  ['id'],
  ['_pk'],
  ['tenant_id'],
  ['namespace_path'],
  ['id', 'body'],
  ['_pk', 'tenant_id'],
  ['body', 'namespace_path'],
];
/** A word of every row; one of a few; one of the last. */
const words = ['whale', 'seven', 'last'];

type Texts = Readonly<Record<string, string | null>>;

/** Statements whose answers were not what the texts say, and how many were asked. */
export async function textDifferences(
  request: TextSizes,
): Promise<{ readonly found: readonly string[]; readonly asked: number }> {
  const found: string[] = [];
  let asked = 0;
  const check = async (store: TestStore, told: string, type: string, texts: readonly Texts[], branch = 'main'): Promise<void> => {
    const caller = { ...writer, branch };
    for (const columns of columnSets) {
      for (const word of words) {
        const match = `MATCH(${columns.join(', ')}, '${word}')`;
        const expected = texts.filter((each) => columns.some((column) => holds(each[column] ?? null, word))).length;
        const ask = async (sql: string, count: (rows: readonly Row[], hits: number) => number, wanted: number): Promise<void> => {
          asked++;
          const answer = await store.answer(sql, caller);
          const own = count(rowsOf(answer), answer.estimatedTotalHits);
          if (own !== wanted) found.push(`${told}, ${branch}: ${own} instead of ${wanted}: ${sql}`);
        };
        const n = ([row]: readonly Row[]): number => Number(row!['n']);
        await ask(`SELECT COUNT(*) AS n FROM ${type} WHERE ${match}`, n, expected);
        // Of no text at all nothing is said.
        const known = texts.filter((each) => columns.some((column) => (each[column] ?? null) !== null)).length;
        await ask(`SELECT COUNT(*) AS n FROM ${type} WHERE NOT ${match}`, n, known - expected);
        await ask(
          `SELECT _pk, system_from FROM ${type} WHERE ${match} ORDER BY _score DESC LIMIT 3`,
          (_, hits) => hits,
          expected,
        );
      }
    }
  };
  for (const declares of [true, false]) {
    const type = declares ? 'Declared' : 'Made';
    const store = await openStore(request);
    try {
      await register(store, type, declares);
      const texts: Texts[] = [];
      for (const size of request.sizes) {
        const step = size <= request.singlyMax ? 1 : Math.ceil(size / request.singlyMax);
        while (texts.length < size) {
          const rows = rowsFrom(type, texts.length, Math.min(step, size - texts.length), declares, size);
          await store.put(type, rows, writer);
          for (const row of rows) texts.push(textsOf(row));
        }
        await check(store, `${size} rows of ${type}, singly`, type, texts);
        const bulk = `${type}${size}`;
        await register(store, bulk, declares);
        const rows = rowsFrom(bulk, 0, size, declares, size);
        await store.put(bulk, rows, writer);
        await check(store, `${size} rows of ${type}, in bulk`, bulk, rows.map(textsOf));
        const branch = `b${size}`;
        await store.rows(`BRANCH ${branch} FROM main`, writer);
        const own = rowsFrom(bulk, size, 3, declares, size + 3);
        await store.put(bulk, own, { ...writer, branch });
        await check(store, `${size} rows of ${type}, inherited`, bulk, [...rows, ...own].map(textsOf), branch);
      }
    } finally {
      await store.close();
    }
  }
  return { found, asked };
}

async function openStore({ segmentRows }: TextSizes): Promise<TestStore> {
  const settings = {
    SERVICE_IN_MEMORY: 'false',
    SERVICE_DATA_DIR: '/data',
    SERVICE_WAL_SYNC: 'off',
    SERVICE_KEK: '07'.repeat(32),
  };
  const derived = { machineBytes: 2 ** 31, checkpointBytes: 2 ** 40, segmentRows };
  return TestStore.open('2024-01-01', settings, { disk: new MemoryDisk(), startKept: inlineWorker, derived });
}

async function register(store: TestStore, type: string, declares: boolean): Promise<void> {
  await store.register(
    type,
    declares ? { id: 'string', body: 'string', doc: 'json' } : { body: 'string', doc: 'json' },
    declares ? 'id' : null,
  );
}

/** Of rows without a declared `id`, every other one is sent with its key alone. */
function rowsFrom(type: string, from: number, count: number, declares: boolean, size: number): InputRow[] {
  return Array.from({ length: count }, (_, k) => {
    const i = from + k;
    const word = i === size - 1 ? 'last' : i % 7 === 0 ? 'seven' : 'whale';
    const body = i % 11 === 10 ? null : `${type} whale ${word} ${i}`;
    // Names of members are no texts; a quote makes the string one that is written otherwise.
    const doc = i % 5 === 4 ? null : { last: [i, word], seven: { whale: i % 2 === 0 ? `"${type}` : true } };
    const key = `${word} whale ${i}`;
    return declares || i % 2 === 0 ? { id: key, body, doc } : { _pk: key, body, doc };
  });
}

function textsOf(row: InputRow): Texts {
  const key = String(row['id'] ?? row['_pk']);
  const doc = row['doc'] as { readonly last: readonly [number, string] } | null;
  return {
    body: row['body'] as string | null,
    doc: doc && doc.last[1],
    id: key,
    _pk: key,
    tenant_id: writer.tenant,
    namespace_path: writer.path,
  };
}

/** Texts of letters, digits, spaces and slashes. */
function holds(text: string | null, word: string): boolean {
  return (
    text !== null &&
    text
      .toLowerCase()
      .split(/[^a-z]+/)
      .includes(word)
  );
}
