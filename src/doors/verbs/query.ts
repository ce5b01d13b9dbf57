/** Tools that ask: SQL, entities by type, figures, words and meaning together. Source: specification, "Tool protocol (MCP)". */
import { z } from 'zod';
import { ServiceError } from '../../errors.ts';
import type { TypeDefinition } from '../../log/entries/entry.ts';
import { checkText } from '../../log/values/value.ts';
import type { Answer } from '../../planner/planner-contract.ts';
import { literalOf } from '../../planner/languages/search-json.ts';
import type { Literal } from '../../planner/syntax/statement.ts';
import { record } from '../shared/schema-check.ts';
import { scalar } from '../shared/exact-numbers.ts';
import { parseExactJson } from '../shared/read-exact-json.ts';
import { quote, type VerbRow, rowsOf, textOf } from './verb-rows.ts';
import type { VerbCall } from './verb-call.ts';
import { verb } from './verb.ts';

/** Source: specification, "Limits". */
const verbRowsMax = 10_000;

const answerRowsField = z.array(z.record(z.string(), z.unknown()));
export const answerMembers = {
  rows: answerRowsField,
  row_count: z.int(),
  columns: z.array(z.string()),
  truncated: z.boolean().describe(`more than ${verbRowsMax} rows matched`),
  as_of_system: z.int().describe('nanoseconds'),
  cost_units: z.number(),
  processing_time_ms: z.number(),
  estimatedTotalHits: z.int(),
  notices: z.array(z.string()).optional(),
  plan: z.array(z.string()).optional().describe('of EXPLAIN'),
};

const answerOutput = z.object(answerMembers) as unknown as z.ZodType;

/** The part of an answer that leaves: at most so many rows, with JSON columns as values. */
export function queryReply(toolAnswer: Answer, rowLimit = verbRowsMax) {
  const allRows = shownRows(toolAnswer);
  const { notices: answerNotices = [] } = toolAnswer;
  return {
    rows: allRows.slice(0, rowLimit),
    row_count: Math.min(allRows.length, rowLimit),
    columns: toolAnswer.columns.map(({ name: columnName }) => columnName),
    truncated: allRows.length > rowLimit,
    as_of_system: toolAnswer.asOfSystem,
    cost_units: toolAnswer.costUnits,
    processing_time_ms: toolAnswer.processingTimeMs,
    estimatedTotalHits: toolAnswer.estimatedTotalHits,
    ...(answerNotices.length > 0 && { notices: [...answerNotices] }),
    ...(toolAnswer.plan !== null && { plan: toolAnswer.plan.split('\n') }),
  };
}

export function shownRows(queryAnswer: Pick<Answer, 'columns' | 'batches'>): Readonly<Record<string, unknown>>[] {
  const jsonColumns = queryAnswer.columns
    .filter(({ type: columnType }) => columnType === 'json')
    .map(({ name: columnName }) => columnName);
  const vectorColumns = queryAnswer.columns
    .filter(({ type: columnType }) => columnType === 'vector')
    .map(({ name: columnName }) => columnName);
  return rowsOf(queryAnswer).map((answerRow) => {
    const shownRow: Record<string, unknown> = { ...answerRow };
    for (const columnName of jsonColumns) shownRow[columnName] = parseCell(answerRow, columnName);
    for (const name of vectorColumns)
      shownRow[name] = answerRow[name] instanceof Float32Array ? [...(answerRow[name] as Float32Array)] : null;
    return shownRow;
  });
}

function parseCell(answerRow: VerbRow, columnName: string): unknown {
  const cellText = textOf(answerRow[columnName]);
  if (cellText === null) return null;
  try {
    return parseExactJson(cellText);
  } catch {
    return cellText;
  }
}

const queryVerb = {
  output: answerOutput,
  action: 'query',
  units: 1,
  bucket: 'read',
} as const;

async function askSql(verbCall: VerbCall, statementSql: string) {
  checkText(statementSql, 'the statement');
  const signalOption = verbCall.signal ? { signal: verbCall.signal } : {};
  // The invocation itself: EXPLAIN POLICY asks it, too.
  const toolAnswer = await verbCall.parts.planner.query(verbCall.invocation, {
    sql: statementSql,
    purpose: verbCall.purpose,
    queriesOnly: true,
    ...signalOption,
  });
  verbCall.note({ result: { row_count: toolAnswer.rowCount } });
  return queryReply(toolAnswer);
}

export const query = verb({
  ...queryVerb,
  name: 'query',
  description:
    'Run one read-only SELECT and get its rows, at most 10,000. Without AS OF every stored version is read: put AS OF CURRENT behind FROM ' +
    'for what holds now. list_entity_types tells the types.',
  input: z.object({ sql: z.string().min(1).describe('one SELECT or EXPLAIN') }),
  purpose: 'required',
  tool: { title: 'Query', readOnly: true },
  example: { sql: 'SELECT * FROM MemoryItem AS OF CURRENT LIMIT 5' },
  run: (verbCall, { sql: statementSql }) => askSql(verbCall, statementSql),
});

export const queryKnowledge = verb({
  ...queryVerb,
  name: 'query_knowledge',
  description:
    'The same as query, for whoever states the purpose out of band: it is analytics unless the connection says otherwise.',
  input: z.object({ sql: z.string().min(1).describe('one SELECT or EXPLAIN') }),
  purpose: { byDefault: 'analytics' },
  tool: { title: 'Query knowledge', readOnly: true },
  example: { sql: 'SELECT * FROM MemoryItem AS OF CURRENT LIMIT 5' },
  run: (verbCall, { sql: statementSql }) => askSql(verbCall, statementSql),
});

export const explainPolicy = verb({
  name: 'explain_policy',
  description: 'Whether you may read a type now, and which rules or policies decide it.',
  input: z.object({
    entity_type: z.string().min(1).optional().describe('the type'),
    sql: z.string().min(1).optional().describe('or a SELECT, of whose types it is told'),
  }),
  output: z.unknown(),
  action: 'query',
  units: 1,
  purpose: 'required',
  bucket: 'read',
  tool: { title: 'Explain policy', readOnly: true },
  example: { entity_type: 'MemoryItem' },
  run: async (verbCall, { entity_type: explainedType, sql: statementSql }) => {
    if ((explainedType === undefined) === (statementSql === undefined))
      throw new ServiceError('REL_INVALID', 'entity_type: give a type, or sql');
    if (statementSql !== undefined) {
      const policyPlan = await askSql(
        verbCall,
        /^\s*EXPLAIN\s+POLICY\b/i.test(statementSql) ? statementSql : `EXPLAIN POLICY ${statementSql}`,
      );
      return { explanation: policyPlan.rows.map((aggregateRow) => aggregateRow['plan']) };
    }
    verbCall.invocation.describe({ objectType: explainedType! });
    const policyExplanation = verbCall.invocation.explainPolicy(explainedType!);
    return {
      decision: policyExplanation.decision,
      determining: policyExplanation.determining,
      residual: policyExplanation.residual,
      masks: policyExplanation.masks,
      because: policyExplanation.because,
      scope: policyExplanation.scope,
      policy_digest: policyExplanation.policyDigest,
      satisfied_path: policyExplanation.satisfiedPath,
    };
  },
});

export const listEntityTypes = verb({
  name: 'list_entity_types',
  description: 'The types you may name, each with its columns. Start here.',
  input: z.object({}),
  output: z.object({ types: z.array(z.unknown()), total: z.int() }),
  action: 'query',
  units: 1,
  purpose: 'required',
  bucket: 'read',
  tool: { title: 'Types', readOnly: true },
  example: {},
  run: async (verbCall) => {
    const typeViews = verbCall.snapshot.catalog.types().map(({ name: typeName, properties, primaryKey }) => ({
      name: typeName,
      columns: Object.fromEntries(
        Object.entries(properties).map(([columnName, { type: explainedType }]) => [columnName, explainedType]),
      ),
      primary_key: primaryKey,
    }));
    return { types: typeViews, total: typeViews.length };
  },
});

export const getEntities = verb({
  name: 'get_entities',
  description: 'Rows of a type as they hold now, narrowed by values that columns must have, in order of their keys.',
  input: z.object({
    entity_type: z.string().min(1).describe('the type'),
    filters: record(scalar).optional().describe('column to value; null: has none'),
    limit: z.int().min(1).max(1_000).default(20),
    offset: z.int().min(0).max(10_000).default(0),
  }),
  output: z.object({ entities: answerRowsField, total: z.int(), limit: z.int(), offset: z.int(), truncated: z.boolean() }),
  action: 'query',
  units: 1,
  purpose: 'required',
  bucket: 'read',
  tool: { title: 'Entities', readOnly: true },
  example: { entity_type: 'MemoryItem', limit: 5 },
  run: async (verbCall, { entity_type: typeName, filters: entityFilters = {}, limit: entityLimit, offset: entityOffset }) => {
    const entityDefinition = knownType(verbCall, typeName);
    const filterValues: Literal[] = [];
    const filterConditions = Object.entries(entityFilters).map(([columnName, filterValue]) => {
      const filterColumn = quote(columnName);
      if (filterValue === null) return `${filterColumn} IS NULL`;
      return `${filterColumn} = $${filterValues.push(literalOf(filterValue))}`;
    });
    const entityWhere = filterConditions.length === 0 ? '' : ` WHERE ${filterConditions.join(' AND ')}`;
    const toolAnswer = await verbCall.answer(
      `SELECT * FROM ${quote(entityDefinition.name)}${entityWhere} ORDER BY _pk LIMIT ${entityLimit} OFFSET ${entityOffset}`,
      filterValues,
    );
    const [entityCount] = await verbCall.ask(
      `SELECT COUNT(*) AS n FROM ${quote(entityDefinition.name)}${entityWhere}`,
      filterValues,
    );
    const entityRows = shownRows(toolAnswer);
    const entityTotal = Number(entityCount?.['n'] ?? 0n);
    return {
      entities: entityRows,
      total: entityTotal,
      limit: entityLimit,
      offset: entityOffset,
      truncated: entityOffset + entityRows.length < entityTotal,
    };
  },
});

/** Tools report an unknown type by the specification's error: 404. */
export function knownType(verbCall: VerbCall, typeName: string): TypeDefinition {
  const knownDefinition = verbCall.snapshot.catalog.type(typeName);
  if (knownDefinition === undefined)
    throw new ServiceError('REL_UNKNOWN_TYPE', `the type ${JSON.stringify(typeName)} is not registered`);
  return knownDefinition;
}

export const aggregateStats = verb({
  name: 'aggregate_stats',
  description:
    'One figure over the rows of a type as they hold now: count, sum, avg, min or max, of a column and maybe by another one.',
  input: z.object({
    entity_type: z.string().min(1),
    agg: z.enum(['count', 'sum', 'avg', 'min', 'max']).default('count'),
    column: z.string().min(1).optional().describe('not needed to count rows'),
    group_by: z.string().min(1).optional().describe('a column: one figure for each of its values'),
  }),
  output: z.object({
    entity_type: z.string(),
    agg: z.string(),
    column: z.string().nullable(),
    value: z.unknown(),
    groups: answerRowsField.optional(),
  }),
  action: 'query',
  units: 1,
  purpose: 'required',
  bucket: 'read',
  tool: { title: 'Figures', readOnly: true },
  example: { entity_type: 'MemoryItem', agg: 'count' },
  run: async (verbCall, { entity_type: typeName, agg: aggregate, column: columnName, group_by: groupColumn }) => {
    const entityDefinition = knownType(verbCall, typeName);
    if (columnName === undefined && aggregate !== 'count')
      throw new ServiceError('REL_INVALID', `column: ${aggregate} needs one`);
    const aggregateFigure = `${aggregate.toUpperCase()}(${columnName === undefined ? '*' : quote(columnName)})`;
    const aggregatedType = quote(entityDefinition.name);
    const [aggregateRow] = await verbCall.ask(`SELECT ${aggregateFigure} AS value FROM ${aggregatedType}`);
    const wholeAggregate = {
      entity_type: entityDefinition.name,
      agg: aggregate,
      column: columnName ?? null,
      value: aggregateRow?.['value'] ?? null,
    };
    if (groupColumn === undefined) return wholeAggregate;
    const aggregateGroups = await verbCall.ask(
      `SELECT ${quote(groupColumn)} AS "group", ${aggregateFigure} AS value FROM ${aggregatedType} GROUP BY ${quote(groupColumn)} LIMIT ${verbRowsMax}`,
    );
    return { ...wholeAggregate, groups: aggregateGroups };
  },
});
