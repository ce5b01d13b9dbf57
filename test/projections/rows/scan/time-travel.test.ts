/** Reads on both time axes, by scan and by key, against a filter over a plain list of all versions. */
import { tenantOf } from '../../../../src/log/values/value.ts';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { TimeBounds } from '../../../../src/projections/access-paths.ts';
import { property } from '../../histories.ts';
import { Model, type ModelVersion, systemTo } from '../../model.ts';
import { type PlainRow, START, Store } from '../../store.ts';

const paths = [null, 'acme', 'acme/eu'];
const tenants = [null, 'acme'];
const pathsOf = (tenant: string | null, of: readonly (string | null)[] = paths): (string | null)[] =>
  of.filter((path) => tenantOf(path) === tenant);
const keys = ['a', 'b', 'c', 'd'];
const columns = { _pk: 'string', value: 'integer', valid_from: 'timestamp', valid_to: 'timestamp' } as const;
const shown = ['_pk', 'namespace_path', 'value', 'valid_from', 'valid_to', 'system_from', 'system_to'];

const instant = fc.integer({ min: -3, max: 30 }).map((step) => START + BigInt(step) * 500n);
const row = fc.record({
  key: fc.constantFrom(...keys),
  from: fc.option(instant, { freq: 2 }),
  to: fc.option(instant, { freq: 2 }),
});
const action = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('put' as const), rows: fc.array(row, { minLength: 1, maxLength: 5 }) }) },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('plain' as const), rows: fc.array(row, { minLength: 1, maxLength: 5 }) }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('end' as const), keys: fc.subarray(keys, { minLength: 1 }) }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('remove' as const), keys: fc.subarray(keys, { minLength: 1, maxLength: 2 }) }),
  },
);
const history = fc.array(fc.record({ action, path: fc.constantFrom(...paths) }), { minLength: 1, maxLength: 14 });

interface World {
  readonly store: Store;
  readonly model: Model;
}

function play(actions: typeof history extends fc.Arbitrary<infer T> ? T : never): World {
  const store = new Store();
  const model = new Model();
  let value = 0n;
  // The type is whole from the start, so that rows begin where their entry does.
  store.run({
    kind: 'register-type',
    name: 'T',
    properties: { value: property('integer') },
    primaryKey: null,
    graphTriggers: [],
  });
  for (const { action: what, path } of actions) {
    const { position, time } = store;
    if (what.kind === 'end') {
      store.run({ kind: 'delete-rows', type: 'T', keys: what.keys }, path);
      model.end(path, what.keys, position, time);
    } else if (what.kind === 'remove') {
      store.run({ kind: 'remove-rows', type: 'T', keys: what.keys }, path);
      model.remove(path, what.keys);
    } else {
      const rows = what.rows.map(({ key, from, to }) => ({
        key,
        value: value++,
        from: what.kind === 'plain' ? null : from,
        to: what.kind === 'plain' ? null : to,
      }));
      model.put(path, rows, position, time);
      store.put(
        'T',
        columns,
        rows.map(({ key, value: cell, from, to }) => ({ _pk: key, value: cell, valid_from: from, valid_to: to })),
        { path },
      );
    }
  }
  return { store, model };
}

/** Of a history's positions: evenly, because bases in its middle are the ones that tell. */
const share = fc.integer({ min: 0, max: 1000 }).map((n) => n / 1000);

type Probe = 'all' | number | bigint;

/** On the valid axis also the very instants at which rows begin and end. */
const bounds: fc.Arbitrary<{ system: Probe; valid: Probe }> = fc.record({
  system: fc.oneof(
    fc.constant('all' as const),
    fc.integer({ min: -100, max: 1100 }).map((n) => n / 1000),
  ),
  valid: fc.oneof(
    fc.constant('all' as const),
    fc.integer({ min: -100, max: 1100 }).map((n) => n / 1000),
    instant,
  ),
});

/** Shares of the history's length become instants, single nanoseconds of entries among them. */
function timeOf(store: Store, part: Probe): bigint | 'all' {
  if (typeof part !== 'number') return part;
  const exact = store.projections.timeline.timeOf(Math.min(store.position - 1, Math.max(0, Math.floor(part * store.position))));
  return Math.round(part * 1000) % 3 > 0 ? exact : START + BigInt(Math.round(part * Number(store.time - START)));
}

function plainOf(version: ModelVersion, basis: number): PlainRow {
  return {
    _pk: version.key,
    namespace_path: version.path,
    value: version.value,
    valid_from: version.validFrom,
    valid_to: version.validTo,
    system_from: version.systemFrom,
    system_to: systemTo(version, basis),
  };
}

describe('reads on two time axes', () => {
  test('a scan gives what a filter over all versions gives, at any basis, for any paths', () => {
    fc.assert(
      fc.property(
        history,
        bounds,
        share,
        fc.subarray(paths),
        fc.integer({ min: 1, max: 9 }),
        (actions, shares, part, visible, blockRows) => {
          const { store, model } = play(actions);
          const basis = Math.ceil(part * store.position);
          const time: TimeBounds = { system: timeOf(store, shares.system), valid: timeOf(store, shares.valid) };
          const { scopes } = store.projections.rows;
          const codes = visible.map((path) => scopes.codeOf(path)).filter((code) => code >= 0);
          codes.sort((a, b) => a - b);
          for (const tenant of tenants) {
            // Codes of another tenant's paths open nothing.
            const expected = model.read(time, basis, pathsOf(tenant, visible)).map((version) => plainOf(version, basis));
            expect(store.read('T', shown, { time, paths: codes, blockRows, tenant }, basis)).toEqual(expected);
            if (visible.length < paths.length) continue;
            expect(store.read('T', shown, { time, blockRows, tenant }, basis)).toEqual(expected);
          }
        },
      ),
      { numRuns: 400 },
    );
  });

  test('reading by key gives what a scan gives for those keys', () => {
    fc.assert(
      fc.property(history, bounds, share, fc.subarray([...keys, 'nobody']), (actions, shares, part, asked) => {
        const { store, model } = play(actions);
        const basis = Math.ceil(part * store.position);
        const time: TimeBounds = { system: timeOf(store, shares.system), valid: timeOf(store, shares.valid) };
        for (const tenant of tenants) {
          const expected = model.read(time, basis, pathsOf(tenant), asked).map((version) => plainOf(version, basis));
          expect(store.read('T', shown, { time, keys: asked, tenant }, basis)).toEqual(expected);
        }
      }),
      { numRuns: 400 },
    );
  });

  test('paging after a system_from leaves out what is at or before it', () => {
    fc.assert(
      fc.property(history, share, (actions, part) => {
        const { store, model } = play(actions);
        const after = timeOf(store, part) as bigint;
        for (const tenant of tenants) {
          const expected = model.versions
            .filter((version) => version.systemFrom > after && tenantOf(version.path) === tenant)
            .map((version) => plainOf(version, store.position));
          expect(store.read('T', shown, { after, tenant })).toEqual(expected);
        }
      }),
    );
  });

  test('a block says which path all of its rows have, and offers the path of each', () => {
    fc.assert(
      fc.property(history, (actions) => {
        const { store } = play(actions);
        const { scopes } = store.projections.rows;
        const request = {
          type: 'T',
          columns: ['#path', 'namespace_path', 'tenant_id'],
          time: { system: 'all', valid: 'all' },
          blockRows: 3,
        } as const;
        for (const block of tenants.flatMap((tenant) => store.blocks({ ...request, tenant }))) {
          const [codes] = block.columns;
          if (codes!.kind !== 'i32') throw new Error('path codes are i32');
          const rows = store.rowsOf('T', ['#path', 'namespace_path', 'tenant_id'], {
            ...block,
            columns: [{ kind: 'null' }, block.columns[1]!, block.columns[2]!],
          });
          const own = Array.from({ length: block.count }, (_, k) =>
            scopes.path(codes.values[block.selection ? block.selection[k]! : block.first + k]!),
          );
          expect(rows.map((each) => each['namespace_path'])).toEqual(own);
          expect(rows.map((each) => each['tenant_id'])).toEqual(own.map((path) => path?.split('/')[0] ?? null));
          expect(block.path).toBe(new Set(own).size === 1 ? scopes.codeOf(own[0]!) : -1);
        }
      }),
    );
  });

  test('no estimate counts rows of paths that were not asked for', () => {
    fc.assert(
      fc.property(history, (actions) => {
        const { store, model } = play(actions);
        const { scopes } = store.projections.rows;
        for (const path of paths) {
          const snapshot = store.snapshot(store.position, 'main', tenantOf(path));
          const code = scopes.codeOf(path);
          const request = { type: 'T', columns: [], paths: code < 0 ? [] : [code] };
          const all = snapshot.rows.estimate({ ...request, time: { system: 'all', valid: 'all' } });
          expect(all).toMatchObject({
            access: 'all versions',
            rows: model.versions.filter((version) => version.path === path).length,
          });
          const live = snapshot.rows.estimate({ ...request, time: { system: store.time, valid: 'all' } });
          expect(live).toMatchObject({
            access: 'live',
            rows: model.read({ system: store.time, valid: 'all' }, store.position, [path]).length,
          });
        }
      }),
    );
  });
});
