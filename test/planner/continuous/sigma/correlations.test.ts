/** Correlations over matches that come in any order, beside a count over all windows. */
import { describe, expect, test } from 'vitest';
import { Correlator, linkCorrelations } from '../../../../src/planner/continuous/sigma/correlations.ts';
import type { SigmaDocument } from '../../../../src/planner/continuous/sigma/sigma-rule.ts';
import { readDocument, refusal } from './worlds.ts';

const rule = (name: string): SigmaDocument =>
  readDocument(`title: ${name}\nname: ${name}\nlogsource: {}\ndetection: {s: {f: x}, condition: s}`);
const correlation = (rest: string, name = 'c'): string => `title: ${name}\nname: ${name}\ncorrelation: {${rest}}`;

type Given = readonly [document: number, second: number, fields?: Readonly<Record<string, string>>];

/** Seconds at which each correlation is raised: `document@second`. */
function raised(documents: readonly SigmaDocument[], events: readonly Given[]): readonly string[] {
  const correlator = new Correlator(documents, linkCorrelations(documents));
  return events.flatMap(([document, second, fields = {}]) =>
    correlator
      .observe({ document, instant: BigInt(second) * 1_000_000_000n, row: 0, valueOf: (field) => fields[field] ?? null })
      .map((made) => `${made.document}@${second}`),
  );
}

const [a, b] = [rule('a'), rule('b')];
const two = (rest: string): readonly SigmaDocument[] => [a!, b!, readDocument(correlation(rest))];
const user = (u: string): Readonly<Record<string, string>> => ({ u });

describe('a correlation', () => {
  test('event_count: windows slide, groups are apart, an episode is raised once', () => {
    const documents = two('type: event_count, rules: [a], group-by: [u], timespan: 10s, condition: {gte: 3}');
    const events: Given[] = [
      [0, 0, user('x')],
      [0, 9, user('x')],
      [0, 10, user('x')],
      [0, 11, user('y')],
      [0, 12],
      [1, 12, user('x')],
      [0, 18, user('x')],
      [0, 19, user('x')],
      [0, 40, user('x')],
      [0, 41, user('x')],
      [0, 42, user('x')],
    ];
    expect(raised(documents, events)).toEqual(['2@18', '2@42']);
  });

  test('event_count: late events complete windows that end at later ones', () => {
    const documents = two('type: event_count, rules: [a, b], group-by: [], timespan: 10s, condition: {gt: 2}');
    const events: Given[] = [
      [0, 5],
      [1, 8],
      [0, 6],
      [1, 7],
    ];
    expect(raised(documents, events)).toEqual(['2@6']);
  });

  test('value_count: different values, and rows without the field are none', () => {
    const documents = two('type: value_count, rules: [a], group-by: [u], timespan: 1m, condition: {field: host, gte: 2}');
    const events: Given[] = [
      [0, 0, { u: 'x', host: 'h1' }],
      [0, 1, { u: 'x', host: 'h1' }],
      [0, 2, { u: 'x' }],
      [0, 3, { u: 'x', host: 'h2' }],
    ];
    expect(raised(documents, events)).toEqual(['2@3']);
  });

  test('temporal: all rules in any order, by aliases; temporal_ordered: in theirs', () => {
    const rest = 'rules: [a, b], group-by: [who], timespan: 1m, aliases: {who: {a: from, b: to}}';
    const events: Given[] = [
      [1, 0, { to: 'x' }],
      [0, 1, { from: 'y' }],
      [0, 2, { from: 'x' }],
      [1, 3, { to: 'x' }],
    ];
    expect(raised(two(`type: temporal, ${rest}`), events)).toEqual(['2@2']);
    expect(raised(two(`type: temporal_ordered, ${rest}`), events)).toEqual(['2@3']);
  });

  test('refers to others, whatever their order; rules that only serve one raise nothing by themselves', () => {
    const outer = readDocument(correlation('type: temporal, rules: [c, b], group-by: [u], timespan: 1m', 'outer'));
    const inner = readDocument(correlation('type: event_count, rules: [a], group-by: [u], timespan: 1m, condition: {gte: 2}'));
    const documents = [outer, a!, b!, inner];
    expect([...linkCorrelations(documents).silent].sort((x, y) => x - y)).toEqual([1, 2, 3]);
    const events: Given[] = [
      [1, 0, user('x')],
      [1, 1, user('x')],
      [2, 2, user('x')],
    ];
    expect(raised(documents, events)).toEqual(['3@1', '0@2']);
    const loop = ['p', 'q'].map((name, i) =>
      readDocument(correlation(`type: temporal, rules: [${['q', 'p'][i]}], group-by: [u], timespan: 1m`, name)),
    );
    expect(linkCorrelations(loop).refused.size).toBe(2);
  });

  test.each([
    ['type: event_count, rules: [a], timespan: 1m, condition: {}', 'correlation.condition: a condition has one of'],
    ['type: event_count, rules: [a], timespan: 1x, condition: {gte: 1}', 'correlation.timespan: timespan is a number and'],
    ['type: event_count, rules: [a], timespan: 1m, condition: {gte: 9999}', 'correlation.condition.gte: a count is an integer'],
    ['type: value_count, rules: [a], timespan: 1m, condition: {gte: 1}', 'correlation.condition.field: value_count names'],
    ['type: temporal, rules: [], timespan: 1m', 'correlation.rules: a correlation refers to 1 to 100 rules'],
  ])('is refused: %s', (rest, expected) => {
    expect(refusal(correlation(rest))).toContain(expected);
  });
});
