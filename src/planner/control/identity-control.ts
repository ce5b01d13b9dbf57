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
  return judge(request, 'positive');
}

export function splitIdentities(request: ControlRequest): Promise<Answer> {
  return judge(request, 'negative');
}

const columns: readonly OutputColumn[] = [
  { name: 'a', type: 'string' },
  { name: 'a_type', type: 'string' },
  { name: 'b', type: 'string' },
  { name: 'b_type', type: 'string' },
  { name: 'judgement', type: 'string' },
  { name: 'changed', type: 'boolean' },
];

async function judge(request: ControlRequest, judgement: 'positive' | 'negative'): Promise<Answer> {
  const { statement, invocation, clock, startedMs } = request;
  // The rows are found by the right to read them, and judged by the right to write them.
  invocation.describe({ action: 'query', act: { action: 'ingest' } });
  const snapshot = invocation.snapshot();
  const time = { system: snapshot.instant, valid: snapshot.instant };
  const [a, b] = statement.arguments.slice(0, 2).map((slot) => namedRow(request, snapshot, slot, time)) as [NamedRow, NamedRow];
  if (judgement === 'positive') refuseVetoed(snapshot, a, b, time);
  invocation.describe({ action: 'ingest' });
  const { changed } = await invocation.submit({ kind: 'judge-identities', a, b, judgement, reason: reasonOf(request) });
  invocation.describe({ costUnits: 1 });
  return smallAnswer(columns, [[a.key, a.type, b.key, b.type, judgement, changed]], {
    asOfSystem: snapshot.instant,
    costUnits: 1,
    processingTimeMs: clock.monotonicMs() - startedMs,
  });
}

function namedRow(request: ControlRequest, snapshot: GovernedSnapshot, slot: Slot, time: TimeBounds): NamedRow {
  const name = textOf(request, slot);
  const rows = rowsNamed(snapshot, name, time);
  if (rows.length === 1) return rows[0]!;
  if (rows.length === 0) throw errorAt('REL_NOT_FOUND', `no row has the key ${JSON.stringify(name)}`, slot.location);
  const types = rows.map(({ type }) => type);
  const detail = `rows of ${types.join(' and ')} have the key ${JSON.stringify(name)}: say which, as in '${types[0]}:${name}'`;
  throw errorAt('REL_INVALID', detail, slot.location);
}

function reasonOf(request: ControlRequest): string | null {
  const { options, arguments: given } = request.statement;
  let [, , reason] = given;
  for (const { name, value } of options) {
    if (name !== 'REASON') throw errorAt('REL_INVALID', `there is no argument ${name}`, value.location);
    if (reason !== undefined) throw errorAt('REL_INVALID', 'REASON is given twice', value.location);
    reason = value;
  }
  return reason === undefined ? null : textOf(request, reason);
}

function textOf({ literals }: ControlRequest, { slot, location }: Slot): string {
  const value = literals[slot];
  if (typeof value !== 'string') throw errorAt('REL_INVALID', 'a text in quotes is expected here', location);
  return value;
}

/** Throws REL_CONFLICT with the judgement that keeps some row of one side apart from some row of the other. */
function refuseVetoed(snapshot: GovernedSnapshot, a: NamedRow, b: NamedRow, time: TimeBounds): void {
  const judgements = snapshot.judgements(snapshot.instant);
  if (judgements.length === 0) return;
  const seen = new Map<string, boolean>();
  const sees = (row: NamedRow): boolean => {
    const id = rowId(row);
    let known = seen.get(id);
    if (known === undefined) seen.set(id, (known = hasRow(snapshot, row, time)));
    return known;
  };
  const clusters = new Clusters(newestOfPairs(judgements).filter((each) => sees(each.a) && sees(each.b)));
  const veto = clusters.join(rowId(a), rowId(b));
  if (veto !== null) throw conflictWith(veto);
}
