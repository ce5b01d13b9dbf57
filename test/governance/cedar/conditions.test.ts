/** Many rules over blocks of columns: the same rows pass as when each rule is asked of each row. */
import { describe, expect, test } from 'vitest';
import type { Dictionary, Vector } from '../../../src/log/values/columns.ts';
import type { TypeDefinition } from '../../../src/log/entries/entry.ts';
import type { ColumnType } from '../../../src/log/values/value.ts';
import type { Asker } from '../../../src/governance/authorization/cedar/entities.ts';
import type { RowCondition } from '../../../src/governance/authorization/grant.ts';
import { PolicySet } from '../../../src/governance/authorization/policy-set.ts';
import { Seeded } from '../../simulation/seeded.ts';
import { typeOf } from './generator.ts';

const asker: Asker = {
  principal: 'ann',
  roles: [],
  path: null,
  attributes: {},
  purpose: null,
  door: 'http',
  branch: 'main',
  breakGlass: null,
  accessScopeRef: null,
  clientIp: null,
};

function typeWith(columns: Readonly<Record<string, ColumnType>>): TypeDefinition {
  const { properties } = typeOf('T');
  return {
    ...typeOf('T'),
    properties: Object.fromEntries(Object.entries(columns).map(([name, type]) => [name, { ...properties['n']!, type }])),
  };
}

function conditionOf(type: TypeDefinition, ...rules: readonly string[]): RowCondition {
  const text = rules
    .map((rule) => (rule.startsWith('forbid') ? rule : `permit(principal, action, resource) when { ${rule} };`))
    .join('\n');
  const { rows } = new PolicySet(new Map([['p', text]])).callerPolicies(asker).rows('read', type, 0n);
  if (rows === null || rows === 'none') throw new Error(`not a condition: ${rows}`);
  return rows;
}

function passing(condition: RowCondition, columns: Readonly<Record<string, Vector>>, count: number): readonly boolean[] {
  const out = new Uint8Array(count);
  condition.test(
    condition.columns.map((name) => columns[name]!),
    null,
    0,
    count,
    out,
  );
  return [...out].map((one) => one === 1);
}

class Words implements Dictionary {
  readonly texts: string[] = [];
  get size(): number {
    return this.texts.length;
  }
  text(code: number): string {
    return this.texts[code]!;
  }
  codeOf(text: string): number {
    return this.texts.indexOf(text);
  }
  vector(texts: readonly string[]): Vector {
    for (const text of new Set(texts)) if (this.codeOf(text) < 0) this.texts.push(text);
    return { kind: 'dict', values: Int32Array.from(texts, (text) => this.codeOf(text)), dictionary: this, nulls: null };
  }
}

function heapOf(texts: readonly string[]): Vector {
  const offsets = new Uint32Array(texts.length + 1);
  texts.forEach((text, i) => (offsets[i + 1] = offsets[i]! + Buffer.byteLength(text)));
  return { kind: 'text', heap: Buffer.from(texts.join('')), offsets, nulls: null };
}

describe('a hundred rules', () => {
  const dice = new Seeded(5);
  const count = 3000;

  test.each(['i32', 'f64', 'i64'] as const)('about ranges of an integer in %s', (kind) => {
    const ranges = Array.from({ length: 100 }, (_, i) => [i * 1000 - 20_000, i * 1000 - 20_000 + dice.below(900)] as const);
    const condition = conditionOf(
      typeWith({ n: 'integer' }),
      ...ranges.map(([from, to]) => `resource.n >= ${from} && resource.n < ${to}`),
    );
    const edges = ranges.flat().flatMap((edge) => [edge - 1, edge, edge + 1]);
    const values = [...edges, -(2 ** 31), 2 ** 31 - 1, ...Array.from({ length: count }, () => dice.below(120_000) - 30_000)];
    const vector: Vector =
      kind === 'i64'
        ? { kind, values: BigInt64Array.from(values, BigInt), nulls: null }
        : kind === 'i32'
          ? { kind, values: Int32Array.from(values), nulls: null }
          : { kind, values: Float64Array.from(values), nulls: null };
    expect(passing(condition, { n: vector }, values.length)).toEqual(
      values.map((n) => ranges.some(([from, to]) => n >= from && n < to)),
    );
  });

  test('about integers that no double tells apart', () => {
    const at = 2n ** 60n;
    const condition = conditionOf(typeWith({ n: 'integer' }), 'resource.n > 1152921504606846 * 1000 + 976', 'resource.n == 7');
    const values = [at - 1n, at, at + 1n, at + 2n, 7n, -at];
    const vector: Vector = { kind: 'i64', values: BigInt64Array.from(values), nulls: null };
    expect(passing(condition, { n: vector }, values.length)).toEqual([false, false, true, true, true, false]);
  });

  test('about instants, by their milliseconds', () => {
    const days = Array.from({ length: 28 }, (_, i) => `2024-01-${String(i + 1).padStart(2, '0')}`);
    const condition = conditionOf(
      typeWith({ at: 'timestamp' }),
      ...days.filter((_, i) => i % 2 === 0).map((day) => `resource.at.toDate() == datetime("${day}")`),
      ...days
        .filter((_, i) => i % 7 === 1)
        .map((day) => `resource.at <= datetime("${day}") && resource.at >= datetime("${day}")`),
    );
    const start = BigInt(Date.UTC(2023, 11, 30)) * 1_000_000n;
    const values = Array.from(
      { length: count },
      (_, i) => start + BigInt(i) * 900_000_000_000n + BigInt(dice.below(3)) * 999_999n,
    );
    const expected = values.map((ns) => {
      const ms = Number(ns / 1_000_000n);
      const day = Math.floor((ms - Date.UTC(2024, 0, 1)) / 86_400_000);
      return day >= 0 && day < 28 && (day % 2 === 0 || (day % 7 === 1 && ms % 86_400_000 === 0));
    });
    expect(expected.includes(true) && expected.includes(false)).toBe(true);
    expect(passing(condition, { at: { kind: 'i64', values: BigInt64Array.from(values), nulls: null } }, count)).toEqual(expected);
  });

  test.each([
    ['texts that they name', (i: number) => `resource.s == "w${i}é"`, (i: number) => (text: string) => text === `w${i}é`],
    ['patterns', (i: number) => `resource.s like "w${i}*"`, (i: number) => (text: string) => text.startsWith(`w${i}`)],
  ] as const)('about %s, in a dictionary and in a heap', (_, rule, predicate) => {
    const asked = Array.from({ length: 100 }, (_one, i) => i * 3);
    const condition = conditionOf(typeWith({ s: 'string' }), ...asked.map(rule));
    const texts = Array.from({ length: count }, () => dice.pick([`w${dice.below(500)}é`, `w${dice.below(500)}`, '', 'w']));
    const expected = texts.map((text) => asked.some((i) => predicate(i)(text)));
    expect(passing(condition, { s: heapOf(texts) }, count)).toEqual(expected);
    const words = new Words();
    // A dictionary grows under the condition's feet.
    for (const upTo of [10, 300, count]) {
      const some = texts.slice(0, upTo);
      expect(passing(condition, { s: words.vector(some) }, upTo)).toEqual(expected.slice(0, upTo));
    }
  });

  test.each([
    ['two', 2, 6],
    ['four', 4, 40],
    ['six', 6, 40],
  ])('about %i columns at once', (_, columns, size) => {
    const names = Array.from({ length: columns }, (_one, i) => `c${i}`);
    const rules = Array.from({ length: 100 }, (_one, i) => {
      const words = names.map(() => dice.below(size));
      return { words, forbids: i % 5 === 4, first: i % columns };
    });
    const type = typeWith(Object.fromEntries(names.map((name) => [name, 'string'])));
    const condition = conditionOf(
      type,
      ...rules.map(({ words, forbids, first }) => {
        const said = words.map((word, i) => `resource.c${i} ${i === first ? '==' : '!='} "w${word}"`).join(' && ');
        return forbids ? `forbid(principal, action, resource) when { ${said} };` : said;
      }),
    );
    const rows = Array.from({ length: count }, () => names.map(() => dice.below(size + 1)));
    const vectors = Object.fromEntries(names.map((name, i) => [name, new Words().vector(rows.map((row) => `w${row[i]}`))]));
    const matches = (row: readonly number[], { words, first }: (typeof rules)[number]): boolean =>
      words.every((word, i) => (row[i] === word) === (i === first));
    const expected = rows.map(
      (row) =>
        rules.some((rule) => !rule.forbids && matches(row, rule)) && !rules.some((rule) => rule.forbids && matches(row, rule)),
    );
    expect(expected.includes(true) && expected.includes(false)).toBe(true);
    expect(passing(condition, vectors, count)).toEqual(expected);
  });

  test('of one policy over more columns than one number names', () => {
    const names = Array.from({ length: 18 }, (_, i) => `c${i}`);
    const type = typeWith(Object.fromEntries(names.map((name) => [name, 'string'])));
    const condition = conditionOf(
      type,
      names.map((name) => `["a", "b"].contains(resource.${name})`).join(' && '),
      'resource.c0 == "z"',
    );
    const rows = Array.from({ length: 500 }, () => names.map(() => (dice.chance(0.97) ? dice.pick(['a', 'b']) : 'z')));
    const vectors = Object.fromEntries(names.map((name, i) => [name, heapOf(rows.map((row) => row[i]!))]));
    expect(passing(condition, vectors, 500)).toEqual(rows.map((row) => row[0] === 'z' || row.every((word) => word !== 'z')));
  });
});

describe('a condition', () => {
  test('errs where a sum leaves 64 bits, and tells it from one that only leaves the doubles', () => {
    const type = typeWith({ n: 'integer', m: 'integer' });
    const wide = (values: readonly bigint[]): Vector => ({ kind: 'i64', values: BigInt64Array.from(values), nulls: null });
    const big = 2n ** 62n;
    const vectors = { n: wide([big, big, 2n ** 53n, 1n]), m: wide([big, big - 1n, 1n, 1n]) };
    expect(passing(conditionOf(type, 'resource.n + resource.m > 0'), vectors, 4)).toEqual([false, true, true, true]);
    const forbid = 'forbid(principal, action, resource) when { resource.n + resource.m < 0 };';
    expect(passing(conditionOf(type, 'true', forbid), vectors, 4)).toEqual([false, true, true, true]);
    expect(passing(conditionOf(type, 'resource.n + resource.m == 9007199254740991 + 2'), vectors, 4)).toEqual([
      false,
      false,
      true,
      false,
    ]);
    // Cells that doubles hold, and sums that they don't.
    const near = { n: wide([2n ** 53n - 1n, 5n]), m: wide([2n, 1n]) };
    expect(passing(conditionOf(type, 'resource.n + resource.m > resource.n + 1'), near, 2)).toEqual([true, false]);
  });

  test('about one column with a dictionary goes by its codes, NULL and all', () => {
    const type = typeWith({ s: 'string' });
    const forbid = 'forbid(principal, action, resource) when { resource has s && resource.s == "b" };';
    const vector = { ...new Words().vector(['a', 'b', 'c', 'b']), nulls: Uint8Array.of(0, 0, 0, 1) } as Vector;
    expect(passing(conditionOf(type, 'true', forbid), { s: vector }, 4)).toEqual([true, false, true, true]);
    expect(passing(conditionOf(type, 'resource.s != "a"', forbid), { s: vector }, 4)).toEqual([false, false, true, false]);
    const out = new Uint8Array(2);
    conditionOf(type, 'resource.s == "c"').test([vector], Int32Array.of(2, 3), 0, 2, out);
    expect([...out]).toEqual([1, 0]);
  });

  test('rounds instants down to milliseconds, before 1970 as well', () => {
    const type = typeWith({ at: 'timestamp', until: 'timestamp' });
    const day = 86_400_000_000_000n;
    const at: Vector = { kind: 'i64', values: BigInt64Array.of(-day - 1n, -day, -1n, -day - 1n, 0n), nulls: null };
    const until: Vector = { kind: 'i64', values: BigInt64Array.of(-day, -day, 0n, -day - 2n, 999_999n), nulls: null };
    expect(passing(conditionOf(type, 'resource.at < datetime("1969-12-31")'), { at }, 5)).toEqual([
      true,
      false,
      false,
      true,
      false,
    ]);
    expect(passing(conditionOf(type, 'resource.at < resource.until'), { at, until }, 5)).toEqual([
      true,
      false,
      true,
      false,
      false,
    ]);
    expect(passing(conditionOf(type, 'resource.at.toDate() == datetime("1969-12-30")'), { at }, 5)).toEqual([
      true,
      false,
      false,
      true,
      false,
    ]);
  });

  test('denies by a forbid that errs on NULL, and ignores a permit that does', () => {
    const type = typeWith({ n: 'integer' });
    const vector: Vector = { kind: 'i32', values: Int32Array.of(1, 0, 3), nulls: Uint8Array.of(0, 1, 0) };
    const forbid = 'forbid(principal, action, resource) when { resource.n > 2 };';
    expect(passing(conditionOf(type, 'true', forbid), { n: vector }, 3)).toEqual([true, false, false]);
    expect(passing(conditionOf(type, 'resource.n > 0'), { n: vector }, 3)).toEqual([true, false, true]);
    expect(passing(conditionOf(type, 'resource.n > 0'), { n: { kind: 'null' } }, 3)).toEqual([false, false, false]);
    expect(passing(conditionOf(type, '!(resource has n) || resource.n > 2'), { n: vector }, 3)).toEqual([false, true, true]);
  });

  test('has one key for one predicate, and another for another', () => {
    const type = typeWith({ n: 'integer', s: 'string' });
    const key = (...rules: readonly string[]): string => conditionOf(type, ...rules).key;
    expect(key('resource.n > 1', 'resource.s == "a"')).toBe(key('resource.s == "a"', 'resource.n > 0 + 1', 'resource.n > 1'));
    const keys = [
      key('resource.n > 1'),
      key('resource.n > 2'),
      key('resource.n > 1', 'forbid(principal, action, resource) when { resource.s == "a" };'),
      key('resource.s like "*"'),
      key('resource.s like "\\*"'),
      key('resource.s like "\\0"'),
      key('resource.s == "*"'),
    ];
    expect(new Set(keys).size).toBe(keys.length);
    expect(conditionOf(type, 'resource.s == "a" && resource.n == 1').columns).toEqual(['n', 's']);
  });
});
