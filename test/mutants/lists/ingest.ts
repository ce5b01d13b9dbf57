/** Mistakes in taking rows many at a time, and in what surrounds it. */
import type { Mutant } from '../mutant.ts';

const predicted = 'src/planner/formats/predicted-rows.ts';
const scanner = 'src/planner/formats/row-scanner.ts';
const columns = 'src/planner/formats/column-set.ts';
const reader = 'src/planner/formats/ingest-reader.ts';
const builder = 'src/log/vector-builder.ts';
const killedBy = ['test/planner/formats/predicted-rows.test.ts'];
const put = ['test/projections/put-rows.test.ts'];

const small = 'src/planner/formats/small-body.ts';
const smallTest = ['test/planner/formats/small-body.test.ts'];

export const mutants: readonly Mutant[] = [
  {
    name: 'a small body of an open type that is read by what another one taught',
    file: small,
    find: 'known = !definition.open && ',
    replace: 'known = ',
    killedBy: smallTest,
  },
  {
    name: 'columns of a small body in the order of the one before',
    file: small,
    find: ': i > 0 && slot <= slots[i - 1]!',
    replace: ': false',
    killedBy: smallTest,
  },
  {
    name: 'a small body that leaves rows behind for the next',
    file: small,
    find: '    this.#columns.take();\n    this.#columns.abandon();\n',
    replace: '',
    killedBy: smallTest,
  },
  {
    name: 'columns of a row with room for many',
    file: small,
    find: 'this.#tape, false, 1);',
    replace: 'this.#tape, false);',
    killedBy: smallTest,
  },
  {
    name: 'a built column as long as its room',
    file: builder,
    find: 'return from.length === length ? from :',
    replace: 'return from.length >= length ? from :',
    killedBy: ['test/log/vector-builder.test.ts'],
  },
  {
    name: 'a text of one cell in a heap for many',
    file: builder,
    find: 'this.#capacity === 1 ? bytes : ',
    replace: '',
    killedBy: ['test/log/vector-builder.test.ts'],
  },
  {
    name: 'a scanner that reads the text of another body',
    file: predicted,
    find: 'if (scanner.owner !== this || from',
    replace: 'if (from',
    killedBy,
  },
  {
    name: 'a scanner that goes on in bytes that have moved',
    file: predicted,
    find: '    this.#loadedTo = 0;\n',
    replace: '',
    killedBy,
  },
  {
    name: 'rows that are never taken at once',
    file: predicted,
    find: 'if (this.#pause > 0 || to - from',
    replace: 'if (this.#order.length > 0 || to - from',
    killedBy,
  },
  {
    name: 'numbers beyond a double that are let in',
    file: predicted,
    find: 'if (!Number.isFinite(value)) return row;',
    replace: '',
    killedBy,
  },
  {
    name: 'rows behind a refused one that are taken with it',
    file: predicted,
    find: '      end = scan(sound);\n',
    replace: '      end = scan(sound + 1);\n',
    killedBy,
  },
  {
    name: 'a second scan whose cells nobody fills',
    file: predicted,
    find: '      end = scan(sound);\n      this.#fillDeferred(scanner, shape, end.deferred);\n',
    replace: '      end = scan(sound);\n',
    killedBy,
  },
  {
    name: 'text without the zeros that end it',
    file: scanner,
    find: '    this.#bytes.fill(0, textAt + size, textAt + size + textEnd);\n',
    replace: '',
    killedBy,
  },
  {
    name: 'text that is taken for UTF-8 unseen',
    file: scanner,
    find: 'Number(validText)',
    replace: '1',
    killedBy,
  },
  {
    name: 'a column of NULLs only that is there all the same',
    file: columns,
    find: '      if (nulls !== null && !nulls.includes(0)) continue;\n',
    replace: '',
    killedBy,
  },
  {
    name: 'integers as texts that are read as texts only',
    file: columns,
    find: 'return integersAsText ? scanKind.keyText : scanKind.text;',
    replace: 'return scanKind.keyText;',
    killedBy,
  },
  {
    name: 'rows at once that have no index beside refused ones',
    file: reader,
    find: 'for (let i = 0; this.#indexes !== null && i < end.rows; i++) this.#indexes.push(this.#index + i);',
    replace: '',
    killedBy,
  },
  {
    name: 'rows at once that go beyond their batch',
    file: reader,
    find: 'rows: Math.max(1, this.#roomRows()),',
    replace: 'rows: 1_000_000,',
    killedBy,
  },
  {
    name: 'bytes of rows at once that do not count',
    file: reader,
    find: '    this.#batchBytes += end.bytes;\n',
    replace: '',
    killedBy,
  },
  {
    name: 'a comma of an array that is read twice',
    file: reader,
    find: "if (!byLine) this.#form = end.afterRow ? 'array-next' : 'array-row';",
    replace: "if (!byLine) this.#form = 'array-next';",
    killedBy,
  },
  {
    name: 'offsets of many texts that are not moved',
    file: builder,
    find: 'target[from + i - 1] = offsets[i]! + shift;',
    replace: 'target[from + i - 1] = offsets[i]!;',
    killedBy,
  },
  {
    name: 'many integers in a column that is too narrow',
    file: builder,
    find: 'else if (values instanceof Float64Array) this.#widenToF64()',
    replace: 'else if (values instanceof Float64Array && this.#length > 0) this.#widenToF64()',
    killedBy,
  },
  {
    name: 'NULLs among many cells that are lost',
    file: builder,
    find: 'if (nulls !== null) (this.#nulls ??=',
    replace: 'if (nulls !== null && this.#nulls !== null) (this.#nulls ??=',
    killedBy,
  },
  {
    name: 'outcomes that list more keys than were asked for',
    file: 'src/projections/rows/commands.ts',
    find: 'Math.min(idsMax, outcomeLimits.idsListed)',
    replace: 'outcomeLimits.idsListed',
    killedBy: ['test/projections/put-rows.test.ts'],
  },
  {
    name: 'a task that holds the loop for its whole body',
    file: 'src/doors/http/bodies.ts',
    find: 'yield body.subarray(at, at + pieceBytes);',
    replace: 'yield body.subarray(at, at + pieceBytes * 1e6);',
    killedBy: ['test/doors/http/bodies.test.ts'],
  },
  {
    name: 'bodies of JSON as large as an ingest',
    file: 'src/doors/http/server.ts',
    find: 'bodyLimit: Math.min(context.bodyLimitBytes, jsonBytesMax),',
    replace: 'bodyLimit: context.bodyLimitBytes,',
    killedBy: ['test/doors/http/bodies.test.ts'],
  },
  {
    name: 'a refused batch leaves its columns in the contract',
    file: 'src/projections/rows/batch-contract.ts',
    find: 'if (properties === contract.properties) properties = new Map(properties);',
    replace: '',
    killedBy: put,
  },
  {
    name: 'a row by itself ends nothing',
    file: 'src/projections/rows/put-whole.ts',
    find: 'closeOffsets: closes.length === 0 ? oneWithoutCloses : Uint32Array.of(0, closes.length),',
    replace: 'closeOffsets: oneWithoutCloses,',
    killedBy: put,
  },
  {
    name: 'a row by itself with bounds that hold nothing',
    file: 'src/projections/rows/put-whole.ts',
    find: 'if (closes.length > 0 || (from ?? at.time) >= (to ?? FOREVER)) return null;',
    replace: 'if (closes.length > 0) return null;',
    killedBy: put,
  },
];
