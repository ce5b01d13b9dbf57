/** Events as objects for tests of Sigma rules, and a naive reading of rules over them, one rule and one event at a time. */
import type { NamedColumn } from '../../../../src/log/values/columns.ts';
import type { ColumnType } from '../../../../src/log/values/value.ts';
import { VectorBuilder } from '../../../../src/log/values/vector-builder.ts';
import type { Condition } from '../../../../src/planner/continuous/sigma/sigma-condition.ts';
import type { FieldTest } from '../../../../src/planner/continuous/sigma/field-test.ts';
import { type JudgedRows, SigmaMatcher } from '../../../../src/planner/continuous/sigma/sigma-matcher.ts';
import { parseSigma, splitDocuments } from '../../../../src/planner/continuous/sigma/parse-rules.ts';
import { foldCase } from '../../../../src/planner/continuous/sigma/wildcard-pattern.ts';
import type { SigmaDocument, SigmaRule } from '../../../../src/planner/continuous/sigma/sigma-rule.ts';
import { finishSteps } from '../../../finish-steps.ts';

export type Event = Readonly<Record<string, unknown>>;

const tables: Readonly<Record<string, readonly string[]>> = { admins: ['root', 'adm*'], servers: ['srv1', 'srv2'] };

/** What `%name%` stands for. */
export const placeholders = (name: string): readonly string[] | null => tables[name] ?? null;

export const readDocument = (text: string): SigmaDocument => {
  const { document, error } = parseSigma(text, placeholders);
  if (document === null) throw new Error(`${error.code} ${error.path}: ${error.detail}`);
  return document;
};

/** How a rule is refused: `code path: detail`. */
export const refusal = (text: string): string => {
  const { error } = parseSigma(text, placeholders);
  return error === null ? 'accepted' : `${error.code} ${error.path}: ${error.detail}`;
};

export const readRules = (text: string): readonly SigmaRule[] =>
  [...splitDocuments(text)].map(readDocument).filter((document): document is SigmaRule => document.kind === 'rule');

/** A column a field; a field of numbers, booleans or objects gets a column of that type. */
export function columnsOf(events: readonly Event[]): JudgedRows {
  const names = [...new Set(events.flatMap((event) => Object.keys(event)))];
  const columns = names.map((name): NamedColumn => {
    const values = events.map((event) => event[name] ?? null);
    const type = typeOf(values.filter((value) => value !== null));
    const builder = new VectorBuilder(type);
    for (const value of values) {
      if (value === null) builder.appendNull();
      else if (type === 'json') builder.append(JSON.stringify(value));
      else if (type === 'integer') builder.append(BigInt(value as number));
      else if (type === 'string') builder.append(String(value as string));
      else builder.append(value as number | boolean);
    }
    return { name, type, vector: builder.build() };
  });
  return { columns, selection: null, first: 0, count: events.length };
}

function typeOf(values: readonly unknown[]): ColumnType {
  if (values.some((value) => typeof value === 'object')) return 'json';
  if (values.every((value) => Number.isInteger(value))) return 'integer';
  if (values.every((value) => typeof value === 'number')) return 'number';
  return values.every((value) => typeof value === 'boolean') ? 'boolean' : 'string';
}

/** Pairs of rule and event by the matcher. */
export function judge(rules: readonly SigmaRule[], rows: JudgedRows): readonly string[] {
  const matches = finishSteps(finishSteps(SigmaMatcher.compile(rules)).judge(rows));
  return [...matches].flatMap(([rule, events]) => events.map((event) => `${rule}:${event}`)).sort();
}

export function naivePairs(rules: readonly SigmaRule[], events: readonly Event[]): readonly string[] {
  return rules.flatMap((rule, r) => events.flatMap((event, e) => (naiveMatch(rule, event) ? [`${r}:${e}`] : []))).sort();
}

function naiveMatch({ condition, logSource }: SigmaRule, event: Event): boolean {
  for (const key of ['product', 'category', 'service'] as const) {
    const value = event[key] ?? null;
    if (logSource[key] !== null && value !== null && value !== '' && String(value as string).toLowerCase() !== logSource[key]) {
      return false;
    }
  }
  return holds(condition, event);
}

function holds(condition: Condition, event: Event): boolean {
  switch (condition.kind) {
    case 'and':
      return condition.of.every((each) => holds(each, event));
    case 'or':
      return condition.of.some((each) => holds(each, event));
    case 'not':
      return !holds(condition.of, event);
    case 'some':
      return condition.of.filter((each) => holds(each, event)).length >= condition.count;
    case 'test':
      return passes(condition.test, condition.field === null ? leavesOf(event) : textsAt(event, condition.field), event);
  }
}

const leavesOf = (value: unknown): readonly string[] =>
  value === null || value === undefined
    ? []
    : typeof value === 'object'
      ? Object.values(value).flatMap(leavesOf)
      : [String(value as string)];

function textsAt(event: Event, field: string): readonly string[] {
  let value: unknown = event[field];
  if (value === undefined) {
    value = field.split('.').reduce<unknown>((at, key) => (at as Record<string, unknown> | undefined)?.[key], event);
  }
  if (value === null || value === undefined) return [];
  return Array.isArray(value)
    ? value.map(String)
    : typeof value === 'object'
      ? [JSON.stringify(value)]
      : [String(value as string)];
}

function passes(test: FieldTest, texts: readonly string[], event: Event): boolean {
  switch (test.kind) {
    case 'null':
      return texts.length === 0;
    case 'exists':
      return texts.length > 0;
    case 'pattern': {
      const source = test.pieces.map((piece) =>
        piece.kind === 'text'
          ? piece.text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
          : { any: '[\\s\\S]*', one: '[\\s\\S]', dash: '[-/\u2013\u2014\u2015]' }[piece.kind],
      );
      const regex = new RegExp(`^${source.join('')}$`, 'u');
      return texts.some((text) => regex.test(test.cased ? text : foldCase(text)));
    }
    case 'regex': {
      // Flags at the beginning are RE2's way to write what the modifiers say, too.
      const inline = /^\(\?([ims]+)\)/.exec(test.source);
      const regex = new RegExp(
        test.source.slice(inline?.[0].length ?? 0),
        [...new Set(`${test.flags}${inline?.[1] ?? ''}u`)].join(''),
      );
      return texts.some((text) => regex.test(text));
    }
    case 'network':
      return texts.some((text) => test.network.contains(text));
    case 'compare':
      return texts.some((text) => {
        const [left, right] = [Number(text), test.value];
        return { lt: left < right, lte: left <= right, gt: left > right, gte: left >= right }[test.comparison];
      });
    case 'reference':
      return texts.some((text) =>
        textsAt(event, test.field).some((against) => {
          const [left, right] = test.cased ? [text, against] : [foldCase(text), foldCase(against)];
          return {
            equals: left === right,
            startswith: left.startsWith(right),
            endswith: left.endsWith(right),
            contains: left.includes(right),
          }[test.reference];
        }),
      );
    case 'time':
      throw new Error('parts of times are tested by examples');
  }
}
