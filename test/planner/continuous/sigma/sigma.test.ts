/** Sigma rules: every modifier and form of a condition by examples, and all rules at once beside a naive reading. */
import { describe, expect, test } from 'vitest';
import { type Event, columnsOf, judge, naivePairs, readRules, refusal } from './worlds.ts';
import { labelledEvents, ruleTexts, sigmaFigures } from '../../../quality/sigma.ts';
import { examples } from './examples.ts';

const rule = (detection: string, head = 'logsource: {product: windows}'): string =>
  `title: t\n${head}\ndetection:\n${detection.replaceAll(/^/gm, '  ')}\n`;

const item = (line: string): string => rule(`s:\n  ${line}\ncondition: s`);

describe('values and modifiers', () => {
  test.each(examples)('$item', ({ item: line, fits, others }) => {
    const [compiled] = readRules(item(line));
    const events = [...fits, ...others].map((f): Event => ({ f, g: 'same' }));
    // One event a block, so that each value keeps its own type.
    const found = events.map((event) => judge([compiled!], columnsOf([event])).length);
    expect(found).toEqual([...fits.map(() => 1), ...others.map(() => 0)]);
  });

  test('dotted names reach into json, lists stand for their elements, keywords for every text', () => {
    const event = { d: { a: { b: 'x', n: [1, 'Two'] }, 'k.l': 'y' }, plain: 'C:\\Temp', n: 77 };
    const rules = ['s: {d.a.b: X}', 's: {d.a.n: two}', 's: {d.a.n: 1}', 's: {d.k.l: y}', 's: [temp]', 's: [tw?]', 's: [77]'];
    const others = ['s: {d.a: x}', 's: {d.b: x}', 's: {d.a.b.c: x}', 's: [nothing]', 's: {e: x}'];
    const read = [...rules, ...others].flatMap((each) => readRules(rule(`${each}\ncondition: s`)));
    expect(judge(read, columnsOf([event]))).toEqual(rules.map((_, i) => `${i}:0`).sort());
  });

  test('logsource narrows only rows that have its fields', () => {
    const read = readRules(rule('s: {f: a}\ncondition: s', 'logsource: {product: windows, category: process_creation}'));
    const rows = [{ f: 'a' }, { product: 'Windows' }, { product: 'linux' }, { category: 'dns' }, { service: 'x' }];
    const events = rows.map((row): Event => ({ f: 'a', product: null, category: null, service: null, ...row }));
    expect(judge(read, columnsOf(events))).toEqual(['0:0', '0:1', '0:4']);
  });
});

describe('conditions', () => {
  const detection = (condition: string): string =>
    rule(
      `a1: {f: 'a'}\na2: {g: 'b'}\nb: [{f: 'a', g: 'b'}, {h|exists: true}]\nk:\n  '|all': ['one', 'two']\n_x: {f: 'z'}\ncondition: ${condition}`,
    );
  const both = { f: 'a', g: 'b' };
  test.each([
    ['a1', [{ f: 'a' }], [{ g: 'b' }]],
    ['a1 and a2', [both], [{ f: 'a' }]],
    ['a1 AND NOT a2', [{ f: 'a' }], [both]],
    ['not a1 and a2', [{ g: 'b' }], [both]],
    ['not (a1 and a2)', [{ g: 'b' }], [both]],
    ['a1 or a2 and _x', [{ f: 'a' }], [{ g: 'b' }]],
    ['(a1 or a2) and not b', [{ f: 'a' }], [both]],
    ['1 of a*', [{ g: 'b' }], [{ f: 'b' }]],
    ['any of a*', [{ g: 'b' }], [{ f: 'b' }]],
    ['all of a*', [both], [{ g: 'b' }]],
    ['2 of them', [both, { f: 'a', h: 'x' }], [{ f: 'a' }, { f: 'z', g: 'b' }]],
    ['1 of them', [{ h: 'x' }], [{ f: 'z' }]],
    ['all of _*', [{ f: 'z' }], [{ f: 'a' }]],
    ['1 of a1 and not 1 of *2', [{ f: 'a' }], [both]],
    ['k', [{ f: 'one two' }, { f: 'two', g: 'ONE' }], [{ f: 'one' }]],
    ['not not a1', [{ f: 'a' }], [{ f: 'b' }]],
    ['[a1, a2]', [{ f: 'a' }, { g: 'b' }], [{ f: 'c' }]],
  ] as const)('%s', (condition, fits, others) => {
    const [read] = readRules(detection(condition));
    const events: readonly Event[] = [...fits, ...others];
    expect(judge([read!], columnsOf(events))).toEqual(fits.map((_, i) => `0:${i}`));
    expect(naivePairs([read!], events)).toEqual(fits.map((_, i) => `0:${i}`));
  });
});

test('what cannot be judged is refused by its name and place', () => {
  const cases: readonly (readonly [string, string])[] = [
    ['a: [', 'REL_PARSE : YAML, line 1, column 5'],
    ['a: 1\na: 2', 'REL_PARSE : YAML, line 2, column 1: the key "a" stands twice'],
    ['- a', 'REL_INVALID : a rule is a map'],
    ['logsource: {}', 'REL_INVALID title: a rule has a title'],
    ['title: t\ndetection: {}', 'REL_INVALID logsource: a rule has a logsource'],
    ['title: t\nlogsource: {}', 'REL_INVALID detection: a rule has a detection or a correlation'],
    ['title: t\nlevel: huge', 'REL_INVALID level: level is one of'],
    [rule('s: {f: a}'), 'REL_INVALID detection.condition: a condition is a text'],
    [rule('s: {}\ncondition: s'), 'REL_INVALID detection.s: a search identifier is empty'],
    [rule('s: {f: {a: 1}}\ncondition: s'), 'REL_INVALID detection.s.f: the value of a field is'],
    [rule('s: {f: a}\ncondition: s | count() by f > 3'), 'REL_INVALID detection.condition: aggregations behind a pipe'],
    [rule('s: {f: a}\ncondition: s or t'), 'REL_INVALID detection.condition: the detection has no search identifier "t"'],
    [rule('s: {f: a}\ncondition: (s'), 'REL_INVALID detection.condition: the parenthesis at offset 0 is not closed'],
    [rule('s: {f: a}\ncondition: s s'), 'REL_INVALID detection.condition: "s" at offset 2 where and, or, or the end'],
    [rule('s: {f: a}\ncondition: 1 of t*'), 'REL_INVALID detection.condition: no search identifier fits t*'],
    [rule(`s: {f: a}\ncondition: ${'('.repeat(99)}s`), 'REL_TOO_LARGE detection.condition: a condition nests at most'],
    [item('f|containz: a'), 'REL_INVALID detection.s.f|containz: there is no modifier "containz"'],
    [item("f|re: '(?=a)b'"), 'REL_INVALID detection.s.f|re: a regular expression uses look-ahead'],
    [item("f|re: '(?<!a)b'"), 'REL_INVALID detection.s.f|re: a regular expression uses negative look-behind'],
    [item("f|re: '(a)\\1'"), 'REL_INVALID detection.s.f|re: a regular expression uses a back reference'],
    [item("f|re: 'a++'"), 'REL_INVALID detection.s.f|re: a regular expression uses a possessive quantifier'],
    [item("f|re: 'a('"), 'REL_INVALID detection.s.f|re: a regular expression is malformed'],
    [item("f|re: '(((a{99}){99}){99}){99}'"), 'REL_INVALID detection.s.f|re: a regular expression is malformed or too large'],
    [
      item(`f|re: ['${'a'.repeat(2_500)}', '${'b'.repeat(2_500)}']`),
      'REL_TOO_LARGE detection.s.f|re: regular expressions of a rule',
    ],
    [item('f|cidr: 10.0.0/8'), 'REL_INVALID detection.s.f|cidr: "10.0.0/8" is no range of addresses'],
    [item("f|expand: '%nobody%'"), 'REL_INVALID detection.s.f|expand: there is no lookup table "nobody"'],
    [item('f|lt: x'), 'REL_INVALID detection.s.f|lt: lt compares with a number'],
    [item("f|base64: 'a*'"), 'REL_INVALID detection.s.f|base64: base64 has no form for wildcards'],
    [rule('s: [null]\ncondition: s'), 'REL_INVALID detection.s: null is the value of a field'],
    [`${rule('s: {f: a}\ncondition: s')}x: ${'['.repeat(99)}`, 'REL_TOO_LARGE : YAML nests at most 64 times'],
    [item(`f: [${'a,'.repeat(20_001)}]`), 'REL_TOO_LARGE : a rule has at most 20000 lexemes of YAML'],
    [
      item(`f${'|base64offset'.repeat(19)}: a`),
      `REL_TOO_LARGE detection.s.f${'|base64offset'.repeat(19)}: a rule has at most 20000 values`,
    ],
    [
      item(`f${'|base64'.repeat(39)}: 'http://'`),
      `REL_TOO_LARGE detection.s.f${'|base64'.repeat(39)}: at most 2097152 characters`,
    ],
    [`title: ${'x'.repeat(300_000)}`, 'REL_TOO_LARGE : a rule has at most 262144 bytes'],
    ['a: &a [x]\nb: &b [*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c,*c]', 'REL_PARSE : YAML: Excessive alias'],
    ['title: t\nfilter: {}\nlogsource: {}', 'REL_INVALID filter: filters of Sigma 2.1'],
    ['title: t\ncorrelation: {type: sum}', 'REL_INVALID correlation.type: type is one of'],
  ];
  for (const [text, expected] of cases) expect(refusal(text).slice(0, expected.length), text.slice(0, 200)).toBe(expected);
});

test('150 rules over 300 events: fire where they must, and as a naive reading of one rule after another does', () => {
  expect(sigmaFigures()).toMatchObject({
    accepted: 150,
    refused: [],
    fired: 150,
    mustFire: 150,
    falseFires: 0,
    mustNotFire: 150,
  });
  const rules = readRules(ruleTexts().join('---\n'));
  const events = labelledEvents().map(({ event }) => event);
  // JSON columns make one text of what another event has as text there, so that events are judged one by one, too.
  const pairs = naivePairs(rules, events);
  expect(judge(rules, columnsOf(events))).toEqual(pairs);
  expect(pairs.length).toBeGreaterThan(200);
});
