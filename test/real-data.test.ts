/**
 * Real files, dirty where the world is: loaded by `annals ingest` into a data directory and over HTTP into the server
 * that opens it, then read back cell by cell and aggregated, and compared with what the raw files say when they are
 * read by other code. The files are no part of the project: without them this says so in one line and skips.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'csv-parse/sync';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { beginStore } from './harness.ts';
import { freePort } from './clients/free-port.ts';

const root = join(import.meta.dirname, '..');
const data = process.env['ANNALS_DATA_DIR'] ?? join(root, '../shared/data');
const present = existsSync(join(data, 'openflights/airports.dat'));
if (!present) console.log(`skipped: no real data in ${data} (ANNALS_DATA_DIR)`);

type Value = string | number | boolean | null;
type RawRow = Readonly<Record<string, Value>>;

interface DataSet {
  readonly type: string;
  readonly file: string;
  readonly by: 'cli' | 'http';
  /** Of a CSV without a header. */
  readonly columns?: readonly string[];
  readonly nullText?: string;
  readonly key?: string;
  readonly rows: number;
  /** A column of few values, to be counted by. */
  readonly group?: string;
  /** Columns that hold more than one kind of value. */
  readonly mixed?: readonly string[];
}

const airport = [
  'id',
  'name',
  'city',
  'country',
  'iata',
  'icao',
  'latitude',
  'longitude',
  'altitude',
  'timezone',
  'dst',
  'zone',
  'kind',
  'source',
];
const airline = ['id', 'name', 'alias', 'iata', 'icao', 'callsign', 'country', 'active'];
const route = [
  'airline',
  'airline_id',
  'origin',
  'origin_id',
  'destination',
  'destination_id',
  'codeshare',
  'stops',
  'equipment',
];

const dataSets: readonly DataSet[] = [
  {
    type: 'Airport',
    file: 'openflights/airports.dat',
    by: 'cli',
    columns: airport,
    nullText: '\\N',
    key: 'id',
    rows: 7698,
    group: 'country',
  },
  {
    type: 'Airline',
    file: 'openflights/airlines.dat',
    by: 'cli',
    columns: airline,
    nullText: '\\N',
    key: 'id',
    rows: 6162,
    group: 'active',
  },
  { type: 'Route', file: 'openflights/routes.dat', by: 'cli', columns: route, nullText: '\\N', rows: 67_663, group: 'stops' },
  { type: 'Abstract', file: 'cranfield/docs.ndjson', by: 'cli', key: 'id', rows: 1400 },
  { type: 'Question', file: 'cranfield/queries.ndjson', by: 'http', rows: 225 },
  { type: 'Judgement', file: 'cranfield/qrels.ndjson', by: 'http', rows: 1837, group: 'grade' },
  { type: 'Movie', file: 'vega/movies.json', by: 'http', rows: 3201, group: 'MPAA Rating', mixed: ['Title'] },
  { type: 'Country', file: 'vega/gapminder.json', by: 'cli', rows: 682, group: 'year' },
  { type: 'ZipCode', file: 'vega/zipcodes.csv', by: 'http', rows: 42_049, group: 'state' },
  { type: 'Birdstrike', file: 'vega/birdstrikes.csv', by: 'http', rows: 10_000, group: 'Wildlife Size' },
  { type: 'Stock', file: 'vega/stocks.csv', by: 'cli', rows: 560, group: 'symbol' },
  { type: 'Weather', file: 'vega/seattle-weather.csv', by: 'http', rows: 1461, group: 'weather' },
  { type: 'Employment', file: 'vega/us-employment.csv', by: 'cli', rows: 120 },
  { type: 'Flight', file: 'vega/flights-airport.csv', by: 'http', rows: 5366, group: 'origin' },
  { type: 'Commit', file: 'vega/github.csv', by: 'http', rows: 955 },
];

/** Where all is skipped, nothing would remove it. */
const directory = present ? mkdtempSync(join(tmpdir(), 'annals-real-data-')) : '';
let server: ChildProcess | undefined;
let url = '';
let token = '';

afterAll(() => {
  server?.kill('SIGKILL');
  rmSync(directory, { recursive: true, force: true });
});

describe.skipIf(!present)('real files', () => {
  beforeAll(async () => {
    await beginStore(directory);
    for (const set of dataSets.filter(({ by }) => by === 'cli')) {
      const { code, output } = await annals([
        'ingest',
        '--data-dir',
        directory,
        '--type',
        set.type,
        '--auto',
        ...(set.key ? ['--key', set.key] : []),
        ...(set.columns ? ['--columns', set.columns.join(',')] : []),
        ...(set.nullText ? ['--null', set.nullText] : []),
        join(data, set.file),
      ]);
      expect(code, output).toBe(0);
      expect(output.replaceAll(/(\d)\s(?=\d{3})/g, '$1')).toContain(`${set.rows} rows of ${set.type} written, 0 rejected`);
    }
    token = (await annals(['token', 'mint', '--data-dir', directory])).output.trim().split('\n').at(-1)!;
    await serve();
    for (const set of dataSets.filter(({ by }) => by === 'http')) {
      const reply = await post(
        `/ingest/auto?object_type=${set.type}`,
        readFileSync(join(data, set.file)),
        'application/octet-stream',
      );
      expect(reply).toMatchObject({ type: set.type, accepted: set.rows, rejected: 0, errors: [] });
    }
  }, 180_000);

  for (const set of dataSets) {
    describe(`${set.file}, by ${set.by}`, () => {
      const raw = present ? rawRows(set) : [];

      it('comes back whole, in its order, cell by cell', async () => {
        expect(raw).toHaveLength(set.rows);
        const { rows } = await query(`SELECT * FROM ${set.type}`);
        expect(rows).toHaveLength(set.rows);
        const differences = raw.flatMap((row, i) =>
          Object.keys(row)
            .filter((name) => !sameCell(row[name]!, rows[i]![name], set, name))
            .map((name) => `row ${i}, ${name}: ${JSON.stringify(row[name])} became ${JSON.stringify(rows[i]![name])}`),
        );
        expect(differences.slice(0, 10)).toEqual([]);
      });

      it('counts, sums, minima and maxima of its columns are those of the file', async () => {
        for (const name of Object.keys(raw[0]!)) {
          const given = raw.map((row) => row[name]!).filter((value) => value !== null && value !== '');
          const numbers = given.filter((value) => typeof value === 'number');
          const quoted = `"${name}"`;
          const isNumeric = given.length > 0 && numbers.length === given.length;
          const { rows } = await query(
            `SELECT COUNT(*) AS all_rows, COUNT(${quoted}) AS given${isNumeric ? `, SUM(${quoted}) AS total, MIN(${quoted}) AS low, MAX(${quoted}) AS high` : ''} FROM ${set.type}`,
          );
          const [answer] = rows as [Record<string, number>];
          expect(answer['all_rows']).toBe(set.rows);
          const empty = raw.filter((row) => row[name] === '').length;
          expect(answer['given']! - given.length, name).toSatisfy((more: number) => more >= 0 && more <= empty);
          if (!isNumeric) continue;
          expect(answer['low'], name).toBe(numbers.reduce((a, b) => Math.min(a, b)));
          expect(answer['high'], name).toBe(numbers.reduce((a, b) => Math.max(a, b)));
          const total = numbers.reduce((a, b) => a + b, 0);
          if (numbers.every(Number.isInteger)) expect(answer['total'], name).toBe(total);
          else
            expect(Math.abs(answer['total']! - total), name).toBeLessThanOrEqual(
              1e-9 * numbers.reduce((a, b) => a + Math.abs(b), 0),
            );
        }
      });

      if (set.group === undefined) return;
      it(`groups by ${set.group} as the file does`, async () => {
        const { rows } = await query(`SELECT "${set.group}" AS value, COUNT(*) AS n FROM ${set.type} GROUP BY "${set.group}"`);
        const expected = new Map<Value, number>();
        for (const row of raw) expected.set(row[set.group!]!, (expected.get(row[set.group!]!) ?? 0) + 1);
        expect(new Map(rows.map((row) => [row['value'] as Value, row['n'] as number]))).toEqual(expected);
      });
    });
  }

  it('a key of a file is its primary key', async () => {
    const { rows } = await query(`SELECT name, city FROM Airport WHERE _pk = '507'`);
    expect(rows).toEqual([{ name: 'London Heathrow Airport', city: 'London' }]);
  });

  it('leading zeros of zip codes are kept', async () => {
    const { rows } = await query(`SELECT city FROM ZipCode WHERE zip_code = '00501'`);
    expect(rows).toEqual([{ city: 'Holtsville' }]);
  });
});

/** The file as other code reads it: JSON.parse, or csv-parse with numbers where a whole column is numbers. */
function rawRows(set: DataSet): RawRow[] {
  const text = readFileSync(join(data, set.file), 'utf8');
  if (set.file.endsWith('.json')) return JSON.parse(text) as RawRow[];
  if (set.file.endsWith('.ndjson'))
    return text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as RawRow);
  const rows: Record<string, string>[] = parse(text, { columns: set.columns ? [...set.columns] : true });
  const numeric = new Set(
    Object.keys(rows[0]!).filter((name) => {
      const given = rows.map((row) => row[name]!).filter((value) => value !== '' && value !== set.nullText);
      return given.length > 0 && given.every((value) => /^-?(0|[1-9]\d*)(\.\d+)?$/.test(value));
    }),
  );
  const typed = (name: string, value: string): Value => {
    if (value === set.nullText) return null;
    if (!numeric.has(name)) return value;
    return value === '' ? null : Number(value);
  };
  return rows.map((row) => Object.fromEntries(Object.entries(row).map(([name, value]) => [name, typed(name, value)])));
}

function sameCell(sent: Value, read: unknown, set: DataSet, name: string): boolean {
  if (sent === read) return true;
  // CSV does not tell an empty text from none, save by quotes.
  if (sent === '' && read === null) return true;
  return set.mixed?.includes(name) === true && String(sent) === read;
}

async function annals(args: readonly string[]): Promise<{ code: number | null; output: string }> {
  const child = spawn(process.execPath, ['bin/annals', ...args], { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text));
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  return { code, output: code === 0 ? output : output + said };
}

async function serve(): Promise<void> {
  const [port, admin] = [await freePort(), await freePort()];
  const env = {
    ...process.env,
    SERVICE_DATA_DIR: directory,
    SERVICE_PORT: String(port),
    SERVICE_ADMIN_BIND: `127.0.0.1:${admin}`,
  };
  server = spawn(process.execPath, ['bin/annals', 'serve'], { cwd: root, env, stdio: ['ignore', 'ignore', 'pipe'] });
  url = `http://127.0.0.1:${port}`;
  await new Promise<void>((resolve, reject) => {
    let said = '';
    server!.stderr!.setEncoding('utf8').on('data', (text: string) => {
      said += text;
      if (said.includes('serves http')) resolve();
    });
    server!.once('exit', (code) => reject(new Error(`the server ended with ${code}: ${said}`)));
  });
}

async function post(path: string, body: string | Uint8Array<ArrayBuffer>, contentType: string): Promise<unknown> {
  const response = await fetch(url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': contentType },
    body,
  });
  const text = await response.text();
  expect(response.status, text.slice(0, 1000)).toBe(200);
  return JSON.parse(text);
}

async function query(sql: string): Promise<{ rows: Record<string, unknown>[] }> {
  return (await post('/query', JSON.stringify({ sql }), 'application/json')) as { rows: Record<string, unknown>[] };
}
