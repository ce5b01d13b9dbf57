/** FUSE_IDENTITIES and SPLIT_IDENTITIES to entries. Pure. */
import { ServiceError } from '../../errors.ts';
import type { NextPosition } from '../../log/log-store.ts';
import { checkText } from '../../log/values/value.ts';
import type { CatalogReader, Judgement } from '../access-paths.ts';
import type { JudgeIdentities } from '../command.ts';
import { type DecideContext, type Decision, decideOne } from '../decision.ts';
import { notPermitted, refusedKeys } from '../rows/checks/row-check.ts';
import type { TenantRows } from '../rows/tables/tenant-rows.ts';
import { covers } from '../tenants/tenant-drafts.ts';
import { type JudgedRow, judgementBody } from './judgement-body.ts';
import { conflictWith } from './judgement-conflict.ts';

const reasonLettersMax = 4_096;

/**
 * `judgements` are those of the branch. Writes nothing where the pair was judged so already; REL_CONFLICT where it is to be one thing
 * and was judged to be two.
 */
export function decideJudge(
  { a, b, judgement, reason }: JudgeIdentities,
  judgements: readonly Judgement[],
  catalog: CatalogReader,
  rows: TenantRows,
  context: DecideContext,
  next: NextPosition,
): Decision {
  if (reason !== null) checkText(reason, 'the reason');
  if (reason !== null && reason.length > reasonLettersMax)
    throw new ServiceError('REL_INVALID', `the reason has at most ${reasonLettersMax} characters`);
  if (a.type === b.type && a.key === b.key) throw new ServiceError('REL_INVALID', 'both identities are one row');
  const [judgedA, judgedB] = [a, b].map((row) => judgedRowOf(row, catalog, rows, context, next)) as [JudgedRow, JudgedRow];
  const { path } = context.entry;
  const earlierJudgement = judgements.findLast(
    (knownJudgement) => isPathWithin(path, knownJudgement.owner) && isJudgementOfPair(knownJudgement, a, b),
  );
  const judgedPair = `${a.key} ${b.key}`;
  if (earlierJudgement?.judgement === judgement) return decideOne('judge-identities', judgedPair, [], next);
  if (earlierJudgement?.judgement === 'negative') throw conflictWith(earlierJudgement);
  const body = judgementBody({ a: judgedA, b: judgedB, judgement, reason });
  return decideOne('judge-identities', judgedPair, [{ context: context.entry, body }], next);
}

function isJudgementOfPair({ a, b }: Judgement, firstRow: JudgedRowName, secondRow: JudgedRowName): boolean {
  return (
    (isSameJudgedRow(a, firstRow) && isSameJudgedRow(b, secondRow)) ||
    (isSameJudgedRow(a, secondRow) && isSameJudgedRow(b, firstRow))
  );
}

type JudgedRowName = Pick<JudgedRow, 'type' | 'key'>;

function isSameJudgedRow(judgedName: JudgedRowName, { type, key }: JudgedRowName): boolean {
  return judgedName.type === type && judgedName.key === key;
}

/** Rows of the key in the caller's path and below that it may write: none is REL_NOT_FOUND, or REL_ACL where there are others. */
function judgedRowOf(
  { type, key }: JudgedRowName,
  catalog: CatalogReader,
  rows: TenantRows,
  { entry, rowCheck }: DecideContext,
  at: NextPosition,
): JudgedRow {
  const judgedType = catalog.type(type);
  const judgedVersions = judgedType && rows.versions(type);
  const judgedRowTest = judgedType ? (rowCheck?.testFor(judgedType) ?? null) : null;
  const judgedPositions: number[] = [];
  let isJudgingRefused = false;
  for (let pathCode = 0; judgedVersions && pathCode < rows.scopes.size; pathCode++) {
    const path = rows.scopes.path(pathCode);
    if (!isPathWithin(entry.path, path)) continue;
    const newestJudged = judgedVersions.newestOf(pathCode, key);
    if (newestJudged < 0) continue;
    if (judgedRowTest !== null && refusedKeys(judgedRowTest, type, [key], { path, rows, at }, 'open').size > 0)
      isJudgingRefused = true;
    else judgedPositions.push(judgedVersions.positionOf(newestJudged));
  }
  if (judgedPositions.length > 0) return { type, key, positions: judgedPositions.sort((x, y) => x - y) };
  if (isJudgingRefused) throw new ServiceError('REL_ACL', notPermitted);
  throw new ServiceError('REL_NOT_FOUND', `no row ${JSON.stringify(key)} of ${JSON.stringify(type)} that you may write`);
}

function isPathWithin(outerPath: string | null, innerPath: string | null): boolean {
  return outerPath === null || innerPath === null ? outerPath === innerPath : covers(outerPath, innerPath);
}
