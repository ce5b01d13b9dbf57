/** Types of branches: each goes its own way from the fork on, and so do the cells that were inherited. */
import { beforeEach, describe, expect, test } from 'vitest';
import type { ColumnType } from '../../../src/log/values/value.ts';
import { cellAt } from '../../../src/log/values/vector-builder.ts';
import { code, everything, World } from '../branch-world.ts';
import { property } from '../histories.ts';

let world: World;

beforeEach(() => {
  world = new World();
});

const put = (branch: string, ...wanted: readonly string[]): void => world.plainly(branch, ...wanted);
const live = (branch: string): string[] => world.live(branch);
const fork = (name: string, source = 'main', shares: 'everything' | 'ontology' = 'everything'): unknown =>
  world.store.run({ kind: 'fork-branch', name, source, shares });

describe('types of branches', () => {
  const evolve = (branch: string, column: string, type: ColumnType): unknown =>
    world.store.run({ kind: 'evolve-type', name: 'T', properties: { [column]: property(type) } }, null, branch);
  const typeOf = (branch: string, column: string): string | undefined =>
    world.store.snapshot(world.store.position, branch).catalog.type('T')!.properties[column]?.type;
  const cells = (branch: string, column: string): unknown[] =>
    world.store.read('T', [column], {}, world.store.position, branch).map((each) => each[column]);

  test('go their own ways, each with an ontology version of its own', () => {
    fork('dev');
    evolve('dev', 'more', 'string');
    evolve('dev', 'yet', 'string');
    evolve('main', 'other', 'boolean');
    expect([typeOf('dev', 'more'), typeOf('main', 'more'), typeOf('dev', 'other')]).toEqual(['string', undefined, undefined]);
    const version = (branch: string): number => world.store.snapshot(world.store.position, branch).catalog.ontologyVersion;
    expect([version('main'), version('dev')]).toEqual([2, 3]);
  });

  test.each<[ColumnType, unknown[]]>([
    ['number', [0, 1, 2]],
    ['json', ['0', '1', '2']],
    ['string', ['0', '1', '2']],
  ])('a column that a branch widened to %s reads so, inherited rows too, and the source as before', (type, expected) => {
    put('main', 'a', 'b');
    world.fork('dev', 'main', 'everything');
    evolve('dev', 'value', type);
    world.store.put('T', { _pk: 'string', value: type }, [{ _pk: 'c', value: type === 'number' ? 2 : '2' }], { branch: 'dev' });
    expect(cells('dev', 'value')).toEqual(expected);
    expect(cells('main', 'value')).toEqual([0n, 1n]);
  });

  test.each<ColumnType>(['number', 'json', 'string'])(
    'a column that the source widened to %s reads on a branch as it was',
    (type) => {
      put('main', 'a', 'b');
      world.fork('dev', 'main', 'everything');
      evolve('main', 'value', type);
      put('dev', 'c');
      expect(cells('dev', 'value')).toEqual([0n, 1n, 2n]);
      world.fork('late', 'main', 'everything');
      expect(cells('late', 'value')).toEqual(type === 'number' ? [0, 1] : ['0', '1']);
      // Hard deletes reach what a column was, too.
      world.remove('main', null, ['a']);
      expect(cells('dev', 'value')).toEqual([1n, 2n]);
    },
  );

  test('a reader of a branch that is deleted meanwhile reads the columns as they were still', () => {
    put('main', 'a');
    world.fork('dev', 'main', 'everything');
    evolve('main', 'value', 'number');
    const { rows } = world.store.snapshot(world.store.position, 'dev');
    world.drop('dev');
    const block = rows.scan({ type: 'T', columns: ['value'], time: everything }).next().value!;
    expect(cellAt(block.columns[0]!, 'integer', block.first)).toBe(0n);
  });

  test('strings that a source made JSON are strings on the branch still, by value and by key', () => {
    world.store.put('T', { _pk: 'string', name: 'string' }, [{ _pk: 's', name: '"quoted"' }], {});
    expect(typeOf('main', 'name')).toBeUndefined();
    evolve('main', 'name', 'string');
    world.store.put('T', { _pk: 'string', name: 'string' }, [{ _pk: 's', name: '"quoted"' }], {});
    fork('dev');
    evolve('main', 'name', 'json');
    expect(cells('dev', 'name')).toEqual(['"quoted"']);
    expect(cells('main', 'name')).toEqual(['"\\"quoted\\""']);
  });

  test('both may widen one column, each to what it likes, and a third be forked from either', () => {
    put('main', 'a');
    world.fork('dev', 'main', 'everything');
    evolve('main', 'value', 'number');
    evolve('dev', 'value', 'json');
    world.fork('trial', 'main', 'everything');
    evolve('trial', 'value', 'json');
    evolve('main', 'value', 'json');
    expect([cells('main', 'value'), cells('dev', 'value'), cells('trial', 'value')]).toEqual([['0'], ['0'], ['0']]);
    expect(typeOf('trial', 'value')).toBe('json');
  });

  test('a column of one name that source and branch declare apart holds what each wrote', () => {
    put('main', 'a');
    world.fork('dev', 'main', 'everything');
    evolve('main', 'tag', 'string');
    evolve('dev', 'tag', 'integer');
    world.store.put('T', { _pk: 'string', tag: 'string' }, [{ _pk: 'b', tag: 'x' }], { branch: 'main' });
    world.store.put('T', { _pk: 'string', tag: 'integer' }, [{ _pk: 'b', tag: 7n }], { branch: 'dev' });
    expect(cells('main', 'tag')).toEqual([null, 'x']);
    expect(cells('dev', 'tag')).toEqual([null, 7n]);
  });

  test('an integer beyond 2^53 of the source’s own time does not keep a branch from widening', () => {
    put('main', 'a');
    world.fork('dev', 'main', 'everything');
    world.store.put('T', { _pk: 'string', value: 'integer' }, [{ _pk: 'b', value: 2n ** 60n + 1n }], {});
    expect(code(() => evolve('main', 'value', 'number'))).toBe('REL_CONFLICT');
    evolve('dev', 'value', 'number');
    expect(cells('dev', 'value')).toEqual([0]);
    put('dev', 'z');
    world.store.put('T', { _pk: 'string', extra: 'integer' }, [{ _pk: 'b', extra: 1n }], { branch: 'main' });
    expect(code(() => evolve('main', 'value', 'number'))).toBe('REL_CONFLICT');
  });

  test('ending or bounding an inherited row carries its cells over, in the branch’s own types', () => {
    put('main', 'a');
    world.fork('dev', 'main', 'everything');
    evolve('dev', 'value', 'number');
    world.store.run({ kind: 'delete-rows', type: 'T', keys: ['a'] }, null, 'dev');
    expect(cells('dev', 'value')).toEqual([0, 0]);
    expect(live('main')).toEqual(['a0']);
  });
});

describe('a snapshot of an earlier instant', () => {
  const then = (branch: string, instant: bigint): unknown[] => {
    const paths = world.store.projections.snapshotOf(instant, branch, null);
    const found: unknown[] = [];
    const scan = paths.rows.scan({ type: 'T', columns: ['value'], time: everything });
    const type = paths.catalog.type('T')!.properties['value']!.type;
    for (let step = scan.next(); step.done !== true; step = scan.next()) {
      const { columns: vectors, selection, first, count } = step.value;
      for (let k = 0; k < count; k++) found.push(cellAt(vectors[0]!, type, selection ? selection[k]! : first + k));
    }
    return found;
  };

  test('of a branch has its rows and its types of then, whatever either branch made of them since', () => {
    put('main', 'a');
    world.fork('dev', 'main', 'everything');
    put('dev', 'b');
    const time = world.store.time - 1n;
    world.store.run({ kind: 'evolve-type', name: 'T', properties: { value: property('json') } }, null, 'dev');
    world.store.run({ kind: 'evolve-type', name: 'T', properties: { value: property('number') } }, null, 'main');
    world.store.put('T', { _pk: 'string', value: 'json' }, [{ _pk: 'a', value: '"x"' }], { branch: 'dev' });
    expect(then('dev', time)).toEqual([0n, 1n]);
    expect(then('main', time)).toEqual([0n]);
  });

  test('from before the fork is not the branch’s', () => {
    put('main', 'a');
    const time = world.store.time - 1n;
    put('main', 'b');
    world.fork('dev', 'main', 'everything');
    expect(code(() => world.store.projections.snapshotOf(time, 'dev', null))).toBe('REL_NOT_FOUND');
  });
});
