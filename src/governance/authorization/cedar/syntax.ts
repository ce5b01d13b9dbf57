/**
 * Cedar expressions as a tree, and their text. The text is canonical: equal texts are equal expressions, so it is the key of
 * caches, and EXPLAIN POLICY shows it. Frozen by convention; every operator is a case of one union.
 */
import { unreachable } from '../../../errors.ts';
import type { ColumnType } from '../../../log/values/value.ts';
import { Entity, Instant, RecordValue, SetValue, Span, type Value } from './values.ts';

export type BinaryOp =
  | '=='
  | '!='
  | '<'
  | '<='
  | '>'
  | '>='
  | '+'
  | '-'
  | '*'
  | 'in'
  | 'contains'
  | 'containsAll'
  | 'containsAny';

export type Variable = 'principal' | 'action' | 'resource' | 'context';

export type Expr =
  | { readonly op: 'value'; readonly value: Value }
  | { readonly op: 'error' }
  | { readonly op: 'variable'; readonly name: Variable }
  | { readonly op: 'and' | 'or'; readonly left: Expr; readonly right: Expr }
  | { readonly op: 'not' | 'negate' | 'isEmpty'; readonly arg: Expr }
  | { readonly op: BinaryOp; readonly left: Expr; readonly right: Expr }
  | { readonly op: 'attribute' | 'has'; readonly left: Expr; readonly name: string }
  /** null is the wildcard. */
  | { readonly op: 'like'; readonly left: Expr; readonly pattern: readonly (string | null)[] }
  | { readonly op: 'is'; readonly left: Expr; readonly type: string; readonly within: Expr | null }
  | { readonly op: 'if'; readonly test: Expr; readonly yes: Expr; readonly no: Expr }
  | { readonly op: 'set'; readonly items: readonly Expr[] }
  | { readonly op: 'record'; readonly fields: readonly (readonly [string, Expr])[] }
  | { readonly op: 'call'; readonly name: string; readonly args: readonly Expr[] }
  /**
   * The part of `resource` that is left in a row's condition: a cell, whether the row has one, whether an organisation covers it.
   */
  | { readonly op: 'column'; readonly name: string; readonly type: ColumnType }
  | { readonly op: 'present'; readonly name: string }
  | { readonly op: 'covered'; readonly path: string }
  /** `context.now`, while it is not known yet. */
  | { readonly op: 'now' };

export const TRUE: Expr = { op: 'value', value: true };
export const FALSE: Expr = { op: 'value', value: false };
export const FAILS: Expr = { op: 'error' };

export const value = (of: Value): Expr => ({ op: 'value', value: of });
export const and = (left: Expr, right: Expr): Expr => ({ op: 'and', left, right });

/** The column whose cells say which organisation a row belongs to. */
export const ownerColumn = 'namespace_path';

/** Direct operands. */
export function operands(expr: Expr): readonly Expr[] {
  switch (expr.op) {
    case 'value':
    case 'error':
    case 'variable':
    case 'column':
    case 'present':
    case 'covered':
    case 'now':
      return [];
    case 'not':
    case 'negate':
    case 'isEmpty':
      return [expr.arg];
    case 'attribute':
    case 'has':
    case 'like':
      return [expr.left];
    case 'is':
      return expr.within === null ? [expr.left] : [expr.left, expr.within];
    case 'if':
      return [expr.test, expr.yes, expr.no];
    case 'set':
      return expr.items;
    case 'record':
      return expr.fields.map(([, field]) => field);
    case 'call':
      return expr.args;
    default:
      return [expr.left, expr.right];
  }
}

export function mentions(expr: Expr, isSought: (part: Expr) => boolean): boolean {
  return isSought(expr) || operands(expr).some((part) => mentions(part, isSought));
}

/** Columns that a row's condition reads, ascending. */
export function columnsOf(expr: Expr): readonly string[] {
  const mentionedColumns = new Set<string>();
  mentions(expr, (part) => {
    if (part.op === 'column' || part.op === 'present') mentionedColumns.add(part.name);
    if (part.op === 'covered') mentionedColumns.add(ownerColumn);
    return false;
  });
  return [...mentionedColumns].sort();
}

/** True when it is a boolean wherever it is no error. */
export function isBoolean(expr: Expr): boolean {
  switch (expr.op) {
    case 'value':
      return typeof expr.value === 'boolean';
    case 'column':
      return expr.type === 'boolean';
    case 'if':
      return isBoolean(expr.yes) && isBoolean(expr.no);
    case 'variable':
    case 'attribute':
    case 'negate':
    case '+':
    case '-':
    case '*':
    case 'set':
    case 'record':
    case 'call':
    case 'now':
      return false;
    default:
      return true;
  }
}

export function textOf(expr: Expr): string {
  switch (expr.op) {
    case 'value':
      return textOfCedarValue(expr.value);
    case 'error':
      return 'error';
    case 'variable':
      return expr.name;
    case 'column':
      return `resource${attributeText(expr.name)}`;
    case 'present':
      return `resource has ${nameText(expr.name)}`;
    case 'covered':
      return `resource in Org::${JSON.stringify(expr.path)}`;
    case 'now':
      return 'context.now';
    case 'and':
      return `${operandText(expr.left)} && ${operandText(expr.right)}`;
    case 'or':
      return `${operandText(expr.left)} || ${operandText(expr.right)}`;
    case 'not':
      return `!${operandText(expr.arg)}`;
    case 'negate':
      return `-${operandText(expr.arg)}`;
    case 'isEmpty':
      return `${operandText(expr.arg)}.isEmpty()`;
    case 'attribute':
      return `${operandText(expr.left)}${attributeText(expr.name)}`;
    case 'has':
      return `${operandText(expr.left)} has ${nameText(expr.name)}`;
    case 'like':
      return `${operandText(expr.left)} like ${likePatternText(expr.pattern)}`;
    case 'is':
      return `${operandText(expr.left)} is ${expr.type}${expr.within === null ? '' : ` in ${operandText(expr.within)}`}`;
    case 'if':
      return `if ${operandText(expr.test)} then ${operandText(expr.yes)} else ${operandText(expr.no)}`;
    case 'set':
      return `[${expr.items.map(textOf).join(', ')}]`;
    case 'record':
      return `{${expr.fields.map(([name, field]) => `${JSON.stringify(name)}: ${textOf(field)}`).join(', ')}}`;
    case 'call': {
      const [receiverExpr, ...methodArguments] = expr.args;
      const isMethod = receiverExpr !== undefined && expr.name !== 'datetime' && expr.name !== 'duration';
      return isMethod
        ? `${operandText(receiverExpr)}.${expr.name}(${methodArguments.map(textOf).join(', ')})`
        : `${expr.name}(${expr.args.map(textOf).join(', ')})`;
    }
    case 'contains':
    case 'containsAll':
    case 'containsAny':
      return `${operandText(expr.left)}.${expr.op}(${textOf(expr.right)})`;
    case '==':
    case '!=':
    case '<':
    case '<=':
    case '>':
    case '>=':
    case '+':
    case '-':
    case '*':
    case 'in':
      return `${operandText(expr.left)} ${expr.op} ${operandText(expr.right)}`;
    default:
      return unreachable(expr);
  }
}

const bareOperations: ReadonlySet<Expr['op']> = new Set([
  'value',
  'error',
  'variable',
  'column',
  'attribute',
  'set',
  'record',
  'call',
  'now',
]);

function operandText(expr: Expr): string {
  return bareOperations.has(expr.op) ? textOf(expr) : `(${textOf(expr)})`;
}

function textOfCedarValue(cedarValue: Value): string {
  if (typeof cedarValue === 'boolean' || typeof cedarValue === 'bigint') return String(cedarValue);
  if (typeof cedarValue === 'string') return JSON.stringify(cedarValue);
  if (cedarValue instanceof Entity) return `${cedarValue.type}::${JSON.stringify(cedarValue.id)}`;
  if (cedarValue instanceof Span) return `duration("${cedarValue.ms}ms")`;
  if (cedarValue instanceof SetValue) return `[${[...new Set(cedarValue.items.map(textOfCedarValue))].sort().join(', ')}]`;
  if (cedarValue instanceof RecordValue) {
    const sortedFields = [...cedarValue.fields].sort(([a], [b]) => (a < b ? -1 : 1));
    return `{${sortedFields.map(([name, field]) => `${JSON.stringify(name)}: ${textOfCedarValue(field)}`).join(', ')}}`;
  }
  const instantMs = Number((cedarValue satisfies Instant).ms);
  // Years that Cedar's own literal can't say.
  const isPrintableInstant = instantMs >= -62_167_219_200_000 && instantMs <= 253_402_300_799_999;
  return isPrintableInstant
    ? `datetime("${new Date(instantMs).toISOString()}")`
    : `datetime("1970-01-01").offset(duration("${cedarValue.ms}ms"))`;
}

function likePatternText(pattern: readonly (string | null)[]): string {
  const likeLiteral = (text: string): string => JSON.stringify(text).slice(1, -1).replaceAll('*', '\\*');
  return `"${pattern.map((part) => (part === null ? '*' : likeLiteral(part))).join('')}"`;
}

function attributeText(name: string): string {
  return /^[A-Za-z_]\w*$/.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`;
}

function nameText(name: string): string {
  return /^[A-Za-z_]\w*$/.test(name) ? name : JSON.stringify(name);
}
