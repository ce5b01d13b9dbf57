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

const replayColumns: readonly OutputColumn[] = [
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
  const exhibitDesk = invocation.exhibits();
  const exhibit = exhibitDesk.exhibit(String(literals[statement.arguments[0]!.slot]));
  const replayedLink = linkOfStatement(exhibit, request);
  const { basis, derivedSeal, reason } = await replayLink(exhibitDesk, exhibit, replayedLink, request);
  const signedHead = await exhibitDesk.head(replayedLink);
  invocation.describe({ rowCount: 1, costUnits: 1 });
  const replayRow = [
    exhibit.id,
    BigInt(replayedLink.link),
    basis,
    replayedLink.seal,
    derivedSeal,
    reason === null,
    reason,
    replayedLink.previousSeal,
    BigInt(replayedLink.leaf),
    BigInt(signedHead.size),
    Buffer.from(signedHead.root).toString('hex'),
  ];
  return smallAnswer(replayColumns, [replayRow], {
    asOfSystem: request.clock.now(),
    costUnits: 1,
    processingTimeMs: request.clock.monotonicMs() - request.startedMs,
  });
}

/** The link that SEQ names, else the last one. Link 0 opened the exhibit and has no answer. */
function linkOfStatement(exhibit: ExhibitView, { statement, literals, locationOf }: ControlRequest): ExhibitLink {
  let linkNumber = BigInt(exhibit.links.length - 1);
  for (const { name, value } of statement.options) {
    const seqLiteral = literals[value.slot];
    if (name !== 'SEQ') throw errorAt('REL_PARSE', `EXPLAIN_REPLAY has no option ${name}`, locationOf(value.slot));
    if (typeof seqLiteral !== 'bigint') throw errorAt('REL_INVALID', 'SEQ takes the number of a link', locationOf(value.slot));
    linkNumber = seqLiteral;
  }
  const exhibitLink =
    linkNumber >= 1n && linkNumber < BigInt(exhibit.links.length) ? exhibit.links[Number(linkNumber)] : undefined;
  if (exhibitLink === undefined) throw new ServiceError('REL_NOT_FOUND', 'the exhibit has no such link');
  return exhibitLink;
}

async function replayLink(
  exhibitDesk: ExhibitDesk,
  exhibit: ExhibitView,
  link: ExhibitLink,
  request: ControlRequest,
): Promise<Replayed> {
  const storedEntry = await readStoredLink(exhibitDesk, exhibit, link);
  if (storedEntry === null) return { basis: null, derivedSeal: null, reason: 'missing_segment' };
  const { recipe: recipeText, previousSeal } = storedEntry;
  if (recipeText === null) return { basis: null, derivedSeal: null, reason: 'erased_recipe' };
  const recipe = readRecipe(recipeText);
  const recipeBasis = recipe.grant.instant;
  const derivedAnswer = await deriveAgain(exhibitDesk, recipe, request);
  if (derivedAnswer.resultHash === null) return { basis: recipeBasis, derivedSeal: null, reason: derivedAnswer.reason };
  const { resultHash } = derivedAnswer;
  const derivedSeal = sealOf({
    exhibit: exhibit.id,
    link: link.link,
    previousSeal,
    recipeHash: textHash(recipeText),
    resultHash,
  });
  const followsPrevious = exhibit.links[link.link - 1]?.seal === previousSeal;
  return { basis: recipeBasis, derivedSeal, reason: derivedSeal === link.seal && followsPrevious ? null : derivedAnswer.reason };
}

/** The stored link; null when the log can't be read there. */
async function readStoredLink(
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
async function deriveAgain(
  exhibitDesk: ExhibitDesk,
  recipe: Recipe,
  { invocation, request, query, engine, yieldTurn }: ControlRequest,
): Promise<{ readonly resultHash: string | null; readonly reason: Mismatch }> {
  if (recipe.statement === null) return { resultHash: textHash(wordsResult(recipe.text ?? '')), reason: 'tampered' };
  const isOtherEngine = recipe.engine !== engine || recipe.dialect !== dialect;
  const recipeStatement = recipe.statement;
  let pinnedSnapshot: GovernedSnapshot;
  try {
    pinnedSnapshot = exhibitDesk.pin(recipe.grant);
  } catch (error) {
    // A branch that was deleted took what only it could read along.
    if (error instanceof ServiceError && error.code === 'REL_NOT_FOUND') return { resultHash: null, reason: 'missing_segment' };
    throw error;
  }
  exhibitDesk.checkReplay(typesOf(recipeStatement, pinnedSnapshot));
  try {
    // The replay is recorded by the outer invocation; facts of the recipe's own run are dropped.
    const pinnedReading = readingThrough(invocation, { snapshot: () => pinnedSnapshot, describe: () => undefined });
    const replayedAnswer = await query(pinnedReading, {
      sql: recipeStatement,
      ...(request.signal ? { signal: request.signal } : {}),
    });
    const hasErasedRows = exhibitDesk.rowsErasedSince(pinnedSnapshot, sourcesOf(recipeStatement, pinnedSnapshot.views));
    const mismatchReason = hasErasedRows ? 'erased_rows' : isOtherEngine ? 'engine_version_changed' : 'tampered';
    return { resultHash: await resultDigest(replayedAnswer, yieldTurn), reason: mismatchReason };
  } catch (error) {
    // A statement that another engine version can't run is not evidence of tampering. Limits and deadlines prove nothing either.
    if (isOtherEngine && error instanceof ServiceError && error.kind === 'invalid')
      return { resultHash: null, reason: 'engine_version_changed' };
    throw error;
  }
}
