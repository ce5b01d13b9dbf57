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
  const [left, right] = [a, b].map((row) => judgedRow(row, catalog, rows, context, next)) as [JudgedRow, JudgedRow];
  const { path } = context.entry;
  const before = judgements.findLast((each) => isWithin(path, each.owner) && isOfPair(each, a, b));
  const id = `${a.key} ${b.key}`;
  if (before?.judgement === judgement) return decideOne('judge-identities', id, [], next);
  if (before?.judgement === 'negative') throw conflictWith(before);
  const body = judgementBody({ a: left, b: right, judgement, reason });
  return decideOne('judge-identities', id, [{ context: context.entry, body }], next);
}

function isOfPair({ a, b }: Judgement, x: RowName, y: RowName): boolean {
  return (isSame(a, x) && isSame(b, y)) || (isSame(a, y) && isSame(b, x));
}

type RowName = Pick<JudgedRow, 'type' | 'key'>;

function isSame(row: RowName, { type, key }: RowName): boolean {
  return row.type === type && row.key === key;
}

/** Rows of the key in the caller's path and below that it may write: none is REL_NOT_FOUND, or REL_ACL where there are others. */
function judgedRow(
  { type, key }: RowName,
  catalog: CatalogReader,
  rows: TenantRows,
  { entry, rowCheck }: DecideContext,
  at: NextPosition,
): JudgedRow {
  const definition = catalog.type(type);
  const versions = definition && rows.versions(type);
  const test = definition ? (rowCheck?.testFor(definition) ?? null) : null;
  const positions: number[] = [];
  let isRefused = false;
  for (let code = 0; versions && code < rows.scopes.size; code++) {
    const path = rows.scopes.path(code);
    if (!isWithin(entry.path, path)) continue;
    const newest = versions.newestOf(code, key);
    if (newest < 0) continue;
    if (test !== null && refusedKeys(test, type, [key], { path, rows, at }, 'open').size > 0) isRefused = true;
    else positions.push(versions.positionOf(newest));
  }
  if (positions.length > 0) return { type, key, positions: positions.sort((x, y) => x - y) };
  if (isRefused) throw new ServiceError('REL_ACL', notPermitted);
  throw new ServiceError('REL_NOT_FOUND', `no row ${JSON.stringify(key)} of ${JSON.stringify(type)} that you may write`);
}

function isWithin(path: string | null, inner: string | null): boolean {
  return path === null || inner === null ? path === inner : covers(path, inner);
}
