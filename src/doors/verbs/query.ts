/** Tools that ask: SQL, entities by type, figures, words and meaning together. Source: specification, "Tool protocol (MCP)". */
import { z } from 'zod';
import { ServiceError } from '../../errors.ts';
import type { TypeDefinition } from '../../log/entries/entry.ts';
import { checkText } from '../../log/values/value.ts';
import type { Answer } from '../../planner/planner-contract.ts';
import { literalOf } from '../../planner/languages/search-json.ts';
import type { Literal } from '../../planner/syntax/statement.ts';
import { record } from '../schemas/schema-check.ts';
import { scalar } from '../schemas/exact-numbers.ts';
import { parseExactJson } from '../shared/read-exact-json.ts';
import { quote, type VerbRow, rowsOf, textOf } from './verb-rows.ts';
import type { VerbCall } from './verb-call.ts';
import { verb } from './verb.ts';

/** Source: specification, "Limits". */
const rowsMax = 10_000;

const rows = z.array(z.record(z.string(), z.unknown()));
export const answerMembers = {
  rows,
  row_count: z.int(),
  columns: z.array(z.string()),
  truncated: z.boolean().describe(`more than ${rowsMax} rows matched`),
  as_of_system: z.int().describe('nanoseconds'),
  cost_units: z.number(),
  processing_time_ms: z.number(),
  estimatedTotalHits: z.int(),
  notices: z.array(z.string()).optional(),
  plan: z.array(z.string()).optional().describe('of EXPLAIN'),
};

const answer = z.object(answerMembers) as unknown as z.ZodType;

/** The part of an answer that leaves: at most so many rows, with JSON columns as values. */
export function queryReply(toolAnswer: Answer, most = rowsMax) {
  const all = shownRows(toolAnswer);
  const { notices = [] } = toolAnswer;
  return {
    rows: all.slice(0, most),
    row_count: Math.min(all.length, most),
    columns: toolAnswer.columns.map(({ name }) => name),
    truncated: all.length > most,
    as_of_system: toolAnswer.asOfSystem,
    cost_units: toolAnswer.costUnits,
    processing_time_ms: toolAnswer.processingTimeMs,
    estimatedTotalHits: toolAnswer.estimatedTotalHits,
    ...(notices.length > 0 && { notices: [...notices] }),
    ...(toolAnswer.plan !== null && { plan: toolAnswer.plan.split('\n') }),
  };
}

export function shownRows(made: Pick<Answer, 'columns' | 'batches'>): Readonly<Record<string, unknown>>[] {
  const json = made.columns.filter(({ type }) => type === 'json').map(({ name }) => name);
  const vectors = made.columns.filter(({ type }) => type === 'vector').map(({ name }) => name);
  return rowsOf(made).map((row) => {
    const shown: Record<string, unknown> = { ...row };
    for (const name of json) shown[name] = parseCell(row, name);
    for (const name of vectors) shown[name] = row[name] instanceof Float32Array ? [...(row[name] as Float32Array)] : null;
    return shown;
  });
}

function parseCell(row: VerbRow, name: string): unknown {
  const text = textOf(row[name]);
  if (text === null) return null;
  try {
    return parseExactJson(text);
  } catch {
    return text;
  }
}

const asking = {
  output: answer,
  action: 'query',
  units: 1,
  bucket: 'read',
} as const;

async function ask(verbCall: VerbCall, sql: string) {
  checkText(sql, 'the statement');
  const signal = verbCall.signal ? { signal: verbCall.signal } : {};
  // The invocation itself: EXPLAIN POLICY asks it, too.
  const toolAnswer = await verbCall.parts.planner.query(verbCall.invocation, {
    sql,
    purpose: verbCall.purpose,
    queriesOnly: true,
    ...signal,
  });
  verbCall.note({ result: { row_count: toolAnswer.rowCount } });
  return queryReply(toolAnswer);
}

export const query = verb({
  ...asking,
  name: 'query',
  description:
    'Run one read-only SELECT and get its rows, at most 10,000. Without AS OF every stored version is read: put AS OF CURRENT behind FROM ' +
    'for what holds now. list_entity_types tells the types.',
  input: z.object({ sql: z.string().min(1).describe('one SELECT or EXPLAIN') }),
  purpose: 'required',
  tool: { title: 'Query', readOnly: true },
  example: { sql: 'SELECT * FROM MemoryItem AS OF CURRENT LIMIT 5' },
  run: (verbCall, { sql }) => ask(verbCall, sql),
});

export const queryKnowledge = verb({
  ...asking,
  name: 'query_knowledge',
  description:
    'The same as query, for whoever states the purpose out of band: it is analytics unless the connection says otherwise.',
  input: z.object({ sql: z.string().min(1).describe('one SELECT or EXPLAIN') }),
  purpose: { byDefault: 'analytics' },
  tool: { title: 'Query knowledge', readOnly: true },
  example: { sql: 'SELECT * FROM MemoryItem AS OF CURRENT LIMIT 5' },
  run: (verbCall, { sql }) => ask(verbCall, sql),
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
  run: async (verbCall, { entity_type: type, sql }) => {
    if ((type === undefined) === (sql === undefined)) throw new ServiceError('REL_INVALID', 'entity_type: give a type, or sql');
    if (sql !== undefined) {
      const policyPlan = await ask(verbCall, /^\s*EXPLAIN\s+POLICY\b/i.test(sql) ? sql : `EXPLAIN POLICY ${sql}`);
      return { explanation: policyPlan.rows.map((row) => row['plan']) };
    }
    verbCall.invocation.describe({ objectType: type! });
    const policyExplanation = verbCall.invocation.explainPolicy(type!);
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
    const types = verbCall.snapshot.catalog.types().map(({ name, properties, primaryKey }) => ({
      name,
      columns: Object.fromEntries(Object.entries(properties).map(([column, { type }]) => [column, type])),
      primary_key: primaryKey,
    }));
    return { types, total: types.length };
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
  output: z.object({ entities: rows, total: z.int(), limit: z.int(), offset: z.int(), truncated: z.boolean() }),
  action: 'query',
  units: 1,
  purpose: 'required',
  bucket: 'read',
  tool: { title: 'Entities', readOnly: true },
  example: { entity_type: 'MemoryItem', limit: 5 },
  run: async (verbCall, { entity_type: name, filters = {}, limit, offset }) => {
    const definition = knownType(verbCall, name);
    const values: Literal[] = [];
    const conditions = Object.entries(filters).map(([column, value]) => {
      const named = quote(column);
      if (value === null) return `${named} IS NULL`;
      return `${named} = $${values.push(literalOf(value))}`;
    });
    const where = conditions.length === 0 ? '' : ` WHERE ${conditions.join(' AND ')}`;
    const toolAnswer = await verbCall.answer(
      `SELECT * FROM ${quote(definition.name)}${where} ORDER BY _pk LIMIT ${limit} OFFSET ${offset}`,
      values,
    );
    const [count] = await verbCall.ask(`SELECT COUNT(*) AS n FROM ${quote(definition.name)}${where}`, values);
    const entities = shownRows(toolAnswer);
    const total = Number(count?.['n'] ?? 0n);
    return { entities, total, limit, offset, truncated: offset + entities.length < total };
  },
});

/** Tools report an unknown type by the specification's error: 404. */
export function knownType(verbCall: VerbCall, name: string): TypeDefinition {
  const definition = verbCall.snapshot.catalog.type(name);
  if (definition === undefined) throw new ServiceError('REL_UNKNOWN_TYPE', `the type ${JSON.stringify(name)} is not registered`);
  return definition;
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
    groups: rows.optional(),
  }),
  action: 'query',
  units: 1,
  purpose: 'required',
  bucket: 'read',
  tool: { title: 'Figures', readOnly: true },
  example: { entity_type: 'MemoryItem', agg: 'count' },
  run: async (verbCall, { entity_type: name, agg, column, group_by: by }) => {
    const definition = knownType(verbCall, name);
    if (column === undefined && agg !== 'count') throw new ServiceError('REL_INVALID', `column: ${agg} needs one`);
    const figure = `${agg.toUpperCase()}(${column === undefined ? '*' : quote(column)})`;
    const from = quote(definition.name);
    const [row] = await verbCall.ask(`SELECT ${figure} AS value FROM ${from}`);
    const whole = { entity_type: definition.name, agg, column: column ?? null, value: row?.['value'] ?? null };
    if (by === undefined) return whole;
    const groups = await verbCall.ask(
      `SELECT ${quote(by)} AS "group", ${figure} AS value FROM ${from} GROUP BY ${quote(by)} LIMIT ${rowsMax}`,
    );
    return { ...whole, groups };
  },
});
