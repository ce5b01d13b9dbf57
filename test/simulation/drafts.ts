/** Small entries of every shape that the log orders, and a text that is equal only for equal entries. */
import type { NamedColumn, RowBatch } from '../../src/log/values/columns.ts';
import type { AccessRecord, CommittedEntry, EntryContext, EntryDraft } from '../../src/log/entries/entry.ts';
import { FOREVER } from '../../src/log/values/timestamp.ts';
import type { Cell, ColumnType } from '../../src/log/values/value.ts';
import { cellAt, VectorBuilder } from '../../src/log/values/vector-builder.ts';
import type { Seeded } from './seeded.ts';

export function contextOf(writer: number, submission: number): EntryContext {
  const tenant = writer % 3 === 0 ? null : `tenant-${writer % 3}`;
  return {
    branch: 'main',
    tenant,
    path: tenant && `${tenant}/unit`,
    principal: `writer-${writer}`,
    door: 'http',
    purpose: writer % 2 === 0 ? 'test' : null,
    correlationId: `c-${submission}`,
    policyDigest: '',
  };
}

/** One append: one to four entries, mostly rows, in one part or two, some with a type before them, some branches, some records of reads. */
export function draftsFor(random: Seeded, writer: number, submission: number): EntryDraft[] {
  const context = contextOf(writer, submission);
  const drafts: EntryDraft[] = [];
  if (random.chance(0.15)) drafts.push({ context, body: typeBody(submission) });
  if (random.chance(0.7))
    drafts.push({ context, body: submission % 8 === 1 ? partsBody(random, submission) : rowsBody(random, submission) });
  if (random.chance(0.1)) {
    drafts.push({ context, body: { kind: 'removal', type: 'Thing', keys: [`k${submission}`], positions: Float64Array.of(1) } });
  }
  if (random.chance(0.1)) {
    const name = `branch ${submission}`;
    const change = random.chance(0.7) ? 'forked' : 'deleted';
    const shares = random.chance(0.5) ? 'everything' : 'ontology';
    drafts.push({ context: { ...context, branch: name }, body: { kind: 'branch', change, name, source: 'main', shares } });
  }
  if (random.chance(0.1)) drafts.push({ context, body: exhibitBody(random, submission) });
  // As the gate does it: in the append of what it is about, after it.
  if (random.chance(0.15)) drafts.push({ context, body: receiptBody(random, submission) });
  if (drafts.length === 0) drafts.push({ context, body: { kind: 'access', records: [accessRecord(random, submission)] } });
  return drafts;
}

/** Two parts, of which one or none is nobody's. */
function partsBody(random: Seeded, submission: number): EntryDraft['body'] {
  const { subjects, ...other } = rowsBody(random, submission);
  const isOwned = subjects !== undefined && random.chance(0.5);
  return {
    kind: 'parts',
    parts: [rowsBody(random, submission), { ...other, type: 'Other', ...(isOwned && { subjects }) }],
  };
}

export function rowsBody(random: Seeded, submission: number): Extract<EntryDraft['body'], { kind: 'rows' }> {
  const rows = 1 + random.below(3);
  const indices = Array.from({ length: rows }, (_, i) => i);
  const closes = indices.map(() => random.below(2));
  const offsets = [0];
  for (const count of closes) offsets.push(offsets.at(-1)! + count);
  return {
    kind: 'rows',
    type: 'Thing',
    ops: Uint8Array.from(indices, () => random.below(3)),
    keys: batch(rows, [
      column(
        '_pk',
        'string',
        indices.map((i) => `k${submission}.${i}`),
      ),
      column(
        'valid_from',
        'timestamp',
        indices.map((i) => (i === 0 ? null : BigInt(submission))),
      ),
      column(
        'valid_to',
        'timestamp',
        indices.map(() => FOREVER),
      ),
    ]),
    closeOffsets: Uint32Array.from(offsets),
    closes: Float64Array.from({ length: offsets.at(-1)! }, (_, i) => i),
    cells: batch(rows, [
      column(
        'name',
        'string',
        indices.map(() => 'x'.repeat(random.below(random.chance(0.1) ? 900 : 40))),
      ),
      column(
        'count',
        'integer',
        indices.map((i) => (i === 1 ? null : BigInt(random.bits()))),
      ),
    ]),
    provenance: { source: 'test', method: 'import', confidence: 1, derivedFrom: null },
    // Of every third body some rows are somebody's, subjects old and new.
    ...(submission % 3 === 1
      ? {
          subjects: column(
            '',
            'string',
            indices.map((i) => subjectOf(submission, i)),
          ).vector,
        }
      : {}),
  };
}

function subjectOf(submission: number, row: number): string | null {
  return row === 1 ? null : `subject-${(submission + row) % 5 === 0 ? submission : submission % 4}`;
}

function exhibitBody(random: Seeded, submission: number): EntryDraft['body'] {
  return {
    kind: 'exhibit',
    exhibit: `exhibit-${submission % 3}`,
    link: random.below(4),
    act: random.chance(0.5) ? 'query' : 'note',
    recipe: JSON.stringify({ act: 'note', text: 'x'.repeat(random.below(200)) }),
    resultHash: hashText(submission),
    previousSeal: hashText(submission + 1),
    seal: hashText(submission + 2),
  };
}

function receiptBody(random: Seeded, submission: number): EntryDraft['body'] {
  const outcome = JSON.stringify({ last: random.chance(0.5), accepted: random.below(5) });
  return { kind: 'receipt', key: hashText(submission), batch: random.below(3), request: hashText(-submission), outcome };
}

const hashText = (number: number): string => (number >>> 0).toString(16).padStart(64, '0');

function typeBody(submission: number): EntryDraft['body'] {
  const property = { type: 'string', required: false, masked: false, indexed: false, subject: false, dims: 0 } as const;
  return {
    kind: 'type',
    definition: {
      name: `Type${submission}`,
      properties: { name: property },
      open: true,
      primaryKey: null,
      graphTriggers: [],
      ontologyVersion: submission,
    },
  };
}

function accessRecord(random: Seeded, submission: number): AccessRecord {
  return {
    time: BigInt(submission),
    correlationId: `c-${submission}`,
    principal: 'reader',
    tenant: null,
    path: null,
    door: 'http',
    action: 'query',
    purpose: null,
    objectType: 'Thing',
    decision: 'allow',
    code: null,
    template: 'SELECT * FROM Thing WHERE _pk = ?',
    literalDigest: null,
    basis: BigInt(random.bits()),
    rowCount: random.below(5),
    costUnits: 1,
    durationMs: 0.5,
  };
}

function column(name: string, type: ColumnType, cells: readonly Cell[]): NamedColumn {
  const builder = new VectorBuilder(type, cells.length);
  for (const cell of cells) builder.append(cell);
  return { name, type, vector: builder.build() };
}

function batch(length: number, columns: readonly NamedColumn[]): RowBatch {
  return { length, columns };
}

/** Cells by value: the layout in which a vector rests is no part of what an entry says, nor, once it is read, whose a row is. */
const texts = new WeakMap<CommittedEntry, string>();

export function textOf(entry: CommittedEntry): string {
  let text = texts.get(entry);
  if (text === undefined) texts.set(entry, (text = asText(entry)));
  return text;
}

function asText({ leaf, position, positions, time, context, body }: CommittedEntry): string {
  return JSON.stringify({ leaf, position, positions, time, context, body }, (key, value: unknown) => {
    if (key === 'subjects') return undefined;
    if (typeof value === 'bigint') return `${value}n`;
    if (ArrayBuffer.isView(value) && !(value instanceof DataView)) return Array.from(value as Uint8Array);
    return isBatch(value) ? cellsOf(value) : value;
  });
}

function cellsOf(rows: RowBatch): Record<string, string[]> {
  const indices = Array.from({ length: rows.length }, (_, i) => i);
  const entries = rows.columns.map(({ name, type, vector }) => [
    name,
    indices.map((row) => {
      const cell = cellAt(vector, type, row);
      return typeof cell === 'string' ? JSON.stringify(cell) : String(cell);
    }),
  ]);
  return Object.fromEntries(entries) as Record<string, string[]>;
}

function isBatch(value: unknown): value is RowBatch {
  return typeof value === 'object' && value !== null && 'columns' in value && 'length' in value;
}
