/**
 * Bodies of HTTP requests on any bytes. What must hold: a buffered body is taken exactly when it is UTF-8 JSON of at most
 * 64 levels without `__proto__`, and then means what JSON.parse says, but with all digits of its integers; an
 * ingest body gives the same batches however it is cut into chunks and whether rows are taken one by one or many at once, every row of it is accepted or rejected once, and what was accepted can be written as JSON again.
 */
import { isUtf8 } from 'node:buffer';
import { exactJson } from '../../../src/doors/shared/write-exact-json.ts';
import { parseJsonBody } from '../../../src/doors/http/json-body.ts';
import { assert, ServiceError } from '../../../src/errors.ts';
import type { IngestBatch } from '../../../src/planner/formats/ingest-batch.ts';
import { BodyReader } from '../../../src/planner/formats/ingest-reader.ts';
import { writeRowChunks } from '../../../src/planner/formats/json-rows.ts';

export const name = 'http-body';

const bodies = [
  '{"sql":"SELECT * FROM T","purpose":"test","typo_tolerance":{"enabled":true}}',
  '{"name":"T","properties":{"a":{"type":"integer","required":true},"b":"string"},"primary_key":"a"}',
  '{"a":1,"b":"x","c":null,"d":[1,{"e":2.5}]}\n{"b":"y","a":9223372036854775807}\n{"a":-9223372036854775808}\n',
  '[{"id":"k","valid_from":"2024-05-01","_emb_text":[0.5,1]},{"id":"l","x":1e300}]',
  ' {"rows": [ {"a":true} , {"a":false} ] , "more": 1 } ',
  'id,name,n\n1,"a ""quoted"" one",2\n2,"two\nlines",\n',
  // A carriage return as the last byte of a chunk, before an older line feed in the buffer behind it.
  'a,b\r\n1,2\r\n\r\n\r\n3,4\r\n',
  '{"a":1,"b":"x","c":0.5,"d":true}\n{"a":-2,"b":"é","c":1e3,"d":null}\n{"a":9007199254740993,"b":"","c":0.30000000000000004}\n{"b":"y"}\n',
  '[{"a":1,"b":"x"},{"a":2,"b":"y"}, {"a":3,"b":"z"},{"b":"a text of more than sixteen bytes"}]',
  '\ufeff{"a":"\\ud83d\\ude42\\u0000"}\r\n\r\n{"a":"é東"}',
  '[{"x":1e400},{"x":-1e400}]',
  '{"__proto__":{"a":1},"\\u005f_proto__":2,"constructor":{"prototype":3}}',
  `{"deep":${'['.repeat(62)}${']'.repeat(62)}}`,
  '{"a":[9007199254740993,-9223372036854775808,0.30000000000000004],"9223372036854775807":"9223372036854775807"}',
  '{"a":1}{"a":2} {"a":NaN}\n{"a":01}\n{"a":"unfinished',
];

export function seeds(): Uint8Array[] {
  return [...bodies.map((body) => Buffer.from(body)), Buffer.from([0xff, 0xfe, 0x7b]), Buffer.from('{"a":"\xc3\x28"}', 'latin1')];
}

export function run(bytes: Uint8Array): void {
  checkBuffered(Buffer.from(bytes));
  checkIngest(bytes);
}

function checkBuffered(body: Buffer): void {
  let value: unknown;
  let taken = true;
  try {
    value = parseJsonBody(body);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    if (error.code === 'REL_TOO_LARGE') return;
    assert(error.code === 'REL_INVALID', `code ${error.code}`);
    taken = false;
  }
  const expected = body.length === 0 ? '' : reference(body);
  assert(taken === (expected !== null), `taken: ${taken}`);
  if (taken && body.length > 0) assert(exactJson(value) === expected, 'means what JSON.parse says, its integers exact');
}

const tokens = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const mark = 'all digits of ';

/** The body as JSON.parse and JSON.stringify write it, but for integers that no double holds: those stand as they came. */
function reference(body: Buffer): string | null {
  if (!isUtf8(body)) return null;
  const text = body.toString('utf8');
  try {
    if (!isPlain(JSON.parse(text), 0)) return null;
  } catch {
    return null;
  }
  const isUnsafe = (token: string): boolean => /^-?\d+$/.test(token) && !Number.isSafeInteger(Number(token));
  const marked = text.replace(tokens, (token) => (isUnsafe(token) ? `"${mark}${token}"` : token));
  return JSON.stringify(JSON.parse(marked)).replace(new RegExp(`"${mark}(-?\\d+)"`, 'g'), '$1');
}

function isPlain(value: unknown, level: number): boolean {
  // No double is as large: the body is refused, where JSON.parse says Infinity.
  if (value === Infinity || value === -Infinity) return false;
  if (typeof value !== 'object' || value === null) return true;
  if (level >= 64 || Object.hasOwn(value, '__proto__')) return false;
  return Object.values(value).every((item) => isPlain(item, level + 1));
}

function checkIngest(bytes: Uint8Array): void {
  const batchRows = ((bytes[0] ?? 0) % 3) * 4 + 1;
  const oneByOne = ingested(bytes, bytes.length, batchRows, Number.POSITIVE_INFINITY);
  const cut = ((bytes[bytes.length >> 1] ?? 0) % 9) + 1;
  assert(ingested(bytes, cut, batchRows, Number.POSITIVE_INFINITY) === oneByOne, `chunks of ${cut} bytes give other batches`);
  assert(ingested(bytes, bytes.length, batchRows, 0) === oneByOne, 'rows that are taken at once are the same rows');
  assert(ingested(bytes, cut * 20, batchRows, 0) === oneByOne, `so they are in chunks of ${cut * 20} bytes`);
}

/** Everything that a body came to, as text. */
function ingested(bytes: Uint8Array, chunkBytes: number, batchRows: number, predictBytesMin: number): string {
  const reader = new BodyReader({ definition: null, batchRows, batchBytes: 1e9, predictBytesMin });
  const said: string[] = [];
  let next = 0;
  const drain = (last: boolean): void => {
    for (let batch = reader.read(last); batch !== null; batch = reader.read(last)) {
      assert(batch.firstIndex === next, 'batches follow each other');
      next += checkBatch(batch);
      said.push(shown(batch));
    }
  };
  try {
    for (let at = 0; at < bytes.length; at += chunkBytes) {
      reader.push(bytes.subarray(at, at + chunkBytes));
      drain(false);
    }
    drain(true);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    said.push(`${error.code}: ${error.message}`);
  }
  return said.join('\n');
}

/** Rows that the batch read: each one accepted or rejected, and none both. */
function checkBatch({ rows, firstIndex, indexes, rejections }: IngestBatch): number {
  const count = rows.length + rejections.length;
  const taken = indexes === null ? Array.from({ length: rows.length }, (_, i) => firstIndex + i) : [...indexes];
  const all = new Set([...taken, ...rejections.map((rejection) => rejection.index)]);
  assert(all.size === count, 'no row twice');
  for (const index of all) assert(index >= firstIndex && index < firstIndex + count, `row ${index} of another batch`);
  return count;
}

function shown({ rows, rejections }: IngestBatch): string {
  const batch = { columns: rows.columns.map((column) => column.vector), selection: null, first: 0, count: rows.length };
  const text = Buffer.concat([...writeRowChunks({ columns: rows.columns, batches: [batch] })]).toString('utf8');
  JSON.parse(text);
  return `${rows.columns.map((column) => `${column.name}:${column.type}`).join()} ${text} ${JSON.stringify(rejections)}`;
}
