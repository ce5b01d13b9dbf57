/**
 * FUSE_IDENTITIES(a, b[, REASON]) and SPLIT_IDENTITIES(a, b[, REASON]): a judgement, by somebody who may write both rows. Source:
 * specification, "SQL dialect", the table of operators.
 */
import type { GovernedSnapshot } from '../../governance/gate-contract.ts';
import type { TimeBounds } from '../../projections/access-paths.ts';
import { conflictWith } from '../../projections/entity-resolution/judgement-conflict.ts';
import { errorAt } from '../syntax/error-location.ts';
import { Clusters, newestOfPairs, rowId } from '../identity/judged-clusters.ts';
import { hasRow, type NamedRow, rowsNamed } from '../identity/named-rows.ts';
import type { Answer, OutputColumn } from '../planner-contract.ts';
import { smallAnswer } from '../execution/small-answer.ts';
import type { Slot } from '../syntax/statement.ts';
import type { ControlRequest } from './control-request.ts';

export function fuseIdentities(request: ControlRequest): Promise<Answer> {
  return judgeIdentities(request, 'positive');
}

export function splitIdentities(request: ControlRequest): Promise<Answer> {
  return judgeIdentities(request, 'negative');
}

const judgementColumns: readonly OutputColumn[] = [
  { name: 'a', type: 'string' },
  { name: 'a_type', type: 'string' },
  { name: 'b', type: 'string' },
  { name: 'b_type', type: 'string' },
  { name: 'judgement', type: 'string' },
  { name: 'changed', type: 'boolean' },
];

async function judgeIdentities(request: ControlRequest, judgement: 'positive' | 'negative'): Promise<Answer> {
  const { statement, invocation, clock, startedMs } = request;
  // The rows are found by the right to read them, and judged by the right to write them.
  invocation.describe({ action: 'query', act: { action: 'ingest' } });
  const snapshot = invocation.snapshot();
  const judgedTime = { system: snapshot.instant, valid: snapshot.instant };
  const [a, b] = statement.arguments.slice(0, 2).map((slot) => judgedRow(request, snapshot, slot, judgedTime)) as [
    NamedRow,
    NamedRow,
  ];
  if (judgement === 'positive') refuseVetoed(snapshot, a, b, judgedTime);
  invocation.describe({ action: 'ingest' });
  const { changed } = await invocation.submit({ kind: 'judge-identities', a, b, judgement, reason: judgementReason(request) });
  invocation.describe({ costUnits: 1 });
  return smallAnswer(judgementColumns, [[a.key, a.type, b.key, b.type, judgement, changed]], {
    asOfSystem: snapshot.instant,
    costUnits: 1,
    processingTimeMs: clock.monotonicMs() - startedMs,
  });
}

function judgedRow(request: ControlRequest, snapshot: GovernedSnapshot, slot: Slot, time: TimeBounds): NamedRow {
  const keyText = quotedTextOf(request, slot);
  const rowsOfKey = rowsNamed(snapshot, keyText, time);
  if (rowsOfKey.length === 1) return rowsOfKey[0]!;
  if (rowsOfKey.length === 0) throw errorAt('REL_NOT_FOUND', `no row has the key ${JSON.stringify(keyText)}`, slot.location);
  const typesOfKey = rowsOfKey.map(({ type }) => type);
  const detail = `rows of ${typesOfKey.join(' and ')} have the key ${JSON.stringify(keyText)}: say which, as in '${typesOfKey[0]}:${keyText}'`;
  throw errorAt('REL_INVALID', detail, slot.location);
}

function judgementReason(request: ControlRequest): string | null {
  const { options, arguments: judgedArguments } = request.statement;
  let [, , reason] = judgedArguments;
  for (const { name, value } of options) {
    if (name !== 'REASON') throw errorAt('REL_INVALID', `there is no argument ${name}`, value.location);
    if (reason !== undefined) throw errorAt('REL_INVALID', 'REASON is given twice', value.location);
    reason = value;
  }
  return reason === undefined ? null : quotedTextOf(request, reason);
}

function quotedTextOf({ literals }: ControlRequest, { slot, location }: Slot): string {
  const literalText = literals[slot];
  if (typeof literalText !== 'string') throw errorAt('REL_INVALID', 'a text in quotes is expected here', location);
  return literalText;
}

/** Throws REL_CONFLICT with the judgement that keeps some row of one side apart from some row of the other. */
function refuseVetoed(snapshot: GovernedSnapshot, a: NamedRow, b: NamedRow, time: TimeBounds): void {
  const judgements = snapshot.judgements(snapshot.instant);
  if (judgements.length === 0) return;
  const visibleRows = new Map<string, boolean>();
  const isVisible = (row: NamedRow): boolean => {
    const judgedRowId = rowId(row);
    let isKnownVisible = visibleRows.get(judgedRowId);
    if (isKnownVisible === undefined) visibleRows.set(judgedRowId, (isKnownVisible = hasRow(snapshot, row, time)));
    return isKnownVisible;
  };
  const judgedClusters = new Clusters(newestOfPairs(judgements).filter((each) => isVisible(each.a) && isVisible(each.b)));
  const conflictingVeto = judgedClusters.join(rowId(a), rowId(b));
  if (conflictingVeto !== null) throw conflictWith(conflictingVeto);
}
