/** Steps of workflows as callers write them: an object with one member each, whose name is its kind. */
import { z } from 'zod';
import { ServiceError } from '../../errors.ts';
import type { Json } from '../../log/values/canonical-json.ts';
import { severities } from '../../projections/rules/rule.ts';
import { check } from '../shared/schema-check.ts';
import { templatesIn } from './templates.ts';

const stepScalar = z.union([z.string(), z.number(), z.boolean(), z.null()]);
const stepJson = z.json();
const stepBlock = z.array(z.unknown()).min(1);
const stepSeconds = z.int().min(1).max(31_536_000);

const stepKinds = {
  query: z.strictObject({ sql: z.string(), parameters: z.array(stepScalar).max(1_000).default([]) }),
  function: z.strictObject({ name: z.string(), arguments: z.array(stepScalar).max(64).default([]) }),
  tool: z.strictObject({ name: z.string(), arguments: z.record(z.string(), stepJson).default({}) }),
  insert: z
    .strictObject({ type: z.string(), row: stepJson.optional(), rows: stepJson.optional() })
    .refine(
      ({ row: insertRow, rows: insertRows }) => (insertRow === undefined) !== (insertRows === undefined),
      'one of row and rows is expected',
    ),
  alert: z.strictObject({
    title: z.string(),
    severity: z.enum(severities).default('medium'),
    matched_type: z.string().nullable().default(null),
    matched_pk: stepJson.default(null),
  }),
  // oxlint-disable-next-line unicorn/no-thenable -- a list of steps, as the language of workflows calls it
  if: z.strictObject({ condition: z.string(), then: stepBlock, else: stepBlock.optional() }),
  for_each: z.strictObject({ items: stepJson, steps: stepBlock }),
  wait: z
    .strictObject({
      seconds: stepSeconds.optional(),
      sql: z.string().optional(),
      every_secs: stepSeconds.default(60),
      timeout_secs: stepSeconds.default(86_400),
    })
    .refine(
      ({ seconds: waitSeconds, sql: waitSql }) => (waitSeconds === undefined) !== (waitSql === undefined),
      'one of seconds and sql is expected',
    ),
  approve: z.strictObject({ principal: z.string().min(1), timeout_secs: stepSeconds.optional() }),
};

type StepFields = { readonly [K in keyof typeof stepKinds]: z.output<(typeof stepKinds)[K]> };
export type StepKind = keyof StepFields;

/** A step by its kind, with the members that it was given and the steps inside of it. */
export type Step = {
  [K in StepKind]: { readonly kind: K; readonly given: StepFields[K]; readonly inner: readonly (readonly Step[])[] };
}[StepKind];

const workflowStepsMax = 200;
const stepDepthMax = 8;
/** Most items of a `for_each`. */
export const itemsMax = 10_000;

/** Throws REL_INVALID with the place of the step. */
export function readSteps(givenSteps: unknown): readonly Step[] {
  const stepCounter = { steps: 0 };
  const workflowSteps = readStepBlock(givenSteps, { location: 'steps', root: 'steps', depth: 0 }, stepCounter);
  if (stepCounter.steps > workflowStepsMax)
    throw new ServiceError('REL_INVALID', `a workflow has at most ${workflowStepsMax} steps`);
  return workflowSteps;
}

/** `root`: the name by which steps of the block name each other; null: they don't. */
interface StepLocation {
  readonly location: string;
  readonly root: 'steps' | 'block' | null;
  readonly depth: number;
}

function readStepBlock(
  givenSteps: unknown,
  { location: blockPath, root: templateRoot, depth: stepDepth }: StepLocation,
  stepCounter: { steps: number },
): readonly Step[] {
  if (stepDepth > stepDepthMax)
    throw new ServiceError('REL_INVALID', `${blockPath}: steps are nested ${stepDepthMax} deep at most`);
  if (!Array.isArray(givenSteps) || givenSteps.length === 0)
    throw new ServiceError('REL_INVALID', `${blockPath}: a list of steps is expected`);
  stepCounter.steps += givenSteps.length;
  if (stepCounter.steps > workflowStepsMax)
    throw new ServiceError('REL_INVALID', `a workflow has at most ${workflowStepsMax} steps`);
  return givenSteps.map((givenStep, stepOrdinal) =>
    readWorkflowStep(
      givenStep,
      stepOrdinal,
      { location: `${blockPath}.${stepOrdinal}`, root: templateRoot, depth: stepDepth },
      stepCounter,
    ),
  );
}

function readWorkflowStep(
  givenStep: unknown,
  stepOrdinal: number,
  { location: stepPath, root: templateRoot, depth: stepDepth }: StepLocation,
  stepCounter: { steps: number },
): Step {
  const [stepKind, ...otherKinds] =
    typeof givenStep === 'object' && givenStep !== null && !Array.isArray(givenStep) ? Object.keys(givenStep) : [];
  if (stepKind === undefined || otherKinds.length > 0 || !Object.hasOwn(stepKinds, stepKind))
    throw new ServiceError('REL_INVALID', `${stepPath}: an object with one of ${Object.keys(stepKinds).join(', ')} is expected`);
  const stepCheck = check(
    stepKinds[stepKind as StepKind] as z.ZodType,
    (givenStep as Readonly<Record<string, unknown>>)[stepKind],
  );
  if (!stepCheck.success) {
    const [{ path: issuePath, message: issueMessage }] = stepCheck.issues as [(typeof stepCheck.issues)[number]];
    throw new ServiceError('REL_INVALID', `${[stepPath, stepKind, ...issuePath.map(String)].join('.')}: ${issueMessage}`);
  }
  const workflowStep = { kind: stepKind, given: stepCheck.data, inner: [] } as unknown as Step;
  if (workflowStep.kind === 'tool' && workflowStep.given.name === 'run_workflow')
    throw new ServiceError('REL_INVALID', `${stepPath}: a workflow begins no other`);
  const innerBlocks: (readonly Step[])[] = [];
  const nestBlock = (nestedSteps: unknown, blockName: string, nestedRoot: StepLocation['root']): number =>
    innerBlocks.push(
      readStepBlock(
        nestedSteps,
        { location: `${stepPath}.${stepKind}.${blockName}`, root: nestedRoot, depth: stepDepth + 1 },
        stepCounter,
      ),
    );
  if (workflowStep.kind === 'if') {
    nestBlock(workflowStep.given.then, 'then', null);
    if (workflowStep.given.else !== undefined) nestBlock(workflowStep.given.else, 'else', null);
  }
  if (workflowStep.kind === 'for_each') nestBlock(workflowStep.given.steps, 'steps', 'block');
  // Steps inside are read by themselves.
  const { then: _then, else: _else, steps: _steps, ...ownFields } = workflowStep.given as Readonly<Record<string, unknown>>;
  for (const templateName of templatesIn(ownFields)) {
    const [templateBlock, templateStep] = templateName.split('.');
    if (templateBlock === templateRoot && Number(templateStep) >= stepOrdinal)
      throw new ServiceError('REL_INVALID', `${stepPath}: {{${templateName}}} is no step before it`);
  }
  return { ...workflowStep, inner: innerBlocks };
}

/** The value as JSON says it exactly; numbers beyond 2^53 have to be texts. Throws REL_INVALID. */
export function plainJson(jsonValue: unknown): Json {
  return JSON.parse(
    JSON.stringify(jsonValue, (memberName, memberValue: unknown) => {
      if (typeof memberValue === 'bigint')
        throw new ServiceError('REL_INVALID', `${memberName}: a number beyond 2^53 is sent as a text here`);
      return memberValue;
    }),
  ) as Json;
}
