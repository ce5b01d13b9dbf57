/**
 * EXPLAIN_REPLAY: runs the recipe of a link again, from the log, as of its basis and under its scope, and compares seals.
 * The stored result is never read: `entry` of the desk does not even give it.
 */
import { ServiceError } from '../../errors.ts';
import type { ExhibitDesk, GovernedSnapshot } from '../../governance/gate-contract.ts';
import type { ExhibitLink, ExhibitView } from '../../projections/access-paths.ts';
import { sealOf, textHash } from '../../projections/exhibits/link-seal.ts';
import { smallAnswer } from '../execution/small-answer.ts';
import type { ControlRequest } from './control-request.ts';
import { errorAt } from '../syntax/error-location.ts';
import type { Answer, OutputColumn } from '../planner-contract.ts';
import { sourcesOf, typesOf } from '../exhibits/derivable.ts';
import { readingThrough } from '../exhibits/pinned-invocation.ts';
import { dialect, type Recipe, readRecipe, wordsResult } from '../exhibits/recipe.ts';
import { resultDigest } from '../exhibits/result-digest.ts';

/** Why a link was not derived again; null when it was. */
export type Mismatch = 'tampered' | 'engine_version_changed' | 'erased_recipe' | 'erased_rows' | 'missing_segment';

export interface Replayed {
  readonly basis: bigint | null;
  readonly derivedSeal: string | null;
  readonly reason: Mismatch | null;
}

const columns: readonly OutputColumn[] = [
  { name: 'exhibit_id', type: 'string' },
  { name: 'seq', type: 'integer' },
  { name: 'basis', type: 'timestamp' },
  { name: 'stored_seal', type: 'string' },
  { name: 'derived_seal', type: 'string' },
  { name: 'match', type: 'boolean' },
  { name: 'reason', type: 'string' },
  { name: 'prev_seal', type: 'string' },
  { name: 'leaf_index', type: 'integer' },
  { name: 'tree_size', type: 'integer' },
  { name: 'root_hash', type: 'string' },
];

export async function explainReplay(request: ControlRequest): Promise<Answer> {
  const { statement, literals, invocation } = request;
  invocation.describe({ action: 'replay' });
  const desk = invocation.exhibits();
  const exhibit = desk.exhibit(String(literals[statement.arguments[0]!.slot]));
  const link = linkNamed(exhibit, request);
  const { basis, derivedSeal, reason } = await replay(desk, exhibit, link, request);
  const head = await desk.head(link);
  invocation.describe({ rowCount: 1, costUnits: 1 });
  const row = [
    exhibit.id,
    BigInt(link.link),
    basis,
    link.seal,
    derivedSeal,
    reason === null,
    reason,
    link.previousSeal,
    BigInt(link.leaf),
    BigInt(head.size),
    Buffer.from(head.root).toString('hex'),
  ];
  return smallAnswer(columns, [row], {
    asOfSystem: request.clock.now(),
    costUnits: 1,
    processingTimeMs: request.clock.monotonicMs() - request.startedMs,
  });
}

/** The link that SEQ names, else the last one. Link 0 opened the exhibit and has no answer. */
function linkNamed(exhibit: ExhibitView, { statement, literals, locationOf }: ControlRequest): ExhibitLink {
  let seq = BigInt(exhibit.links.length - 1);
  for (const { name, value } of statement.options) {
    const given = literals[value.slot];
    if (name !== 'SEQ') throw errorAt('REL_PARSE', `EXPLAIN_REPLAY has no option ${name}`, locationOf(value.slot));
    if (typeof given !== 'bigint') throw errorAt('REL_INVALID', 'SEQ takes the number of a link', locationOf(value.slot));
    seq = given;
  }
  const link = seq >= 1n && seq < BigInt(exhibit.links.length) ? exhibit.links[Number(seq)] : undefined;
  if (link === undefined) throw new ServiceError('REL_NOT_FOUND', 'the exhibit has no such link');
  return link;
}

async function replay(desk: ExhibitDesk, exhibit: ExhibitView, link: ExhibitLink, request: ControlRequest): Promise<Replayed> {
  const stored = await storedLink(desk, exhibit, link);
  if (stored === null) return { basis: null, derivedSeal: null, reason: 'missing_segment' };
  const { recipe: text, previousSeal } = stored;
  if (text === null) return { basis: null, derivedSeal: null, reason: 'erased_recipe' };
  const recipe = readRecipe(text);
  const basis = recipe.grant.instant;
  const derived = await derive(desk, recipe, request);
  if (derived.resultHash === null) return { basis, derivedSeal: null, reason: derived.reason };
  const { resultHash } = derived;
  const derivedSeal = sealOf({
    exhibit: exhibit.id,
    link: link.link,
    previousSeal,
    recipeHash: textHash(text),
    resultHash,
  });
  const follows = exhibit.links[link.link - 1]?.seal === previousSeal;
  return { basis, derivedSeal, reason: derivedSeal === link.seal && follows ? null : derived.reason };
}

/** The stored link; null when the log can't be read there. */
async function storedLink(
  desk: ExhibitDesk,
  exhibit: ExhibitView,
  link: ExhibitLink,
): Promise<Awaited<ReturnType<ExhibitDesk['entry']>> | null> {
  try {
    return await desk.entry(exhibit, link);
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'REL_STORAGE') return null;
    throw error;
  }
}

/** Derives the recipe's result again, with the reason to report where the hash differs. */
async function derive(
  desk: ExhibitDesk,
  recipe: Recipe,
  { invocation, request, query, engine, yieldTurn }: ControlRequest,
): Promise<{ readonly resultHash: string | null; readonly reason: Mismatch }> {
  if (recipe.statement === null) return { resultHash: textHash(wordsResult(recipe.text ?? '')), reason: 'tampered' };
  const otherEngine = recipe.engine !== engine || recipe.dialect !== dialect;
  const sql = recipe.statement;
  let snapshot: GovernedSnapshot;
  try {
    snapshot = desk.pin(recipe.grant);
  } catch (error) {
    // A branch that was deleted took what only it could read along.
    if (error instanceof ServiceError && error.code === 'REL_NOT_FOUND') return { resultHash: null, reason: 'missing_segment' };
    throw error;
  }
  desk.checkReplay(typesOf(sql, snapshot));
  try {
    // The replay is recorded by the outer invocation; facts of the recipe's own run are dropped.
    const reading = readingThrough(invocation, { snapshot: () => snapshot, describe: () => undefined });
    const answer = await query(reading, { sql, ...(request.signal ? { signal: request.signal } : {}) });
    const erased = desk.rowsErasedSince(snapshot, sourcesOf(sql, snapshot.views));
    const reason = erased ? 'erased_rows' : otherEngine ? 'engine_version_changed' : 'tampered';
    return { resultHash: await resultDigest(answer, yieldTurn), reason };
  } catch (error) {
    // A statement that another engine version can't run is not evidence of tampering. Limits and deadlines prove nothing either.
    if (otherEngine && error instanceof ServiceError && error.kind === 'invalid')
      return { resultHash: null, reason: 'engine_version_changed' };
    throw error;
  }
}
