/**
 * `{{steps.0.rows.0.id}}`, `{{arguments.x}}`, `{{item}}` in the texts of a step stand for values: typed where they are the whole text. In SQL
 * they are parameters, so that no value is ever read as a statement.
 */
import { ServiceError } from '../../errors.ts';
import { exactJson } from '../shared/write-exact-json.ts';
import type { Json } from '../../log/values/canonical-json.ts';
import type { Literal } from '../../planner/syntax/statement.ts';

/** Answers the first names of a template: `steps` and `block` take the number of a step. */
export interface Scope {
  readonly value: (root: string, step: number | null) => Promise<unknown>;
}

const inText = /\{\{([^{}]*)\}\}/g;
const form = /^(?:(?:steps|block)\.\d{1,4}|arguments|item|index)(?:\.[^.\s]{1,128}){0,16}$/;

/** All templates of a value; each has the form of one. Throws REL_INVALID. */
export function templatesIn(value: unknown): readonly string[] {
  if (typeof value === 'string')
    return [...value.matchAll(inText)].map(([whole, inner]) => {
      const name = inner!.trim();
      if (!form.test(name))
        throw new ServiceError(
          'REL_INVALID',
          `${whole} is none of {{steps.N…}}, {{block.N…}}, {{arguments…}}, {{item…}} and {{index}}`,
        );
      return name;
    });
  if (Array.isArray(value)) return value.flatMap(templatesIn);
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(templatesIn) : [];
}

/** The value with its templates replaced. */
export async function fill(value: Json, scope: Scope): Promise<unknown> {
  if (typeof value === 'string') {
    const whole = /^\{\{([^{}]*)\}\}$/.exec(value);
    if (whole !== null) return valueOf(whole[1]!, scope);
    let text = '';
    let end = 0;
    for (const match of value.matchAll(inText)) {
      text += value.slice(end, match.index) + plainText(await valueOf(match[1]!, scope));
      end = match.index + match[0].length;
    }
    return text + value.slice(end);
  }
  if (Array.isArray(value)) return Promise.all(value.map((each: Json) => fill(each, scope)));
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).map(async ([name, each]) => [name, await fill(each as Json, scope)] as const);
  return Object.fromEntries(await Promise.all(members));
}

/** SQL with `$n` for its templates, behind the parameters that are given. A template in quotes is all of its text. */
export async function fillSql(
  sql: string,
  given: readonly Literal[],
  scope: Scope,
): Promise<{ readonly sql: string; readonly parameters: readonly Literal[] }> {
  const parameters = [...given];
  let text = '';
  let end = 0;
  for (const match of sql.matchAll(/'\{\{([^{}]*)\}\}'|\{\{([^{}]*)\}\}/g)) {
    const isText = match[1] !== undefined;
    const value = parameterOf(await valueOf((match[1] ?? match[2])!, scope));
    parameters.push(isText && value !== null ? String(value) : value);
    text += `${sql.slice(end, match.index)}$${parameters.length}`;
    end = match.index + match[0].length;
  }
  return { sql: text + sql.slice(end), parameters };
}

export function parameterOf(value: unknown): Literal {
  if (value === null || typeof value === 'string' || typeof value === 'boolean' || typeof value === 'bigint') return value;
  if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : value;
  return exactJson(value);
}

async function valueOf(name: string, scope: Scope): Promise<unknown> {
  const [root, ...members] = name.trim().split('.');
  const isNumbered = root === 'steps' || root === 'block';
  let value = await scope.value(root!, isNumbered ? Number(members.shift()) : null);
  for (const member of members) {
    const isThere = typeof value === 'object' && value !== null && Object.hasOwn(value, member);
    if (!isThere) throw new ServiceError('REL_UNPROCESSABLE', `{{${name.trim()}}}: there is no such value`);
    value = (value as Readonly<Record<string, unknown>>)[member];
  }
  return value;
}

const plainText = (value: unknown): string => (typeof value === 'string' ? value : exactJson(value));
