/** Random values of everything that a log can hold. */
import fc from 'fast-check';
import type { NamedColumn, RowBatch, Vector } from '../../src/log/values/columns.ts';
import {
  type AccessRecord,
  type AgreementBody,
  type AgreementRecord,
  agreementStates,
  type EntryBody,
  maskKinds,
  type Embedded,
  type OpenBody,
  openKinds,
  type PolicyBody,
  quotaNames,
  type RowPartsBody,
  type RowsBody,
  sharedHistories,
  type TenantBody,
  type TenantQuota,
  type TenantRecord,
  type TypeBody,
  type TypeDefinition,
} from '../../src/log/entries/entry.ts';
import { canonicalJson, type Json } from '../../src/log/values/canonical-json.ts';
import { type ColumnType, columnTypes, compareText } from '../../src/log/values/value.ts';
import { VectorBuilder } from '../../src/log/values/vector-builder.ts';

export const text = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 12 }),
  fc.constantFrom('', '\0', '%', '__proto__', 'é', '𝔘', 'a'.repeat(300), '\ufeffbom'),
);
const optionalText = fc.option(text, { nil: null });
export const i64 = fc.oneof(
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  fc.constantFrom(0n, -1n, 2n ** 53n, -(2n ** 53n) - 1n, 2n ** 63n - 1n, -(2n ** 63n)),
);
const u53 = fc.maxSafeNat();
const double = fc.double({ noNaN: true, noDefaultInfinity: true });

function cellsOf(
  type: ColumnType,
  length: number,
): fc.Arbitrary<readonly (string | bigint | number | boolean | Float32Array | null)[]> {
  const cell = {
    string: text,
    json: fc.json(),
    integer: fc.oneof(fc.integer().map(BigInt), i64),
    timestamp: i64,
    number: double,
    boolean: fc.boolean(),
    vector: fc.float32Array({ minLength: 3, maxLength: 3, noNaN: true }),
  }[type] as fc.Arbitrary<string | bigint | number | boolean | Float32Array>;
  return fc.array(fc.option(cell, { nil: null, freq: 4 }), { minLength: length, maxLength: length });
}

function column(name: string, type: ColumnType, length: number): fc.Arbitrary<NamedColumn> {
  return cellsOf(type, length).map((cells) => {
    const builder = new VectorBuilder(type);
    for (const cell of cells) builder.append(cell);
    return { name, type, vector: builder.build() };
  });
}

export function batchOf(length: number): fc.Arbitrary<RowBatch> {
  return fc
    .uniqueArray(fc.record({ name: text, type: fc.constantFrom(...columnTypes) }), { maxLength: 8, selector: ({ name }) => name })
    .chain((heads) => fc.tuple(...heads.map(({ name, type }) => column(name, type, length))))
    .map((columns) => ({ length, columns }));
}

export const batch: fc.Arbitrary<RowBatch> = fc.integer({ min: 0, max: 9 }).chain(batchOf);

function keysOf(length: number): fc.Arbitrary<RowBatch> {
  const pk = fc.array(text, { minLength: length, maxLength: length }).map((texts): NamedColumn => {
    const builder = new VectorBuilder('string');
    for (const value of texts) builder.appendString(value);
    return { name: '_pk', type: 'string', vector: builder.build() };
  });
  return fc
    .tuple(pk, column('valid_from', 'timestamp', length), column('valid_to', 'timestamp', length))
    .map((columns) => ({ length, columns }));
}

export function rowsBodyOf(length: number): fc.Arbitrary<RowsBody> {
  return fc
    .record({
      type: text,
      ops: fc.uint8Array({ minLength: length, maxLength: length, max: 2 }),
      keys: keysOf(length),
      closed: fc.array(fc.array(u53, { maxLength: 3 }), { minLength: length, maxLength: length }),
      cells: batchOf(length),
      provenance: fc.record({ source: text, method: text, confidence: double, derivedFrom: optionalText }),
    })
    .map(({ closed, ...rest }) => {
      const closeOffsets = new Uint32Array(length + 1);
      closed.forEach((positions, i) => {
        closeOffsets[i + 1] = closeOffsets[i]! + positions.length;
      });
      return { kind: 'rows' as const, ...rest, closeOffsets, closes: new Float64Array(closed.flat()) };
    });
}

export const rowsBody: fc.Arbitrary<RowsBody> = fc.integer({ min: 1, max: 9 }).chain(rowsBodyOf);

export const partsBody: fc.Arbitrary<RowPartsBody> = fc
  .array(rowsBody, { minLength: 2, maxLength: 4 })
  .map((parts) => ({ kind: 'parts', parts }));

const stated = fc
  .record({ breakGlass: optionalText, accessScopeRef: optionalText })
  .filter(({ breakGlass, accessScopeRef }) => breakGlass !== null || accessScopeRef !== null);

const accessRecord: fc.Arbitrary<AccessRecord> = fc
  .tuple(
    fc.record({
      time: i64,
      correlationId: text,
      principal: text,
      tenant: optionalText,
      path: optionalText,
      door: text,
      action: text,
      purpose: optionalText,
      objectType: optionalText,
      decision: fc.constantFrom('allow', 'deny', 'error'),
      code: optionalText,
      template: optionalText,
      literalDigest: optionalText,
      basis: i64,
      rowCount: u53,
      costUnits: double,
      durationMs: double,
    }),
    fc.option(stated, { nil: undefined, freq: 2 }),
  )
  .map(([record, opening]) => (opening === undefined ? record : { ...record, stated: opening }));

const someTexts = fc.array(text, { minLength: 1, maxLength: 3 });

/** Those behind the fixed fields. */
const tellingRecord: fc.Arbitrary<AccessRecord> = fc
  .tuple(
    accessRecord,
    fc.record(
      {
        statements: fc.array(
          fc.record({ template: optionalText, literalDigest: optionalText, objectType: optionalText, rowCount: u53 }),
          { minLength: 1, maxLength: 3 },
        ),
        recalled: fc.record({ salt: text, ids: someTexts }),
      },
      { requiredKeys: [] },
    ),
  )
  .map(([record, more]) => ({ ...record, ...more }));

/** Vectors of rows that are nobody's. */
const embedded: fc.Arbitrary<Embedded> = fc
  .record({
    model: text,
    type: text,
    columns: someTexts,
    dims: fc.integer({ min: 1, max: 5 }),
    rows: fc.nat(4),
    dropped: fc.nat(3),
  })
  .chain(({ dims, rows, ...rest }) =>
    fc.record({
      ...Object.fromEntries(Object.entries(rest).map(([name, value]) => [name, fc.constant(value)])),
      dims: fc.constant(dims),
      digest: fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes).toString('hex')),
      positions: fc.array(u53, { minLength: rows, maxLength: rows }).map((all) => Float64Array.from(all)),
      vectors: fc.float32Array({ minLength: rows * dims, maxLength: rows * dims, noNaN: true }),
    }),
  ) as fc.Arbitrary<Embedded>;

/** Kinds that came without a design, and vectors. */
export const openBody: fc.Arbitrary<OpenBody> = fc.oneof(
  fc.record({
    kind: fc.constantFrom(...openKinds),
    content: fc.oneof(
      fc.uint8Array({ maxLength: 40 }),
      fc.jsonValue({ maxDepth: 3 }).map((value) => canonicalJson(value as Json)),
    ),
  }),
  fc.record({ kind: fc.constant('embedding' as const), content: embedded }),
);

const property = fc.record(
  {
    type: fc.constantFrom(...columnTypes),
    required: fc.boolean(),
    masked: fc.boolean(),
    indexed: fc.boolean(),
    subject: fc.boolean(),
    dims: fc.nat(4096),
    references: text,
  },
  { requiredKeys: ['type', 'required', 'masked', 'indexed', 'subject', 'dims'] },
);

/** Records of own properties only: a key may be `__proto__`. */
function record<T>(value: fc.Arbitrary<T>): fc.Arbitrary<Record<string, T>> {
  return fc
    .uniqueArray(fc.tuple(text, value), { maxLength: 4, selector: ([name]) => name })
    .map((entries) => Object.fromEntries(entries) as Record<string, T>);
}

const texts = fc.array(text, { maxLength: 3 });

const tenantRecord: fc.Arbitrary<TenantRecord> = fc.record({
  id: text,
  name: text,
  tier: text,
  state: fc.constantFrom('active', 'suspended', 'deleted'),
  quota: fc
    .tuple(...quotaNames.map(() => fc.option(u53)))
    .map((amounts) => Object.fromEntries(quotaNames.map((name, i) => [name, amounts[i]!])) as unknown as TenantQuota),
  search: record(fc.oneof(text, fc.boolean(), fc.integer(), texts)),
  members: fc
    .uniqueArray(fc.record({ principal: text, role: text }), { maxLength: 3, selector: ({ principal }) => principal })
    .map((members) => members.sort((a, b) => compareText(a.principal, b.principal))),
  createdAt: i64,
  changedAt: i64,
});

const agreementRecord: fc.Arbitrary<AgreementRecord> = fc.record({
  id: text,
  assigner: text,
  assignee: text,
  types: texts,
  where: optionalText,
  columns: fc.option(texts),
  permission: texts,
  purposes: texts,
  validFrom: i64,
  validTo: i64,
  history: fc.constantFrom(...sharedHistories),
  masking: record(fc.constantFrom(...maskKinds)),
  onwardSharing: fc.boolean(),
  aggregateMinGroup: fc.option(u53),
  termsDigest: optionalText,
  state: fc.constantFrom(...agreementStates),
  createdAt: i64,
  activatedAt: fc.option(i64),
});

/** Policies, tenants and agreements. */
export const recordBody: fc.Arbitrary<PolicyBody | TenantBody | AgreementBody> = fc.oneof(
  fc.record({
    kind: fc.constant('policy' as const),
    change: fc.constantFrom('installed' as const, 'deleted' as const),
    id: text,
    text,
    digest: text,
  }),
  fc.record({
    kind: fc.constant('tenant' as const),
    change: fc.constantFrom('created', 'changed', 'suspended', 'reactivated', 'deleted', 'purged'),
    manner: fc.constantFrom(null, 'soft', 'purge', 'tombstone'),
    tenant: tenantRecord,
  }),
  fc.record({
    kind: fc.constant('agreement' as const),
    change: fc.constantFrom('proposed', 'accepted', 'activated', 'suspended', 'resumed', 'revoked', 'expired', 'changed'),
    agreement: agreementRecord,
  }),
);

const definition: fc.Arbitrary<TypeDefinition> = fc.record(
  {
    name: text,
    properties: record(property),
    open: fc.boolean(),
    primaryKey: optionalText,
    graphTriggers: fc.array(fc.record({ linkType: text, sourceField: text, targetField: text }), { maxLength: 3 }),
    ontologyVersion: u53,
    guard: fc.constantFrom(
      { protected: true, accessScope: false },
      { protected: false, accessScope: true },
      { protected: true, accessScope: true },
    ),
  },
  { requiredKeys: ['name', 'properties', 'open', 'primaryKey', 'graphTriggers', 'ontologyVersion'] },
);

const pairs = fc.dictionary(text, text, { minKeys: 1, maxKeys: 4, noNullPrototype: true });

/** Tagged fields of a type. */
const saysMore = fc.record(
  {
    edge: fc.record({ from: text, to: text }),
    role: text,
    identifier: someTexts,
    language: text,
    roleColumns: pairs,
    identifierKinds: pairs,
  },
  { requiredKeys: [] },
);

const typeBody: fc.Arbitrary<TypeBody> = fc.record(
  {
    kind: fc.constant('type' as const),
    own: fc.constant(true as const),
    definition: fc.tuple(definition, fc.option(saysMore)).map(([plain, more]) => ({ ...plain, ...more })),
  },
  { requiredKeys: ['kind', 'definition'] },
);

export const controlBody: fc.Arbitrary<EntryBody> = fc.oneof(
  fc.record({ kind: fc.constant('genesis' as const), logId: text, origin: text, engineVersion: text }),
  fc.record({ kind: fc.constant('seal' as const), treeSize: u53, checkpoint: text }),
  fc.record(
    {
      kind: fc.constant('removal' as const),
      type: text,
      keys: fc.array(text, { maxLength: 4 }),
      positions: fc.array(u53, { maxLength: 5 }).map((positions) => new Float64Array(positions)),
      sources: fc.array(text, { minLength: 1, maxLength: 3 }),
    },
    { requiredKeys: ['kind', 'type', 'keys', 'positions'] },
  ),
  typeBody,
  openBody,
  fc.record(
    {
      kind: fc.constant('branch' as const),
      change: fc.constantFrom('forked' as const, 'deleted' as const),
      name: text,
      source: text,
      shares: fc.constantFrom('everything' as const, 'ontology' as const),
      own: fc.constant(true as const),
    },
    { requiredKeys: ['kind', 'change', 'name', 'source', 'shares'] },
  ),
  fc.record(
    { kind: fc.constant('view' as const), name: text, sql: text, refreshSecs: u53, dropped: fc.constant(true as const) },
    { requiredKeys: ['kind', 'name', 'sql', 'refreshSecs'] },
  ),
  fc.record({
    kind: fc.constant('exhibit' as const),
    exhibit: text,
    link: u53,
    act: text,
    recipe: text,
    resultHash: text,
    previousSeal: text,
    seal: text,
  }),
  fc.record({ kind: fc.constant('receipt' as const), key: text, batch: fc.nat(), request: text, outcome: text }),
  fc.record({
    kind: fc.constant('retention' as const),
    change: fc.constantFrom('scheduled' as const, 'held' as const, 'released' as const),
    id: text,
    type: text,
    position: u53,
    until: i64,
  }),
  fc.record({
    kind: fc.constant('token' as const),
    change: fc.constantFrom('minted' as const, 'rotated' as const, 'revoked' as const),
    token: fc.record({
      id: text,
      secretHash: text,
      principal: text,
      tenant: optionalText,
      organization: optionalText,
      roles: fc.array(text, { maxLength: 3 }),
      attributes: record(fc.oneof(text, double, fc.boolean())),
      purposes: fc.array(text, { maxLength: 3 }),
      expiresAt: i64,
    }),
    replaces: optionalText,
  }),
  recordBody,
  fc.record({ kind: fc.constant('access' as const), records: fc.array(accessRecord, { maxLength: 4 }) }),
  fc.record({ kind: fc.constant('access' as const), records: fc.array(tellingRecord, { maxLength: 3 }) }),
);

/** Cells as plain values, layout aside: what two vectors of equal content have in common. */
export function vectorCells(vector: Vector, length: number): unknown {
  if (vector.kind === 'null') return { nulls: length };
  const nulls = Array.from({ length }, (_, i) => vector.nulls?.[i] === 1);
  const values = (n: number, at: (i: number) => unknown): unknown[] => Array.from({ length: n }, (_, i) => at(i));
  if (vector.kind === 'text') {
    const slices = values(length, (i) =>
      Buffer.from(vector.heap.slice(vector.offsets[i]!, vector.offsets[i + 1]!)).toString('hex'),
    );
    return { kind: 'text', nulls, values: slices };
  }
  if (vector.kind === 'dict')
    return { kind: 'dict', nulls, values: values(length, (i) => vector.dictionary.text(vector.values[i]!)) };
  const width = vector.kind === 'vec' ? vector.dims : 1;
  return { kind: vector.kind, nulls, values: values(length * width, (i) => vector.values[i]) };
}

export function batchCells(rows: RowBatch): unknown {
  return rows.columns.map(({ name, type, vector }) => ({ name, type, cells: vectorCells(vector, rows.length) }));
}

export function bodyCells(body: EntryBody): unknown {
  if (body.kind === 'removal') return { ...body, positions: [...body.positions] };
  if (body.kind === 'parts') return { kind: body.kind, parts: body.parts.map(bodyCells) };
  if (body.kind !== 'rows') return body;
  return {
    ...body,
    ops: [...body.ops],
    closeOffsets: [...body.closeOffsets],
    closes: [...body.closes],
    keys: batchCells(body.keys),
    cells: batchCells(body.cells),
  };
}
