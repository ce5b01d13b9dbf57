/**
 * Answers on their way out: what encoding alone takes of a materialised answer, and a whole export over HTTP, question
 * included. Beside them DuckDB's COPY to a file and apache-arrow's own writer over the same record batches.
 */
import { request } from 'node:http';
import { rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { tableFromIPC, tableToIPC } from 'apache-arrow';
import type { Dictionary, Vector } from '../../src/log/values/columns.ts';
import { VectorBuilder } from '../../src/log/values/vector-builder.ts';
import type { ColumnType } from '../../src/log/values/value.ts';
import { writeArrowPieces } from '../../src/planner/formats/arrow-rows.ts';
import { writeCsvChunks } from '../../src/planner/formats/csv-rows.ts';
import { writeParquetPieces } from '../../src/planner/formats/parquet-rows.ts';
import type { OutputBatch } from '../../src/planner/planner-contract.ts';
import { AnnalsServer } from '../annals-server.ts';
import type { BenchContext } from '../context.ts';
import { quotient } from '../report.ts';
import { orderCells, orderColumns, orderCsv, orderJson, orders } from '../workload.ts';

const rowsOfABatch = 8_192;
const types: readonly ColumnType[] = [
  'string',
  'string',
  'string',
  'string',
  'number',
  'integer',
  'integer',
  'boolean',
  'string',
];
const columns = orderColumns.map((name, i) => ({ name, type: types[i]! }));

interface Passage {
  readonly bytes: number;
  readonly ms: number;
  /** Longest time between two pieces: how long others waited. */
  readonly longestMs: number;
}

export async function exportRows({ report, directory, rows, repeats, port }: BenchContext): Promise<void> {
  const answer = { columns, batches: materialised(rows) };
  const shape = { unit: 'MB/s', better: 'larger' } as const;
  const rate = ({ bytes, ms }: Passage): number => bytes / 1_000 / ms;
  const title = (what: string): string => `${what}, ${rows.toLocaleString('en')} rows of ${columns.length} columns`;

  const none = new Map<string, string>();
  const encoders = [
    ['CSV', () => writeCsvChunks(answer)],
    ['Arrow', () => writeArrowPieces(answer, none)],
    ['Parquet', () => writeParquetPieces(answer, none)],
  ] as const;
  for (const [format, encode] of encoders) {
    const passages = Array.from({ length: repeats + 1 }, () => drained(encode())).slice(1);
    const longest = Math.max(...passages.map(({ longestMs }) => longestMs)).toFixed(1);
    const note = `${(passages[0]!.bytes / 1e6).toFixed(0)} MB; longest hold of the event loop ${longest} ms`;
    report.add({ ...shape, measure: title(`encode ${format}`), product: 'annals', samples: passages.map(rate), note });
    if (format !== 'Arrow') continue;
    const table = tableFromIPC(Buffer.concat([...encode()]));
    const samples = Array.from({ length: repeats + 1 }, () => {
      const began = performance.now();
      return tableToIPC(table, 'stream').length / 1_000 / (performance.now() - began);
    }).slice(1);
    report.add({
      ...shape,
      measure: title('encode Arrow'),
      product: 'apache-arrow tableToIPC',
      samples,
      note: 'columns already Arrow',
    });
  }

  const server = await AnnalsServer.start(directory, 'export', port());
  try {
    await server.registerOrders();
    await server.ingest('Purchase', orders(0, rows, orderJson), rows);
    const sql = `SELECT ${orderColumns.join(', ')} FROM Purchase`;
    for (const [format, name] of [
      ['csv', 'CSV'],
      ['arrow', 'Arrow'],
      ['ndjson', 'NDJSON'],
      ['parquet', 'Parquet'],
    ] as const) {
      const path = `/export?${new URLSearchParams({ sql, format }).toString()}`;
      await received(server, path);
      const passages: Passage[] = [];
      for (let repeat = 0; repeat < repeats; repeat++) passages.push(await received(server, path));
      const note = `${(passages[0]!.bytes / 1e6).toFixed(0)} MB over HTTP, question included`;
      report.add({ ...shape, measure: title(`export ${name}`), product: 'annals', samples: passages.map(rate), note });
      if (format !== 'csv' && format !== 'parquet') continue;
      const samples = await duckdbCopies(directory, rows, format, repeats);
      report.add({
        ...shape,
        measure: title(`export ${name}`),
        product: 'DuckDB',
        samples,
        note: 'COPY to a file, one thread, in process',
      });
      if (format === 'csv') report.figure('export.csv', quotient(passages.map(rate), samples));
    }
  } finally {
    await server.stop();
  }
}

/** The orders as the store would give them: few distinct texts as codes, the others as bytes. */
function materialised(count: number): OutputBatch[] {
  const dictionaries = columns.map(() => new Texts());
  const coded = new Set(['region', 'category', 'customer']);
  const batches: OutputBatch[] = [];
  for (let from = 0; from < count; from += rowsOfABatch) {
    const length = Math.min(rowsOfABatch, count - from);
    const cells = Array.from({ length }, (_, i) => orderCells(from + i));
    const vectors = columns.map(({ name, type }, c): Vector => {
      if (coded.has(name)) {
        const dictionary = dictionaries[c]!;
        const values = Int32Array.from(cells, (row) => dictionary.add(row[c] as string));
        return { kind: 'dict', values, dictionary, nulls: null };
      }
      const builder = new VectorBuilder(type, length);
      for (const row of cells) builder.append(type === 'integer' ? BigInt(row[c]!) : row[c]!);
      return builder.build();
    });
    batches.push({ columns: vectors, selection: null, first: 0, count: length });
  }
  return batches;
}

class Texts implements Dictionary {
  readonly #texts: string[] = [];
  readonly #codes = new Map<string, number>();

  get size(): number {
    return this.#texts.length;
  }

  text(code: number): string {
    return this.#texts[code]!;
  }

  codeOf(text: string): number {
    return this.#codes.get(text) ?? -1;
  }

  add(text: string): number {
    let code = this.#codes.get(text);
    if (code === undefined) {
      code = this.#texts.push(text) - 1;
      this.#codes.set(text, code);
    }
    return code;
  }
}

function drained(pieces: Iterable<Uint8Array>): Passage {
  const began = performance.now();
  let bytes = 0;
  let longestMs = 0;
  let last = began;
  for (const piece of pieces) {
    bytes += piece.length;
    const now = performance.now();
    longestMs = Math.max(longestMs, now - last);
    last = now;
  }
  return { bytes, ms: performance.now() - began, longestMs };
}

function received(server: AnnalsServer, path: string): Promise<Passage> {
  return new Promise((resolve, reject) => {
    const began = performance.now();
    const asked = request({ port: server.port, path, headers: server.headers }, (response) => {
      let bytes = 0;
      response.on('data', (chunk: Buffer) => (bytes += chunk.length));
      response.on('error', reject);
      response.on('end', () => {
        if (response.statusCode === 200) resolve({ bytes, ms: performance.now() - began, longestMs: 0 });
        else reject(new Error(`${path}: ${response.statusCode}`));
      });
    });
    asked.on('error', reject);
    asked.end();
  });
}

/** MB/s of the same rows out of a DuckDB table. */
async function duckdbCopies(directory: string, rows: number, format: 'csv' | 'parquet', repeats: number): Promise<number[]> {
  const source = join(directory, 'orders.csv');
  const target = join(directory, `orders-out.${format}`);
  writeFileSync(source, orders(0, rows, orderCsv));
  const instance = await DuckDBInstance.create(':memory:', { threads: '1' });
  const connection = await instance.connect();
  try {
    await connection.run(
      `CREATE TABLE orders AS SELECT * FROM read_csv('${source}', header = false, names = ${JSON.stringify(orderColumns).replaceAll('"', "'")})`,
    );
    const samples: number[] = [];
    for (let repeat = 0; repeat <= repeats; repeat++) {
      const began = performance.now();
      await connection.run(`COPY orders TO '${target}' (FORMAT ${format}${format === 'csv' ? ', HEADER' : ''})`);
      const ms = performance.now() - began;
      if (repeat > 0) samples.push(statSync(target).size / 1_000 / ms);
    }
    return samples;
  } finally {
    connection.closeSync();
    rmSync(source, { force: true });
    rmSync(target, { force: true });
  }
}
