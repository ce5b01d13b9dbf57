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

const templatePattern = /\{\{([^{}]*)\}\}/g;
const templateForm = /^(?:(?:steps|block)\.\d{1,4}|arguments|item|index)(?:\.[^.\s]{1,128}){0,16}$/;

/** All templates of a value; each has the form of one. Throws REL_INVALID. */
export function templatesIn(templatedValue: unknown): readonly string[] {
  if (typeof templatedValue === 'string')
    return [...templatedValue.matchAll(templatePattern)].map(([wholeTemplate, templateInner]) => {
      const templateName = templateInner!.trim();
      if (!templateForm.test(templateName))
        throw new ServiceError(
          'REL_INVALID',
          `${wholeTemplate} is none of {{steps.N…}}, {{block.N…}}, {{arguments…}}, {{item…}} and {{index}}`,
        );
      return templateName;
    });
  if (Array.isArray(templatedValue)) return templatedValue.flatMap(templatesIn);
  return typeof templatedValue === 'object' && templatedValue !== null ? Object.values(templatedValue).flatMap(templatesIn) : [];
}

/** The value with its templates replaced. */
export async function fill(templatedValue: Json, templateScope: Scope): Promise<unknown> {
  if (typeof templatedValue === 'string') {
    const wholeTemplate = /^\{\{([^{}]*)\}\}$/.exec(templatedValue);
    if (wholeTemplate !== null) return templateValueOf(wholeTemplate[1]!, templateScope);
    let filledText = '';
    let templateEnd = 0;
    for (const templateMatch of templatedValue.matchAll(templatePattern)) {
      filledText +=
        templatedValue.slice(templateEnd, templateMatch.index) +
        templatePlainText(await templateValueOf(templateMatch[1]!, templateScope));
      templateEnd = templateMatch.index + templateMatch[0].length;
    }
    return filledText + templatedValue.slice(templateEnd);
  }
  if (Array.isArray(templatedValue))
    return Promise.all(templatedValue.map((templatedItem: Json) => fill(templatedItem, templateScope)));
  if (typeof templatedValue !== 'object' || templatedValue === null) return templatedValue;
  const filledMembers = Object.entries(templatedValue).map(
    async ([memberName, templatedItem]) => [memberName, await fill(templatedItem as Json, templateScope)] as const,
  );
  return Object.fromEntries(await Promise.all(filledMembers));
}

/** SQL with `$n` for its templates, behind the parameters that are given. A template in quotes is all of its text. */
export async function fillSql(
  templatedSql: string,
  givenParameters: readonly Literal[],
  templateScope: Scope,
): Promise<{ readonly sql: string; readonly parameters: readonly Literal[] }> {
  const sqlParameters = [...givenParameters];
  let filledSql = '';
  let templateEnd = 0;
  for (const templateMatch of templatedSql.matchAll(/'\{\{([^{}]*)\}\}'|\{\{([^{}]*)\}\}/g)) {
    const isQuotedTemplate = templateMatch[1] !== undefined;
    const templateLiteral = parameterOf(await templateValueOf((templateMatch[1] ?? templateMatch[2])!, templateScope));
    sqlParameters.push(isQuotedTemplate && templateLiteral !== null ? String(templateLiteral) : templateLiteral);
    filledSql += `${templatedSql.slice(templateEnd, templateMatch.index)}$${sqlParameters.length}`;
    templateEnd = templateMatch.index + templateMatch[0].length;
  }
  return { sql: filledSql + templatedSql.slice(templateEnd), parameters: sqlParameters };
}

export function parameterOf(templateCell: unknown): Literal {
  if (
    templateCell === null ||
    typeof templateCell === 'string' ||
    typeof templateCell === 'boolean' ||
    typeof templateCell === 'bigint'
  )
    return templateCell;
  if (typeof templateCell === 'number') return Number.isSafeInteger(templateCell) ? BigInt(templateCell) : templateCell;
  return exactJson(templateCell);
}

async function templateValueOf(templateName: string, templateScope: Scope): Promise<unknown> {
  const [templateRoot, ...memberPath] = templateName.trim().split('.');
  const isStepTemplate = templateRoot === 'steps' || templateRoot === 'block';
  let templateValue = await templateScope.value(templateRoot!, isStepTemplate ? Number(memberPath.shift()) : null);
  for (const memberName of memberPath) {
    const hasMember = typeof templateValue === 'object' && templateValue !== null && Object.hasOwn(templateValue, memberName);
    if (!hasMember) throw new ServiceError('REL_UNPROCESSABLE', `{{${templateName.trim()}}}: there is no such value`);
    templateValue = (templateValue as Readonly<Record<string, unknown>>)[memberName];
  }
  return templateValue;
}

const templatePlainText = (templateCell: unknown): string =>
  typeof templateCell === 'string' ? templateCell : exactJson(templateCell);
