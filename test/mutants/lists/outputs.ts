/** Mistakes in how answers leave: as CSV, Arrow, Parquet and events. */
import type { Mutant } from '../mutant.ts';

const format = (name: string): string => `src/planner/formats/${name}.ts`;
const byCsv = ['test/planner/formats/csv-rows.test.ts'];
const byArrow = ['test/planner/formats/arrow-rows.test.ts'];
const byParquet = ['test/planner/formats/parquet-rows.test.ts'];
const byBodies = ['test/doors/http/output-bodies.test.ts'];
const byOutputs = ['test/doors/http/outputs.test.ts'];

export const mutants: readonly Mutant[] = [
  {
    name: 'outputs: quotes within a CSV field are not doubled',
    file: format('cell-text'),
    find: 'if (byte === 0x22) bytes[at++] = byte;',
    replace: '',
    killedBy: byCsv,
  },
  {
    name: 'outputs: entries of a dictionary run into each other',
    file: format('encoded-dictionary'),
    find: 'this.starts[code] = this.#used;',
    replace: 'this.starts[code] = 1;',
    killedBy: [...byCsv, ...byArrow],
  },
  {
    name: 'outputs: CSV never looks for quotes',
    file: format('csv-rows'),
    find: 'return to + wordSlack <= heap.length && !',
    replace: 'return to + wordSlack <= heap.length || !',
    killedBy: byCsv,
  },
  {
    name: 'outputs: every other word of a text is left out',
    file: format('copy-words'),
    find: 'k < size; k += 4',
    replace: 'k < size; k += 8',
    killedBy: byCsv,
  },
  {
    name: 'outputs: wide numbers are written like integers',
    file: format('cell-text'),
    find: 'Math.abs(value) > Number.MAX_SAFE_INTEGER ? value.toExponential() : String(value)',
    replace: 'String(value)',
    killedBy: byCsv,
  },
  {
    name: 'outputs: a NULL in CSV shows what lies under it',
    file: format('csv-rows'),
    find: 'if (column.nulls !== null && column.nulls[row] === 1) continue;',
    replace: '',
    killedBy: byCsv,
  },
  {
    name: 'outputs: Arrow lets integers under a NULL out',
    file: format('arrow-rows'),
    find: "if (vector.kind === 'i64' && selection === null && !holes) return",
    replace: "if (vector.kind === 'i64' && selection === null) return",
    killedBy: byArrow,
  },
  {
    name: 'outputs: Arrow lets texts under a NULL out',
    file: format('arrow-rows'),
    find: 'if (nulls === null || nulls[row] === 0) size +=',
    replace: 'if (row >= 0) size +=',
    killedBy: byArrow,
  },
  {
    name: 'outputs: Arrow marks the wrong rows as NULL',
    file: format('arrow-rows'),
    find: 'nullBitmap[i >> 3]! |= (1 - hole) << (i & 7);',
    replace: 'nullBitmap[i >> 3]! |= (1 - hole) << (7 - (i & 7));',
    killedBy: byArrow,
  },
  {
    name: 'outputs: Arrow drops the sign of integers from doubles',
    file: format('arrow-rows'),
    find: 'const high = Math.floor(value / 0x1_0000_0000);',
    replace: 'const high = Math.trunc(value / 0x1_0000_0000);',
    killedBy: byArrow,
  },
  {
    name: 'outputs: Parquet takes minus zero for zero',
    file: format('parquet-rows'),
    find: "this.plain = column.type === 'number' || column.type === 'vector';",
    replace: "this.plain = column.type === 'vector';",
    killedBy: byParquet,
  },
  {
    name: 'outputs: Parquet writes JSON in another spelling',
    file: format('parquet-rows'),
    find: 'element: column.encoded,',
    replace: 'element: column.schema.at(-1)!,',
    killedBy: byParquet,
  },
  {
    name: 'outputs: Parquet row groups of long vectors overlap',
    file: format('batch-slices'),
    find: 'first: batch.first + from, count };',
    replace: 'first: batch.first, count };',
    killedBy: byParquet,
  },
  {
    name: 'outputs: a body does not wait for its reader',
    file: 'src/doors/http/answer-body.ts',
    find: 'if (this.#ahead > aheadBytes) await this.#caughtUp(over.signal);',
    replace: '',
    killedBy: byBodies,
  },
  {
    name: 'outputs: a body that broke off ends like a whole one',
    file: 'src/doors/http/answer-body.ts',
    in: '#cutOff',
    find: 'this.#response.destroy()',
    replace: 'this.#response.end()',
    killedBy: byBodies,
  },
  {
    name: 'outputs: a stream that has not begun has no problem record',
    file: 'src/doors/http/routes/query-stream.ts',
    find: 'if (open === null) throw error;',
    replace: 'if (open === null) return reply.send();',
    killedBy: byBodies,
  },
  {
    name: 'outputs: an export runs control statements',
    file: 'src/doors/http/routes/export.ts',
    find: "{ action: 'export', questionsOnly: true }",
    replace: "{ action: 'export' }",
    killedBy: byOutputs,
  },
  {
    name: 'outputs: an export is recorded as a query',
    file: 'src/doors/http/routes/export.ts',
    find: "{ action: 'export', questionsOnly: true }",
    replace: "{ action: 'query', questionsOnly: true }",
    killedBy: byOutputs,
  },
  {
    name: 'outputs: a file drops provenance without a word',
    file: format('output-format'),
    find: 'if (carriesFacts || (provenance === null && facets === null)) return;',
    replace: 'if (carriesFacts || facets === null) return;',
    killedBy: byOutputs,
  },
];
