/** Random histories of commands, as fast-check arbitraries, and how they are played into a store. */
import fc from 'fast-check';
import { ServiceError } from '../../src/errors.ts';
import type { RowBatch } from '../../src/log/values/columns.ts';
import {
  type CommittedEntry,
  type AgreementTerms,
  agreementStates,
  type PropertyDefinition,
  type TokenRecord,
  isOpen,
} from '../../src/log/entries/entry.ts';
import { isEmbedded } from '../../src/log/entries/embedded-vectors.ts';
import type { ColumnType } from '../../src/log/values/value.ts';
import { cellAt, VectorBuilder } from '../../src/log/values/vector-builder.ts';
import type { Command, PutRows } from '../../src/projections/command.ts';
import { SubjectNames } from '../../src/projections/subject-names.ts';
import { batchOf, START, type Store } from './store.ts';

export interface Step {
  readonly command: Command;
  readonly path: string | null;
  /** One of the branches that stand by then; 0 is main. */
  readonly branch: number;
}

export const plain: PropertyDefinition = {
  type: 'string',
  required: false,
  masked: false,
  indexed: false,
  subject: false,
  dims: 0,
};

export const property = (type: ColumnType, more: Partial<PropertyDefinition> = {}): PropertyDefinition => ({
  ...plain,
  type,
  ...more,
});

export function tokenOf(id: string, more: Partial<TokenRecord> = {}): TokenRecord {
  return {
    id,
    secretHash: `hash of ${id}`,
    principal: 'p',
    tenant: null,
    organization: null,
    roles: ['reader'],
    attributes: { level: 3 },
    purposes: [],
    expiresAt: START * 2n,
    ...more,
  };
}

const types = ['Person', 'Event'];
/** Whose rows belong to subjects, where `registerPatients` came first. */
const subjectType = 'Patient';
export const subjects = ['ann', 'bob', '7'];
const keys = ['a', 'b', 'c', 'é', 'k\u{1f600}'];
export const paths = [null, 'acme', 'acme/eu', 'globex'];

const columns = {
  id: 'string',
  name: 'string',
  age: 'integer',
  ratio: 'number',
  ok: 'boolean',
  seen: 'timestamp',
  extra: 'json',
  _emb_text: 'vector',
  valid_from: 'timestamp',
  valid_to: 'timestamp',
} as const;

const integers = fc.oneof(
  fc.integer({ min: -5, max: 5 }).map(BigInt),
  fc.constantFrom(2n ** 31n, -(2n ** 40n), 2n ** 53n - 1n, 2n ** 53n + 1n, -(2n ** 63n), 2n ** 63n - 1n),
);

/** Near the times at which a short history happens, so that bounds cut through it. */
const instants = fc.integer({ min: -4, max: 40 }).map((step) => START + BigInt(step) * 400n);

const row = fc.record(
  {
    id: fc.constantFrom(...keys),
    name: fc.option(fc.constantFrom('x', 'yy', '', 'ümlaut', '\u{1f600}')),
    age: fc.option(integers),
    ratio: fc.option(fc.constantFrom(0, -0, 1.5, 1e300, -2)),
    ok: fc.option(fc.boolean()),
    seen: fc.option(integers),
    extra: fc.option(fc.constantFrom('{"a":1}', '[1,2]', 'null', '"t"')),
    _emb_text: fc.option(fc.constantFrom(Float32Array.of(1, 2), Float32Array.of(0, -1))),
    valid_from: fc.option(instants),
    valid_to: fc.option(instants),
  },
  { requiredKeys: ['id'] },
);

const puts = fc
  .record({
    type: fc.constantFrom(...types),
    rows: fc.array(row, { minLength: 1, maxLength: 6 }),
    bounded: fc.boolean(),
    batched: fc.subarray(Object.keys(columns) as (keyof typeof columns)[]),
  })
  .map(({ type, rows, bounded, batched }): Command => {
    const names = ['id' as const, ...batched.filter((name) => name !== 'id' && (bounded || !name.startsWith('valid_')))];
    const chosen = Object.fromEntries(names.map((name) => [name, columns[name]]));
    return {
      kind: 'put-rows',
      type,
      rows: batchOf(chosen, rows),
      atomic: false,
      createType: true,
      provenance: { source: 'random', method: bounded ? 'bounded' : 'plain', confidence: 1, derivedFrom: null },
    };
  });

const patientRow = fc.record(
  {
    id: fc.constantFrom(...keys),
    who: fc.option(fc.constantFrom(...subjects)),
    name: fc.option(fc.constantFrom('x', 'yy', '')),
    age: fc.option(integers),
    valid_from: fc.option(instants),
    valid_to: fc.option(instants),
  },
  { requiredKeys: ['id'] },
);

const patientPuts = fc.array(patientRow, { minLength: 1, maxLength: 6 }).map((rows): Command => {
  const { id, name, age, valid_from, valid_to } = columns;
  return {
    kind: 'put-rows',
    type: subjectType,
    rows: batchOf({ id, who: 'string', name, age, valid_from, valid_to }, rows),
    atomic: false,
    createType: true,
    provenance: { source: 'random', method: 'plain', confidence: 1, derivedFrom: null },
  };
});

export const registerPatients: Command = {
  kind: 'register-type',
  name: subjectType,
  properties: { who: property('string', { subject: true }), name: property('string'), age: property('integer') },
  primaryKey: null,
  graphTriggers: [],
};

const retentionIds = ['r1', 'r2', 'r3'];
const retentionCommands = fc
  .record({
    kind: fc.constantFrom('schedule-retention' as const, 'schedule-retention' as const, 'hold-row' as const),
    id: fc.constantFrom(...retentionIds),
    type: fc.constantFrom(...types, subjectType),
    key: fc.constantFrom(...keys),
    until: instants,
  })
  .map(({ kind, until, ...about }): Command => (kind === 'hold-row' ? { kind, ...about } : { kind, ...about, until }));

const endingCommands = fc.record({
  kind: fc.constantFrom('release-retention' as const, 'expire-retention' as const),
  id: fc.constantFrom(...retentionIds),
});

/** Of the subject that the reason names: what `play` finds of it is what is erased. */
const erasureCommands: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({ id: fc.constantFrom('e1', 'e2', 'e3', 'e4', 'e5'), subject: fc.constantFrom(...subjects) }).map(
      ({ id, subject }): Command => ({
        kind: 'intend-erasure',
        id,
        commitment: Buffer.from(subject).toString('hex').padStart(64, '0'),
        reason: subject,
        keys: ['k'],
        versions: [],
        mentions: [],
        statement: '',
      }),
    ),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('complete-erasure' as const),
      id: fc.constantFrom('e1', 'e2', 'e3'),
      statement: fc.constantFrom('{}', '{"version":1}'),
    }),
  },
);

/** The same puts under a few keys: most follow the batch before, some come again, some are of another request. */
const receiptedPuts = fc
  .record({
    put: puts,
    key: fc.constantFrom('1'.repeat(64), '2'.repeat(64)),
    batch: fc.constantFrom(0, 0, 1, 2),
    request: fc.constantFrom('a'.repeat(64), 'b'.repeat(64)),
    last: fc.boolean(),
  })
  .map(
    ({ put, ...receipt }): Command => ({
      ...(put as PutRows),
      receipt: { ...receipt, firstIndex: 10, indexes: null, refused: [] },
    }),
  );

const rowCommands = fc.oneof(
  { weight: 8, arbitrary: puts },
  { weight: 6, arbitrary: patientPuts },
  { weight: 2, arbitrary: receiptedPuts },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('delete-rows' as const),
      type: fc.constantFrom(...types, subjectType),
      keys: fc.array(fc.constantFrom(...keys), { minLength: 1, maxLength: 3 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('remove-rows' as const),
      type: fc.constantFrom(...types, subjectType),
      keys: fc.array(fc.constantFrom(...keys), { minLength: 1, maxLength: 2 }),
    }),
  },
);

/** Tenants come to mean different things by one name, and each of them another one than whoever inherits it. */
const typeCommands = fc.oneof(
  fc
    .record({
      name: fc.constantFrom(...types),
      properties: fc.constantFrom(
        { age: property('integer'), name: property('string') },
        { id: property('integer'), age: property('number'), name: property('string', { masked: true }) },
      ),
      open: fc.boolean(),
    })
    .map(
      ({ name, properties, open }): Command => ({
        kind: 'register-type',
        name,
        properties: open ? null : properties,
        primaryKey: null,
        graphTriggers: [],
      }),
    ),
  fc
    .record({
      name: fc.constantFrom(...types),
      column: fc.constantFrom('age', 'name', 'ok', 'extra'),
      type: fc.constantFrom<ColumnType>('number', 'json', 'string'),
      mayTakeBack: fc.boolean(),
    })
    .map(
      ({ name, column, type, mayTakeBack }): Command => ({
        kind: 'evolve-type',
        name,
        properties: { [column]: property(type) },
        mayTakeBack,
      }),
    ),
);

const tokenCommands = fc.oneof(
  fc.constantFrom('t1', 't2', 't3').map((id): Command => ({ kind: 'mint-token', token: tokenOf(id) })),
  fc
    .tuple(fc.constantFrom('t1', 't2'), fc.constantFrom('t3', 't4', 't5'))
    .map(([id, fresh]): Command => ({ kind: 'rotate-token', id, token: tokenOf(fresh) })),
  fc.constantFrom('t1', 't2', 't3').map((id): Command => ({ kind: 'revoke-token', id })),
);

const exhibitCommands = fc
  .record({
    exhibit: fc.constantFrom('e1', 'e2'),
    open: fc.boolean(),
    act: fc.constantFrom('query', 'note'),
    recipe: fc.constantFrom('{}', '{"statement":"SELECT 1"}'),
    resultHash: fc.constantFrom('0'.repeat(64), 'a'.repeat(64)),
  })
  .map((link): Command => ({ kind: 'link-exhibit', ...link }));

const viewCommands: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('create-view' as const),
      name: fc.constantFrom('v1', 'v2', 'Person'),
      sql: fc.constantFrom('SELECT id FROM Person', 'SELECT COUNT(*) FROM Event'),
      refreshSecs: fc.constantFrom(60, 5, 0),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('drop-view' as const), name: fc.constantFrom('v1', 'v2') }) },
);

const judgedRow = fc.record({ type: fc.constantFrom(...types, subjectType), key: fc.constantFrom('a', 'b', 'k1') });

const judgeCommands: fc.Arbitrary<Command> = fc.record({
  kind: fc.constant('judge-identities' as const),
  a: judgedRow,
  b: judgedRow,
  judgement: fc.constantFrom('positive' as const, 'negative' as const),
  reason: fc.constantFrom(null, 'one passport'),
});
const ruleCommands: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc
      .record({
        id: fc.constantFrom('r1', 'r2', 'r3'),
        changes: fc.constantFrom(undefined, 'r1', 'r2'),
        name: fc.constantFrom('one', 'two'),
        field: fc.constantFrom('name', 'Alice'),
        keep: fc.constantFrom('newest', 'source:a', 'none'),
      })
      .map(({ id, changes, name, field, keep }): Command => {
        const definition = { kind: 'enrich', name, object_type: 'Person', field, keep } as const;
        const author = { credential: 'none', token: null } as const;
        return { kind: 'put-rule', id, definition, author, ...(changes !== undefined && { changes }) };
      }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('end-rule' as const), id: fc.constantFrom('r1', 'r2') }) },
);

const policyCommands: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('put-policy' as const),
      id: fc.constantFrom('p1', 'p2', '__proto__'),
      text: fc.constantFrom('permit(principal, action, resource);', 'forbid(principal, action, resource);', ''),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('delete-policy' as const), id: fc.constantFrom('p1', 'p2', '__proto__') }),
  },
);

export function termsOf(assigner: string, assignee: string, more: Partial<AgreementTerms> = {}): AgreementTerms {
  return {
    assigner,
    assignee,
    types: ['Person'],
    where: null,
    columns: null,
    permission: ['query'],
    purposes: [],
    validFrom: START,
    validTo: START * 2n,
    history: 'full',
    masking: {},
    onwardSharing: false,
    aggregateMinGroup: null,
    termsDigest: null,
    ...more,
  };
}

export const tenantIds = ['acme', 'globex', 'initech'] as const;
const tenantId = fc.constantFrom(...tenantIds);
const keyedTenant = <K extends string>(kind: K): fc.Arbitrary<{ kind: K; id: string }> =>
  fc.record({ kind: fc.constant(kind), id: tenantId });
const principal = fc.constantFrom('ada', 'bob', 'cy');
const role = fc.constantFrom('owner', 'reader');
const search = fc.constantFrom({}, { weights: { z: 1, a: [2.5, null] } }, JSON.parse('{"__proto__":{"b":1,"a":"x"}}') as object);

export const tenantCommands: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('create-tenant' as const),
      id: tenantId,
      name: fc.constantFrom('A', 'B'),
      tier: fc.constantFrom('standard', 'gold'),
      quota: fc.constantFrom({}, { inFlight: 3 }, { queryUnits: 0, storageBytes: null }),
      search: search as fc.Arbitrary<Record<string, never>>,
      members: fc.constantFrom([], [{ principal: 'ada', role: 'owner' }]),
      tenantsMax: fc.constantFrom(0, 2),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record(
      {
        kind: fc.constant('change-tenant' as const),
        id: tenantId,
        name: fc.constantFrom('A', 'B'),
        tier: fc.constantFrom('standard', 'gold'),
        quota: fc.constantFrom({ inFlight: 4 }, { inFlight: null }),
        search: search as fc.Arbitrary<Record<string, never>>,
        members: fc.array(fc.record({ change: fc.constantFrom('add', 'add', 'change', 'remove'), principal, role }), {
          minLength: 1,
          maxLength: 2,
        }),
      },
      { requiredKeys: ['kind', 'id'] },
    ) as fc.Arbitrary<Command>,
  },
  keyedTenant('suspend-tenant'),
  keyedTenant('reactivate-tenant'),
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('delete-tenant' as const),
      id: tenantId,
      manner: fc.constantFrom('soft' as const, 'purge' as const, 'purge' as const, 'tombstone' as const),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('purge-tenant' as const),
      id: tenantId,
      cursor: fc.constant(null),
      keysMax: fc.constantFrom(1, 2, 100),
    }),
  },
);

const agreementId = fc.constantFrom('g1', 'g2', 'g3');
const terms = fc
  .record({
    sides: fc.constantFrom(['acme', 'globex'], ['globex', 'acme/eu'], ['acme/eu', 'acme/us'], ['initech', 'acme']),
    where: fc.constantFrom(null, 'resource.name == "x"'),
    masking: fc.constantFrom({}, { name: 'redact' as const, age: 'bucket' as const }),
    life: fc.constantFrom(START * 2n, START + 9_000n, START + 20_000n),
  })
  .map(({ sides: [assigner, assignee], where, masking, life }) =>
    termsOf(assigner!, assignee!, { where, masking, validTo: life }),
  );

export const agreementCommands: fc.Arbitrary<Command> = fc.oneof(
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('propose-agreement' as const), id: agreementId, terms }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('move-agreement' as const),
      id: agreementId,
      to: fc.constantFrom(...agreementStates),
      side: fc.constantFrom('assigner' as const, 'assignee' as const, 'administrator' as const, 'clock' as const),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('change-agreement' as const), id: agreementId, terms }) },
);

/** Names that are forked, deleted and taken again, by several tenants and for the store at once. */
export const branches = ['dev', 'trial', 'types only'];

const branchCommands: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('fork-branch' as const),
      name: fc.constantFrom(...branches),
      source: fc.constantFrom('main', 'main', ...branches),
      shares: fc.constantFrom('everything' as const, 'everything' as const, 'ontology' as const),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('delete-branch' as const), name: fc.constantFrom(...branches) }) },
);

/** Vectors of whatever versions lie at some of the first positions. */
const embedCommands: fc.Arbitrary<Command> = fc
  .record({
    type: fc.constantFrom(...types, subjectType, subjectType),
    name: fc.constantFrom('small', 'large'),
    positions: fc.uniqueArray(fc.nat(60), { minLength: 5, maxLength: 40 }),
  })
  .map(({ type, name, positions }) => ({
    kind: 'embed-rows',
    type,
    branch: 'main',
    path: null,
    model: { name, digest: '0a'.repeat(32) },
    columns: ['name'],
    dims: 2,
    positions,
    vectors: Float32Array.from({ length: positions.length * 2 }, (_, i) => i + 1),
  }));

const steps = (commands: fc.Arbitrary<Command>): fc.Arbitrary<Step> =>
  fc.record({
    command: commands,
    path: fc.constantFrom(...paths),
    branch: fc.oneof(fc.constant(0), fc.nat(5)),
  });

export const rowHistories = (maxLength: number): fc.Arbitrary<Step[]> =>
  fc.array(steps(rowCommands), { minLength: 1, maxLength });

export const histories = (maxLength: number): fc.Arbitrary<Step[]> =>
  fc.array(
    steps(
      fc.oneof(
        { weight: 10, arbitrary: rowCommands },
        { weight: 3, arbitrary: typeCommands },
        { weight: 3, arbitrary: tokenCommands },
        { weight: 4, arbitrary: branchCommands },
        { weight: 3, arbitrary: exhibitCommands },
        { weight: 2, arbitrary: viewCommands },
        { weight: 2, arbitrary: ruleCommands },
        { weight: 2, arbitrary: policyCommands },
        { weight: 4, arbitrary: tenantCommands },
        { weight: 3, arbitrary: agreementCommands },
        { weight: 3, arbitrary: judgeCommands },
        { weight: 2, arbitrary: retentionCommands },
        { weight: 1, arbitrary: endingCommands },
        { weight: 3, arbitrary: erasureCommands },
        { weight: 3, arbitrary: embedCommands },
      ),
    ),
    { minLength: 1, maxLength },
  );

/** Little else than rows of subjects and their erasures, on branches too, in paths of few tenants. */
export const subjectHistories = (maxLength: number): fc.Arbitrary<Step[]> => {
  const onKeys = <K extends 'delete-rows' | 'remove-rows'>(kind: K): fc.Arbitrary<Command> =>
    fc
      .array(fc.constantFrom(...keys), { minLength: 1, maxLength: 2 })
      .map((of): Command => ({ kind, type: subjectType, keys: of }));
  return fc.array(
    fc.record({
      command: fc.oneof(
        { weight: 10, arbitrary: patientPuts },
        { weight: 2, arbitrary: onKeys('delete-rows') },
        { weight: 1, arbitrary: onKeys('remove-rows') },
        { weight: 3, arbitrary: branchCommands },
        { weight: 1, arbitrary: retentionCommands },
        { weight: 1, arbitrary: endingCommands },
        { weight: 4, arbitrary: erasureCommands },
        { weight: 4, arbitrary: embedCommands },
        { weight: 4, arbitrary: judgeCommands },
      ),
      path: fc.constantFrom(null, 'acme', 'acme', 'acme/eu'),
      branch: fc.oneof(fc.constant(0), fc.nat(5)),
    }),
    { minLength: Math.min(10, maxLength), maxLength },
  );
};

/** What an erasure of the subject that its reason names has to name; where rows are embedded. */
function asFound(store: Store, command: Command, path: string | null, branch: string): Command {
  if (command.kind === 'embed-rows') return { ...command, path, branch };
  if (command.kind !== 'intend-erasure') return command;
  const { rows, removedKeys, views, judgements } = store.projections;
  const names = new SubjectNames([command.reason]);
  const tenantOf = (owner: string | null): string | null => owner?.split('/')[0] ?? null;
  const owns = (owner: string | null): boolean => tenantOf(owner) === tenantOf(path);
  const { versions } = drained(rows.versionsOf(tenantOf(path), command.reason));
  const gone = new Set(versions.flatMap(({ positions }) => positions));
  const mentions = [...removedKeys.mentioning(names, owns), ...views.mentioning(names, owns)];
  return { ...command, versions, mentions: [...mentions, ...judgements.about(gone, tenantOf(path))] };
}

export function drained<T>(steps: Generator<undefined, T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/**
 * The same entries as they are read once the keys of erased subjects are gone: their rows have come without key, bounds and
 * cells, those that were removed or dropped with a branch before among them.
 */
export function withoutKeys(entries: readonly CommittedEntry[]): CommittedEntry[] {
  const erased = entries.flatMap(({ body, context, position }) =>
    body.kind === 'erasure' && body.change === 'intended' ? [{ subject: body.reason, tenant: context.tenant, position }] : [],
  );
  return entries.map((entry) => {
    const { body, context, position } = entry;
    if (isOpen(body) && isEmbedded(body.content)) {
      const { subjects, ...content } = body.content;
      if (subjects === undefined) return entry;
      const gone = subjects.map((subject) =>
        erased.some((each) => each.subject === subject && each.tenant === context.tenant && each.position > position),
      );
      const rows = [...gone.keys()].filter((row) => !gone[row]);
      const left = rows.flatMap((row) => [...content.vectors.subarray(row * 2, row * 2 + 2)]);
      const positions = Float64Array.from(rows, (row) => content.positions[row]!);
      return {
        ...entry,
        body: { ...body, content: { ...content, positions, vectors: Float32Array.from(left), isSealed: true } },
      };
    }
    if (body.kind !== 'rows' || !body.subjects) return entry;
    const { subjects: whose, ...rest } = body;
    const isErased = (row: number): boolean => {
      const subject = cellAt(whose, 'string', row);
      return erased.some((each) => each.subject === subject && each.tenant === context.tenant && each.position > position);
    };
    const dropped = Array.from(body.ops, (_, row) => row).filter(isErased);
    if (dropped.length === 0) return entry;
    const gone = new Set(dropped);
    return { ...entry, body: { ...rest, dropped, keys: emptied(body.keys, gone), cells: emptied(body.cells, gone) } };
  });
}

function emptied({ length, columns: of }: RowBatch, gone: ReadonlySet<number>): RowBatch {
  const left = of.map(({ name, type, vector }) => {
    const builder = new VectorBuilder(type, length);
    for (let row = 0; row < length; row++) builder.append(gone.has(row) ? null : cellAt(vector, type, row));
    return { name, type, vector: builder.build() };
  });
  return { length, columns: left };
}

/** Plays a history; a refused command leaves no entry, as in the store itself. */
export function play(store: Store, history: readonly Step[]): void {
  for (const { command, path, branch } of history) {
    const named = store.projections.branches.listFor(path?.split('/')[0] ?? null);
    const standing = ['main', ...named.map(({ name }) => name)];
    try {
      const on = standing[branch % standing.length]!;
      store.run(asFound(store, command, path, on), path, on);
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
    }
  }
}
