/** Random histories of commands, as fast-check arbitraries, and how they are played into a store. */
import fc from 'fast-check';
import { ServiceError } from '../../src/errors.ts';
import type { PropertyDefinition, TokenRecord } from '../../src/log/entry.ts';
import type { ColumnType } from '../../src/log/value.ts';
import type { Command, PutRows } from '../../src/projections/command.ts';
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
  { weight: 2, arbitrary: receiptedPuts },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('delete-rows' as const),
      type: fc.constantFrom(...types),
      keys: fc.array(fc.constantFrom(...keys), { minLength: 1, maxLength: 3 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('remove-rows' as const),
      type: fc.constantFrom(...types),
      keys: fc.array(fc.constantFrom(...keys), { minLength: 1, maxLength: 2 }),
    }),
  },
);

const typeCommands = fc.oneof(
  fc.constantFrom(...types).map(
    (name): Command => ({
      kind: 'register-type',
      name,
      properties: { age: property('integer'), name: property('string') },
      primaryKey: null,
      graphTriggers: [],
    }),
  ),
  fc
    .tuple(fc.constantFrom(...types), fc.constantFrom('age', 'name', 'ok', 'extra'), fc.constantFrom('number', 'json', 'string'))
    .map(
      ([name, column, type]): Command => ({ kind: 'evolve-type', name, properties: { [column]: property(type as ColumnType) } }),
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

const viewCommands = fc
  .record({
    name: fc.constantFrom('v1', 'v2', 'Person'),
    sql: fc.constantFrom('SELECT id FROM Person', 'SELECT COUNT(*) FROM Event'),
    refreshSecs: fc.constantFrom(60, 5, 0),
  })
  .map((view): Command => ({ kind: 'create-view', ...view }));

/** Names that are forked, deleted and taken again. */
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
      ),
    ),
    { minLength: 1, maxLength },
  );

/** Plays a history; a refused command leaves no entry, as in the store itself. */
export function play(store: Store, history: readonly Step[]): void {
  for (const { command, path, branch } of history) {
    const standing = ['main', ...store.projections.branches.list().map(({ name }) => name)];
    try {
      store.run(command, path, standing[branch % standing.length]);
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
    }
  }
}
