/**
 * Memories that may answer a query: the best by words, and the best by meaning. Invariant: only the rows, the query and its
 * vector decide, so that a replay finds the same candidates.
 *
 *   words     BM25 of the stems of the content; b / (b + the median of the best 50)
 *   meaning   the cosine of the model's vectors
 *   rel       the mean of both; of words alone where there is no model, or it did not answer: `npm run quality -- fusion` tells what
 *             likeness by hashing would be worth beside them. What shares neither a word nor a meaning is no candidate.
 */
import { ServiceError } from '../../../errors.ts';
import type { GovernedSnapshot } from '../../../governance/gate-contract.ts';
import type { TypeDefinition } from '../../../log/entries/entry.ts';
import { cosineOf } from '../../../planner/embedding/hashing.ts';
import { vectorColumns, wordColumns } from '../../../governance/embedding/embedded-columns.ts';
import type { DefaultTime, Literal } from '../../../planner/syntax/statement.ts';
import { tokensOf } from '../../../projections/rows/indexes/text/tokens.ts';
import { quote, type VerbRow } from '../verb-rows.ts';

export type Ask = (sql: string, parameters: readonly Literal[], time: DefaultTime) => Promise<VerbRow[]>;

export interface CandidateInput {
  readonly snapshot: GovernedSnapshot;
  readonly ask: Ask;
  /** The query as the model sees it; one zero: it did not answer; null: there is none. */
  readonly vector: readonly number[] | null;
}

export interface CandidateRequest {
  readonly type: string;
  readonly query: string | undefined;
  readonly class_filter?: string | readonly string[] | undefined;
  readonly session_id?: string | undefined;
  readonly min_confidence?: number | undefined;
  readonly top_k: number;
}

export interface Candidate {
  readonly row: VerbRow;
  /** The match, from 0 to 1; 1 without a query. */
  readonly rel: number;
}

/** Best of either ranking that are looked at. Source: docs/agents.md. */
const candidatesMin = 200;
const candidatesMax = 1_000;
/** Different words of a query that are sought. */
const wordsMost = 200;
/** The median score of so many best rows counts as a half. */
const medianOf = 50;

export async function candidates(input: CandidateRequest, at: bigint, parts: CandidateInput): Promise<readonly Candidate[]> {
  const { type, query } = input;
  const { snapshot, ask, vector } = parts;
  const definition = snapshot.catalog.type(type);
  if (definition === undefined) throw new ServiceError('REL_INVALID', `the type ${JSON.stringify(type)} is not registered`);
  const time = { valid: at, system: at };
  const hidden = await quarantinedKeys(ask, type, time);
  const most = Math.min(candidatesMax, Math.max(candidatesMin, input.top_k) + hidden.size);
  const from = (source: string, first: readonly Literal[], rest: string): Promise<VerbRow[]> => {
    const { where, values } = conditionsOf(input, first);
    return ask(`SELECT * FROM ${source}${where}${rest}`, values, time);
  };
  const isShown = (row: VerbRow): boolean => !hidden.has(keyOf(row['namespace_path'], row['_pk']));
  if (query === undefined) {
    const rows = await from(quote(type), [], ` ORDER BY valid_from DESC, _pk LIMIT ${most}`);
    return rows.filter(isShown).map((row) => ({ row, rel: 1 }));
  }
  const texts = textsOf(definition);
  const words = [...new Set(tokensOf(query))].slice(0, wordsMost);
  const byWords: VerbRow[] = [];
  if (texts.length > 0 && words.length > 0) {
    const { where, values } = conditionsOf(input, [words.join(' ')], [`MATCH(${texts.map(quote).join(', ')}, $1, STEMMED)`]);
    byWords.push(...(await ask(`SELECT *, _score FROM ${quote(type)}${where} ORDER BY _score DESC LIMIT ${most}`, values, time)));
  }
  const alike: VerbRow[] = [];
  if (vector !== null) {
    for (const column of vectorsOf(definition, vector)) {
      const source = `SIMILAR($1, COLUMN => ${quote(column)}, VECTOR => $2)`;
      alike.push(...(await from(source, [type, JSON.stringify(vector)], ` LIMIT ${most}`)));
    }
  }
  const meaning = vector === null ? null : meaningOf(definition, vector);
  const arms = meaning === null ? 1 : 2;
  const half = numberIn(byWords[Math.floor((Math.min(byWords.length, medianOf) - 1) / 2)]) || 1;
  const candidatesByKey = new Map<string, Candidate>();
  const take = (row: VerbRow, score: number): void => {
    const key = keyOf(row['namespace_path'], row['_pk']);
    if (candidatesByKey.has(key) || !isShown(row)) return;
    const rel = (score / (score + half) + (meaning?.(row) ?? 0)) / arms;
    if (rel > 0) candidatesByKey.set(key, { row, rel });
  };
  for (const row of byWords) take(row, numberIn(row));
  // A row that is not among the best by words gets no score for words.
  for (const row of alike) take(row, 0);
  return [...candidatesByKey.values()];
}

function conditionsOf(
  { session_id: session, class_filter: classes, min_confidence: floor }: CandidateRequest,
  first: readonly Literal[],
  begun: readonly string[] = [],
): { readonly where: string; readonly values: readonly Literal[] } {
  const values: Literal[] = [...first];
  const mark = (value: Literal): string => `$${values.push(value)}`;
  const conditions = [...begun];
  if (session !== undefined) conditions.push(`session_id = ${mark(session)}`);
  if (classes !== undefined) conditions.push(`memory_class IN (${[classes].flat().map(mark).join(', ')})`);
  if (floor !== undefined) conditions.push(`confidence >= ${mark(floor)}`);
  return { where: conditions.length === 0 ? '' : ` WHERE ${conditions.join(' AND ')}`, values };
}

/** `content` where the type has it, else all of its text columns. */
function textsOf(definition: TypeDefinition): readonly string[] {
  return definition.properties['content']?.type === 'string' ? ['content'] : wordColumns(definition);
}

function vectorsOf(definition: TypeDefinition, { length }: readonly number[]): readonly string[] {
  return vectorColumns(definition).filter((column) => definition.properties[column]!.dims === length);
}

/** How alike a row is to the query, from 0 to 1; null: nothing tells. */
function meaningOf(definition: TypeDefinition, vector: readonly number[]): ((row: VerbRow) => number) | null {
  const sought = Float64Array.from(vector);
  if (sought.every((component) => component === 0)) return null;
  const columns = vectorsOf(definition, vector);
  return (row) =>
    columns.reduce((highest, column) => {
      const cell = row[column];
      return cell instanceof Float32Array ? Math.max(highest, cosineOf(sought, Float64Array.from(cell))) : highest;
    }, 0);
}

function numberIn(row: VerbRow | undefined): number {
  const score = row?.['_score'];
  return typeof score === 'number' ? score : 0;
}

/** Rows of a type that were in quarantine at an instant, by path and key. */
export async function quarantinedKeys(ask: Ask, type: string, time: DefaultTime): Promise<ReadonlySet<string>> {
  const rows = await ask('SELECT item_id, namespace_path FROM Quarantine WHERE item_type = $1', [type], time);
  return new Set(rows.map((row) => keyOf(row['namespace_path'], row['item_id'])));
}

/** Only a row of the item's own path hides it: quarantine rows of other paths don't count. */
export function keyOf(path: unknown, key: unknown): string {
  return JSON.stringify([path, key]);
}
