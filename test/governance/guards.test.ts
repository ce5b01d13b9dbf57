/** What opens guarded types, alone and through the gate: by what is stated, who states it, and nothing else. */
import { describe, expect, test } from 'vitest';
import { Guards } from '../../src/governance/authorization/guards.ts';
import type { GovernedSnapshot } from '../../src/governance/gate-contract.ts';
import { ServiceError } from '../../src/errors.ts';
import type { TypeDefinition, TypeGuard } from '../../src/log/entries/entry.ts';
import { protectionOf } from '../../src/projections/catalog/type-guards.ts';
import { caller, putRows, refusalOf, World } from './world.ts';

const property = { type: 'string', required: false, masked: false, indexed: false, subject: false, dims: 0 } as const;

function type(name: string, guard?: TypeGuard, references?: string): TypeDefinition {
  const properties = { name: property, of: references === undefined ? property : { ...property, references } };
  return { name, properties, open: false, primaryKey: null, graphTriggers: [], ontologyVersion: 1, ...(guard && { guard }) };
}

const types = [
  type('Open'),
  type('Secret', { protected: true, accessScope: false }),
  type('Scoped', { protected: false, accessScope: true }),
  type('Both', { protected: true, accessScope: true }),
  type('Names', undefined, 'Secret'),
  type('NamesOpen', undefined, 'Open'),
];
const protection = (name: string) => protectionOf(types.filter((each) => each.name === name));

interface Stating {
  readonly reason?: string;
  readonly ref?: string;
  readonly roles?: readonly string[];
  readonly scopes?: string | number;
  readonly permitted?: readonly string[];
}

function guardsOf({ reason, ref, roles = [], scopes, permitted = [] }: Stating): Guards {
  const attributes = scopes === undefined ? {} : { access_scopes: scopes };
  const opening = { caller: { roles, attributes }, breakGlass: reason ?? null, accessScopeRef: ref ?? null };
  return new Guards(opening, protection, { permitsOpening: (_, name) => permitted.includes(name) });
}

/** How a type answers: a code, or null where it is open. */
function answer(stating: Stating, name: string, columns: readonly string[] = ['name']): string | null {
  try {
    guardsOf(stating).check(name, columns);
    return null;
  } catch (error) {
    if (error instanceof ServiceError) return error.code;
    throw error;
  }
}

describe('guards', () => {
  const role = ['break-glass'];

  test.each<[string, Stating, string | null]>([
    ['nothing', {}, 'REL_HUMINT'],
    ['the role alone', { roles: role }, 'REL_HUMINT'],
    ['a permit alone', { permitted: ['Secret'] }, 'REL_HUMINT'],
    ['a reason alone', { reason: 'x' }, 'REL_ACL'],
    ['a reason and another role', { reason: 'x', roles: ['break-glasses'] }, 'REL_ACL'],
    ['a reason and a permit for another type', { reason: 'x', permitted: ['Both'] }, 'REL_ACL'],
    ['a scope', { ref: 's', scopes: 's', roles: role }, 'REL_HUMINT'],
    ['a reason and the role', { reason: 'x', roles: role }, null],
    ['a reason and a permit', { reason: 'x', permitted: ['Secret'] }, null],
  ])('of a protected type answer to %s', (_, stating, code) => {
    expect(answer(stating, 'Secret')).toBe(code);
    expect(answer(stating, 'Names', ['of'])).toBe(code === null ? null : 'REL_PROTECTED_COLUMN');
    expect(answer(stating, 'Names', ['name'])).toBeNull();
    expect(answer(stating, 'NamesOpen', ['of'])).toBeNull();
    expect(answer(stating, 'Open', ['of', 'name'])).toBeNull();
  });

  test.each<[string, Stating, boolean]>([
    ['nothing', {}, false],
    ['a scope without a clearance', { ref: 's' }, false],
    ['a clearance without a scope', { scopes: 's' }, false],
    ['another scope', { ref: 'a', scopes: 's,t' }, false],
    ['all of the clearance', { ref: 's,t', scopes: 's,t' }, false],
    ['a part of a name', { ref: 's', scopes: 'ss,ts' }, false],
    ['a clearance that is no text', { ref: '5', scopes: 5 }, false],
    ['a reason', { reason: 'x', roles: role }, false],
    ['one of the clearance', { ref: 't', scopes: 's, t' }, true],
  ])('of a scoped type answer to %s', (_, stating, open) => {
    expect(answer(stating, 'Scoped')).toBe(open ? null : 'REL_ACCESS_SCOPE');
  });

  test('of a type with both ask for both', () => {
    expect(answer({ reason: 'x', roles: role }, 'Both')).toBe('REL_ACCESS_SCOPE');
    expect(answer({ ref: 's', scopes: 's' }, 'Both')).toBe('REL_HUMINT');
    expect(answer({ reason: 'x', roles: role, ref: 's', scopes: 's' }, 'Both')).toBeNull();
  });

  test('have keys that differ where what they open may differ', () => {
    const keys = [
      {},
      { reason: 'x' },
      { reason: 'y' },
      { reason: 'x', roles: role },
      { ref: 's' },
      { ref: 's', scopes: 's' },
      { reason: 'x', roles: role, ref: 's', scopes: 's' },
    ].map((stating) => guardsOf(stating).key);
    expect(new Set(keys).size).toBe(keys.length);
    expect(guardsOf({ roles: role, scopes: 's' }).key).toBe(guardsOf({}).key);
  });
});

describe('through the gate', () => {
  const officer = caller({ path: 'acme', roles: ['break-glass'], attributes: { access_scopes: 's' } });
  const opening = { breakGlass: 'threat', accessScopeRef: 's' };

  function world(): World {
    const made = new World();
    made.state.types.push(...types);
    return made;
  }

  const snapshotOf = (made: World, stated: object): Promise<GovernedSnapshot> =>
    made.gate.invoke(officer, { action: 'query', purpose: null, correlationId: 'c', ...stated }, async (invocation) =>
      invocation.snapshot(),
    );

  test('nothing of a closed type is read: rows, guesses, lineage, removals', async () => {
    const made = world();
    made.state.put('acme', 'row');
    const scan = { columns: ['name'], time: { system: 'all', valid: 'all' } } as const;
    const ways: readonly ((snapshot: GovernedSnapshot, name: string) => unknown)[] = [
      ({ rows }, name) => rows.scan({ type: name, ...scan }),
      ({ stored }, name) => stored.scan({ type: name, ...scan }),
      ({ rows }, name) => rows.estimate({ type: name, ...scan }),
      ({ rows }, name) => rows.provenanceOf(name, 0n),
      ({ removals }, name) => removals.removedAfter(name, 0n),
    ];
    const shut = await snapshotOf(made, {});
    const open = await snapshotOf(made, opening);
    for (const way of ways) {
      for (const [name, code] of [
        ['Secret', 'REL_HUMINT'],
        ['Scoped', 'REL_ACCESS_SCOPE'],
        ['Both', 'REL_HUMINT'],
      ] as const) {
        expect((await refusalOf(() => way(shut, name))).code).toBe(code);
        expect(() => way(open, name)).not.toThrow();
      }
      expect(() => way(shut, 'Open')).not.toThrow();
    }
    const named = { type: 'Names', columns: ['name', 'of'], time: scan.time };
    expect((await refusalOf(() => shut.rows.scan(named))).code).toBe('REL_PROTECTED_COLUMN');
    expect(() => open.rows.scan(named)).not.toThrow();
  });

  test('what was made for one who states a reason is not for one who states none', async () => {
    const made = world();
    const keys = await Promise.all(
      [{}, opening, { breakGlass: 'threat' }].map(async (stated) => (await snapshotOf(made, stated)).grantKey),
    );
    expect(new Set(keys).size).toBe(3);
    expect((await snapshotOf(made, {})).grantKey).toBe(keys[0]);
    const { breakGlass, accessScopeRef } = await snapshotOf(made, opening);
    expect({ breakGlass, accessScopeRef }).toEqual(opening);
  });

  test('nothing is written into a closed type, nor a cell that names rows of one', async () => {
    const made = world();
    const write = (stated: object, command: Parameters<typeof putRows>[0], columns: readonly string[] = []): Promise<unknown> =>
      made.gate.invoke(officer, { action: 'ingest', purpose: null, correlationId: 'c', ...stated }, (invocation) => {
        const text = { kind: 'text', offsets: Uint32Array.of(0, 0), heap: new Uint8Array(), nulls: null } as const;
        const named = columns.map((name) => ({ name, type: 'string' as const, vector: text }));
        return invocation.submit({ ...putRows(command), rows: { length: 1, columns: named } });
      });
    expect((await refusalOf(write({}, 'Secret'))).code).toBe('REL_HUMINT');
    expect((await refusalOf(write({}, 'Scoped'))).code).toBe('REL_ACCESS_SCOPE');
    expect((await refusalOf(write({}, 'Names', ['of']))).code).toBe('REL_PROTECTED_COLUMN');
    expect(made.steps.filter((step) => step.startsWith('decide'))).toEqual([]);
    await write({}, 'Names', ['name']);
    await write(opening, 'Both');
    await write(opening, 'Names', ['of']);
    for (const kind of ['delete-rows', 'remove-rows'] as const) {
      const end = (stated: object): Promise<unknown> =>
        made.gate.invoke(officer, { action: 'delete', purpose: null, correlationId: 'c', ...stated }, (invocation) =>
          invocation.submit({ kind, type: 'Secret', keys: ['a'] }),
        );
      expect((await refusalOf(end({}))).code).toBe('REL_HUMINT');
      await end(opening);
    }
  });

  test('what is described later counts from there on', async () => {
    const made = world();
    await made.gate.invoke(officer, { action: 'query', purpose: null, correlationId: 'c' }, async (invocation) => {
      const scan = { type: 'Secret', columns: [], time: { system: 'all', valid: 'all' } } as const;
      expect(() => invocation.snapshot().rows.scan(scan)).toThrow();
      invocation.describe({ breakGlass: 'threat' });
      expect(() => invocation.snapshot().rows.scan(scan)).not.toThrow();
    });
    expect(made.records.at(-1)!.stated).toEqual({ breakGlass: 'threat', accessScopeRef: null });
  });
});
