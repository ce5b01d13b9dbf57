/** Steps of workflows as callers write them: an object with one member each, whose name is its kind. */
import { z } from 'zod';
import { ServiceError } from '../../errors.ts';
import type { Json } from '../../log/values/canonical-json.ts';
import { severities } from '../../projections/rules/rule.ts';
import { check } from '../schemas/schema-check.ts';
import { templatesIn } from './templates.ts';

const scalar = z.union([z.string(), z.number(), z.boolean(), z.null()]);
const json = z.json();
const block = z.array(z.unknown()).min(1);
const seconds = z.int().min(1).max(31_536_000);

const kinds = {
  query: z.strictObject({ sql: z.string(), parameters: z.array(scalar).max(1_000).default([]) }),
  function: z.strictObject({ name: z.string(), arguments: z.array(scalar).max(64).default([]) }),
  tool: z.strictObject({ name: z.string(), arguments: z.record(z.string(), json).default({}) }),
  insert: z
    .strictObject({ type: z.string(), row: json.optional(), rows: json.optional() })
    .refine(({ row, rows }) => (row === undefined) !== (rows === undefined), 'one of row and rows is expected'),
  alert: z.strictObject({
    title: z.string(),
    severity: z.enum(severities).default('medium'),
    matched_type: z.string().nullable().default(null),
    matched_pk: json.default(null),
  }),
  // oxlint-disable-next-line unicorn/no-thenable -- a list of steps, as the language of workflows calls it
  if: z.strictObject({ condition: z.string(), then: block, else: block.optional() }),
  for_each: z.strictObject({ items: json, steps: block }),
  wait: z
    .strictObject({
      seconds: seconds.optional(),
      sql: z.string().optional(),
      every_secs: seconds.default(60),
      timeout_secs: seconds.default(86_400),
    })
    .refine(({ seconds: given, sql }) => (given === undefined) !== (sql === undefined), 'one of seconds and sql is expected'),
  approve: z.strictObject({ principal: z.string().min(1), timeout_secs: seconds.optional() }),
};

type Kinds = { readonly [K in keyof typeof kinds]: z.output<(typeof kinds)[K]> };
export type StepKind = keyof Kinds;

/** A step by its kind, with the members that it was given and the steps inside of it. */
export type Step = {
  [K in StepKind]: { readonly kind: K; readonly given: Kinds[K]; readonly inner: readonly (readonly Step[])[] };
}[StepKind];

const stepsMax = 200;
const depthMax = 8;
/** Most items of a `for_each`. */
export const itemsMax = 10_000;

/** Throws REL_INVALID with the place of the step. */
export function readSteps(given: unknown): readonly Step[] {
  const count = { steps: 0 };
  const steps = readBlock(given, { location: 'steps', root: 'steps', depth: 0 }, count);
  if (count.steps > stepsMax) throw new ServiceError('REL_INVALID', `a workflow has at most ${stepsMax} steps`);
  return steps;
}

/** `root`: the name by which steps of the block name each other; null: they don't. */
interface StepLocation {
  readonly location: string;
  readonly root: 'steps' | 'block' | null;
  readonly depth: number;
}

function readBlock(given: unknown, { location: place, root, depth }: StepLocation, count: { steps: number }): readonly Step[] {
  if (depth > depthMax) throw new ServiceError('REL_INVALID', `${place}: steps are nested ${depthMax} deep at most`);
  if (!Array.isArray(given) || given.length === 0) throw new ServiceError('REL_INVALID', `${place}: a list of steps is expected`);
  count.steps += given.length;
  if (count.steps > stepsMax) throw new ServiceError('REL_INVALID', `a workflow has at most ${stepsMax} steps`);
  return given.map((each, nth) => readStep(each, nth, { location: `${place}.${nth}`, root, depth }, count));
}

function readStep(given: unknown, nth: number, { location: place, root, depth }: StepLocation, count: { steps: number }): Step {
  const [kind, ...more] = typeof given === 'object' && given !== null && !Array.isArray(given) ? Object.keys(given) : [];
  if (kind === undefined || more.length > 0 || !Object.hasOwn(kinds, kind))
    throw new ServiceError('REL_INVALID', `${place}: an object with one of ${Object.keys(kinds).join(', ')} is expected`);
  const read = check(kinds[kind as StepKind] as z.ZodType, (given as Readonly<Record<string, unknown>>)[kind]);
  if (!read.success) {
    const [{ path, message }] = read.issues as [(typeof read.issues)[number]];
    throw new ServiceError('REL_INVALID', `${[place, kind, ...path.map(String)].join('.')}: ${message}`);
  }
  const step = { kind, given: read.data, inner: [] } as unknown as Step;
  if (step.kind === 'tool' && step.given.name === 'run_workflow')
    throw new ServiceError('REL_INVALID', `${place}: a workflow begins no other`);
  const inner: (readonly Step[])[] = [];
  const nest = (steps: unknown, name: string, of: StepLocation['root']): number =>
    inner.push(readBlock(steps, { location: `${place}.${kind}.${name}`, root: of, depth: depth + 1 }, count));
  if (step.kind === 'if') {
    nest(step.given.then, 'then', null);
    if (step.given.else !== undefined) nest(step.given.else, 'else', null);
  }
  if (step.kind === 'for_each') nest(step.given.steps, 'steps', 'block');
  // Steps inside are read by themselves.
  const { then: _then, else: _else, steps: _steps, ...own } = step.given as Readonly<Record<string, unknown>>;
  for (const name of templatesIn(own)) {
    const [of, number] = name.split('.');
    if (of === root && Number(number) >= nth) throw new ServiceError('REL_INVALID', `${place}: {{${name}}} is no step before it`);
  }
  return { ...step, inner };
}

/** The value as JSON says it exactly; numbers beyond 2^53 have to be texts. Throws REL_INVALID. */
export function plainJson(value: unknown): Json {
  return JSON.parse(
    JSON.stringify(value, (name, each: unknown) => {
      if (typeof each === 'bigint') throw new ServiceError('REL_INVALID', `${name}: a number beyond 2^53 is sent as a text here`);
      return each;
    }),
  ) as Json;
}
