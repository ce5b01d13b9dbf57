/** What a policy text may say: read as Cedar, refused with its place where it can't be compiled exactly. */
import { describe, expect, test } from 'vitest';
import { instantOf, situationOf, type Question } from '../../../src/governance/authorization/cedar/entities.ts';
import { fold } from '../../../src/governance/authorization/cedar/fold.ts';
import { policyDigest, readPolicies } from '../../../src/governance/authorization/cedar/policies.ts';
import { textOf } from '../../../src/governance/authorization/cedar/syntax.ts';
import { ServiceError } from '../../../src/errors.ts';
import { sha256Hex } from '../../../src/log/bytes/sha256.ts';
import { typeOf } from './generator.ts';

const permit = (condition: string): string => `permit(principal, action, resource) when { ${condition} };`;

function refusal(text: string): { code: string; place: string; message: string } {
  try {
    readPolicies('p', text, (name) => (name === 'Person' ? [typeOf(name)] : []));
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return { code: error.code, place: `${error.facts.line}:${error.facts.column}`, message: error.message };
  }
  return { code: 'read', place: '', message: '' };
}

describe('a text is refused', () => {
  test.each<[string, string, string, RegExp]>([
    ['what is no Cedar', 'permit(principal, action, resource) when { foo };', '1:44', /invalid variable/],
    ['an open end', 'permit(principal, action, resource)', '1:36', /./],
    ['a template', 'permit(principal == ?principal, action, resource);', '1:21', /template/],
    ['a literal that loses digits', permit('resource.n == 9007199254740993'), '1:58', /2\^53/],
    ['@budget', '// by hand\n@budget("rows=1") permit(principal, action, resource);', '2:2', /@budget/],
    ['@valid', '@valid("a/b") permit(principal, action, resource);', '1:2', /@valid/],
    ['any other annotation', '@masc("null") permit(principal, action, resource);', '1:2', /@masc/],
    ['@mask on a permit', '@mask("null") permit(principal, action == Action::"read", resource);', '1:2', /@mask/],
    ['@mask on rows', '@mask("null") forbid(principal, action == Action::"read", resource);', '1:2', /@mask/],
    ['@mask on every action', '@mask("null") forbid(principal, action, resource);', '1:2', /@mask/],
    ['a mask of no kind', '@mask("blur") forbid(principal, action == Action::"readCell", resource);', '1:2', /blur/],
    ['a bucket of nothing', '@mask("bucket:0") forbid(principal, action == Action::"readCell", resource);', '1:2', /bucket/],
    ['an action that is none', 'permit(principal, action == Action::"reed", resource);', '1:37', /no action/],
    ['a permit of cells', 'permit(principal, action == Action::"readCell", resource);', '1:37', /only a forbid/],
    ['a cell that is a row', 'forbid(principal, action == Action::"readCell", resource is Person);', '1:61', /no Person/],
    ['a principal that none is', 'permit(principal is Person, action, resource);', '1:21', /no principal/],
    ['a principal in what holds none', 'permit(principal in Purpose::"x", action, resource);', '1:21', /no principal/],
    ['a row without its type', permit('resource == Row::"1"'), '1:56', /by their type/],
    ['tags', permit('principal.hasTag("a")'), '1:54', /tags/],
    ['addresses', permit('ip("1.2.3.4").isLoopback()'), '1:58', /isLoopback/],
    ['decimals', permit('decimal("1.0").lessThan(decimal("2.0"))'), '1:59', /lessThan/],
    ['a date that is none', permit('resource.at < datetime("2024-13-01")'), '1:67', /none/],
    ['a duration that is none', permit('resource.at.toTime() < duration("1h1d")'), '1:76', /none/],
    ['a row as a value', permit('[resource].contains(principal)'), '1:45', /no other value/],
    ['context as a value', permit('context == {}'), '1:44', /attributes/],
    ['what context has not', permit('context.purposes == 1'), '1:52', /holds no purposes/],
    ['a purpose as a text', permit('context.purpose == "fraud"'), '1:60', /never equals/],
    ['a cell as an entity', permit('resource.region == User::"ann"'), '1:60', /no column holds/],
    ['a cell with attributes', permit('resource.region.code == 1'), '1:60', /no column holds/],
    ['a cell that has attributes', permit('resource has region.code'), '1:64', /no column holds/],
    ['in what a row says', permit('principal in [resource.n]'), '1:54', /right of/],
    ['an end that moves', permit('resource.system_to > context.now'), '1:53', /system_to/],
    ['a fraction', 'permit(principal, action, resource is Person) when { resource.score > 1 };', '1:63', /Cedar has no type/],
    ['nothing', '// nothing', 'undefined:undefined', /no policy/],
    [
      'one id twice',
      '@id("a") permit(principal, action, resource);\n@id("a") permit(principal, action, resource);',
      'undefined:undefined',
      /twice/,
    ],
  ])('%s', (_, text, place, why) => {
    const refused = refusal(text);
    expect(refused.code).toBe(/@(budget|valid)/.test(text) ? 'REL_NOT_IMPLEMENTED' : 'REL_INVALID');
    expect(refused.place).toBe(place);
    expect(refused.message).toMatch(why);
  });

  test('with the place in the text, whatever stands before it', () => {
    const text = `${permit('resource.region == "über; // \u{1F600}"')}\n\n  ${permit('foo')}`;
    expect(refusal(text)).toMatchObject({ code: 'REL_INVALID', place: '3:46' });
  });

  test('but what could be meant is read', () => {
    for (const text of [
      permit('resource.n == 9007199254740991'),
      permit('resource.score > 1'),
      permit('resource has score'),
      'permit(principal, action, resource is Person) when { resource has score };',
      '@mask("bucket:100") forbid(principal, action == Action::"readCell", resource in Type::"Person");',
      '@id("a b") forbid(principal, action in [Action::"readCell"], resource == Column::"Person.n") unless { principal has x };',
      `permit(principal, action, resource) when { resource.region == "9007199254740993; @budget" };`,
    ]) {
      expect(refusal(text)).toEqual({ code: 'read', place: '', message: '' });
    }
  });
});

describe('a text that is read', () => {
  test('gives its policies ids: its own, a number, or the @id', () => {
    const ids = (text: string): readonly string[] => readPolicies('t', text).map(({ id }) => id);
    const one = 'permit(principal, action, resource);';
    expect(ids(one)).toEqual(['t']);
    expect(ids(`@id("x") ${one}`)).toEqual(['t/x']);
    expect(ids(`${one} @id("x") ${one} // ;\n${one}`)).toEqual(['t/1', 't/x', 't/3']);
    expect(ids(Array.from({ length: 12 }, () => one).join(''))).toEqual(Array.from({ length: 12 }, (_, i) => `t/${i + 1}`));
  });

  test('has a digest with its id: of RFC 8785 JSON, empty for no texts', () => {
    expect(policyDigest(new Map())).toBe('');
    expect(
      policyDigest(
        new Map([
          ['b', 'y'],
          ['a', 'x'],
        ]),
      ),
    ).toBe(sha256Hex('{"a":"x","b":"y"}'));
  });

  test('masks by its annotation, and hides whole where it has none', () => {
    const masked = (annotation: string): unknown =>
      readPolicies('t', `${annotation} forbid(principal, action == Action::"readCell", resource);`)[0]!.mask;
    expect(masked('@mask("last4")')).toEqual({ kind: 'last4' });
    expect(masked('@mask("bucket:50")')).toEqual({ kind: 'bucket', size: 50 });
    expect(masked('')).toEqual({ kind: 'redact' });
    expect(readPolicies('t', 'forbid(principal, action, resource);')[0]!.mask).toBe(null);
  });
});

describe('an operator', () => {
  const question: Question = {
    situation: situationOf({
      principal: 'ann',
      roles: ['analyst'],
      path: 'acme/eu',
      attributes: { level: 3, ratio: 0.5, region: 'EU' },
      purpose: 'fraud:aml',
      door: 'http',
      branch: 'main',
      breakGlass: null,
      accessScopeRef: null,
      clientIp: null,
    }),
    action: 'read',
    resource: { kind: 'row', type: typeOf('Person') },
    now: instantOf(1_704_067_200_000_999_999n),
  };

  // Outcomes as the engine gave them.
  test.each<[string, 'true' | 'false' | 'error']>([
    ['true && principal.level', 'error'],
    ['false && principal.level == 1', 'false'],
    ['true || principal.level', 'true'],
    ['false || principal.level', 'error'],
    ['principal.level && true', 'error'],
    ['!principal.level', 'error'],
    ['[1, "a"].contains("a")', 'true'],
    ['principal.level.contains(1)', 'error'],
    ['[1].containsAll([])', 'true'],
    ['[1].containsAny([])', 'false'],
    ['[1, 2, 2] == [2, 1]', 'true'],
    ['if principal.level then true else false', 'error'],
    ['(if true then 1 else 2) == 1', 'true'],
    ['"ab" like "*"', 'true'],
    ['"abab" like "ab*ab"', 'true'],
    ['"aba" like "ab*ba"', 'false'],
    ['"abb" like "a*b*bb"', 'false'],
    ['"abbb" like "a*b*bb"', 'true'],
    ['"a*b" like "a\\*b"', 'true'],
    ['"axb" like "a\\*b"', 'false'],
    ['principal.level like "3"', 'error'],
    ['principal.level < "a"', 'error'],
    ['principal.region < "b"', 'error'],
    ['datetime("2024-01-01") < datetime("2024-01-02")', 'true'],
    ['datetime("2024-01-01T00:00:00.123+0130") == datetime("2023-12-31T22:30:00.123Z")', 'true'],
    ['duration("1d2h3m4s5ms").toMilliseconds() == 93784005', 'true'],
    ['duration("-1500ms").toSeconds() == -1', 'true'],
    ['duration("9223372036854775807ms").toDays() == 106751991167', 'true'],
    ['datetime("1969-12-31T23:00:00Z").toDate() == datetime("1969-12-31")', 'true'],
    ['datetime("1969-12-31T23:00:00Z").toTime() == duration("23h")', 'true'],
    ['datetime("1970-01-01").offset(duration("-9223372036854775808ms")).toDate() == datetime("1969-12-31")', 'error'],
    ['datetime(principal.region) == context.now', 'error'],
    ['principal.nosuch == 1', 'error'],
    ['principal.ratio == 1', 'error'],
    ['principal has ratio', 'false'],
    ['Org::"acme" has name', 'false'],
    ['{"a": 1}.b == 1', 'error'],
    ['-(-9007199254740991 * 1024 - 1024) == 1', 'error'],
    ['9007199254740991 * 1024 + 1023 == 9007199254740991 * 1024 + 1023', 'true'],
    ['9007199254740991 * 1024 + 1024 == 1', 'error'],
    ['principal in [Role::"analyst", Role::"x"]', 'true'],
    ['principal in Org::"acme"', 'true'],
    ['principal in Org::"ac"', 'false'],
    ['context.purpose in Purpose::"fraud"', 'true'],
    ['context.purpose in Purpose::"fr"', 'false'],
    ['context.org in Org::"acme"', 'true'],
    ['context has break_glass', 'false'],
    ['context.break_glass == "x"', 'error'],
    ['context.now == datetime("2024-01-01T00:00:00Z")', 'true'],
    ['resource is Person && resource is Row', 'true'],
    ['resource is Payment', 'false'],
    ['resource in Type::"Person"', 'true'],
    ['resource in [Type::"Payment", Type::"Other"]', 'false'],
    ['resource.type == "Person"', 'true'],
    ['resource.score == 1', 'error'],
    ['resource.nosuch == 1', 'error'],
    ['resource has nosuch', 'false'],
    ['resource == principal', 'false'],
    ['action == Action::"read"', 'true'],
  ])('%s is %s', (condition, expected) => {
    const [policy] = readPolicies('p', permit(condition));
    expect(textOf(fold(policy!.condition, question))).toBe(expected);
  });

  test.each<[string, string]>([
    ['principal.level > 2 && resource.n < principal.level + 1', 'resource.n < 4'],
    ['resource.flag && false', 'resource.flag && false'],
    ['resource.flag && true', 'resource.flag'],
    ['resource.flag || false', 'resource.flag'],
    ['resource == Person::"7"', 'resource._pk == "7"'],
    ['resource in Org::"acme"', 'resource in Org::"acme"'],
    ['resource has n', 'resource has n'],
    ['resource.region like "a*\\*"', 'resource.region like "a*\\*"'],
  ])('%s leaves %s', (condition, left) => {
    const [policy] = readPolicies('p', permit(condition));
    expect(textOf(fold(policy!.condition, question))).toBe(left);
  });
});
