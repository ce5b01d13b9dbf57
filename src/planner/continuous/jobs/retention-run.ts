/**
 * Retention of a type: rows whose time is over are ended, or removed for good, by the grants that whoever set it has now. A row under legal
 * hold stays. Each piece is a request of its own, at the path of its rows, and on record as one; a run that is cut off is begun again and
 * finds fewer rows.
 */
import { type Caller, sees } from '../../../governance/caller.ts';
import type { GateContract, InvocationRequest } from '../../../governance/gate-contract.ts';
import type { PerformAlone } from '../../../governance/jobs/job-scheduler.ts';
import { cellAt } from '../../../log/values/vector-builder.ts';
import type { TypeRetention } from '../../../projections/jobs/job.ts';
import type { PlannerContract } from '../../planner-contract.ts';
import type { Literal } from '../../syntax/statement.ts';
import { quoteName } from '../rules/rule-condition.ts';

export interface RetentionDependencies {
  readonly gate: Pick<GateContract, 'invoke'>;
  readonly planner: PlannerContract;
  /** Rows that one question finds, at most. */
  readonly foundMax: number;
}

/** Rows that one write takes. */
const endedKeysMax = 1_000;
const dayNs = 86_400_000_000_000n;

interface DueRow {
  readonly path: string | null;
  readonly key: string;
}

export function performRetention(dependencies: RetentionDependencies): PerformAlone {
  return async (job, { caller, run, signal, progress }) => {
    const retention = job.definition.run.retention!;
    const retentionRequest = { purpose: job.definition.purpose, correlationId: run.id, gone: signal };
    const retentionCounts = { ended: 0, held: 0, refused: 0 };
    let lastDueRow: DueRow | null = null;
    for (;;) {
      const dueRows = await findDueRows(dependencies, retention, {
        caller,
        request: retentionRequest,
        basis: BigInt(run.basis),
        after: lastDueRow,
      });
      for (const [path, dueKeys] of dueKeysByPath(dueRows.filter((row) => sees(caller.path, row.path)))) {
        for (let firstKey = 0; firstKey < dueKeys.length; firstKey += endedKeysMax) {
          signal.throwIfAborted();
          await endRetainedRows(
            dependencies,
            retention,
            { ...caller, path },
            retentionRequest,
            dueKeys.slice(firstKey, firstKey + endedKeysMax),
            retentionCounts,
          );
          progress(retentionCounts.ended, null);
        }
      }
      if (dueRows.length < dependencies.foundMax) break;
      lastDueRow = dueRows.at(-1)!;
    }
    return { ...retentionCounts };
  };
}

interface DueSearch {
  readonly caller: Caller;
  readonly request: Omit<InvocationRequest, 'action'>;
  readonly basis: bigint;
  readonly after: DueRow | null;
}

/** In the order of their keys and paths. */
async function findDueRows(
  { gate, planner, foundMax }: RetentionDependencies,
  retention: TypeRetention,
  dueSearch: DueSearch,
): Promise<DueRow[]> {
  const { type, days, by, action } = retention;
  const { caller, request, basis, after } = dueSearch;
  const dueParameters: Literal[] = [basis - BigInt(days) * dayNs];
  const addParameter = (value: Literal): string => `$${dueParameters.push(value)}`;
  // A row that has ended can't be ended again.
  const stillValidClause = action === 'delete' ? ` AND MAX(valid_to) > ${addParameter(basis)}` : '';
  const lastDueKey = after === null ? '' : addParameter(after.key);
  const afterLastDue =
    after === null
      ? ''
      : `WHERE _pk > ${lastDueKey} OR (_pk = ${lastDueKey} AND COALESCE(namespace_path, '') > ${addParameter(after.path ?? '')})`;
  const sql = `SELECT _pk, COALESCE(namespace_path, '') AS path FROM ${quoteName(type)} ${afterLastDue}
    GROUP BY _pk, COALESCE(namespace_path, '') HAVING MAX(${by}) <= $1${stillValidClause} ORDER BY _pk, path LIMIT ${foundMax}`;
  return gate.invoke(caller, { ...request, action: 'query' }, async (invocation) => {
    const retentionTime = { system: 'now' } as const;
    const dueAnswer = await planner.query(invocation, {
      sql,
      parameters: dueParameters,
      time: retentionTime,
      dialect: 'wide',
      queriesOnly: true,
      signal: request.gone,
    });
    const dueRowsFound: DueRow[] = [];
    for (const { columns, selection, first, count } of dueAnswer.batches) {
      for (let i = 0; i < count; i++) {
        const dueRowId = selection === null ? first + i : selection[i]!;
        const [key, path] = [
          cellAt(columns[0]!, 'string', dueRowId) as string,
          cellAt(columns[1]!, 'string', dueRowId) as string,
        ];
        dueRowsFound.push({ key, path: path === '' ? null : path });
      }
    }
    return dueRowsFound;
  });
}

async function endRetainedRows(
  { gate }: RetentionDependencies,
  { type, action: retentionAction }: TypeRetention,
  caller: Caller,
  request: Omit<InvocationRequest, 'action'>,
  keys: readonly string[],
  counts: { ended: number; held: number; refused: number },
): Promise<void> {
  const action = retentionAction === 'purge' ? 'remove' : 'delete';
  await gate.invoke(caller, { ...request, action }, async (invocation) => {
    invocation.describe({ objectType: type });
    const heldKeys = new Set(invocation.heldRows(type, action).flatMap(({ path, key }) => (path === caller.path ? [key] : [])));
    const unheldKeys = keys.filter((key) => !heldKeys.has(key));
    counts.held += keys.length - unheldKeys.length;
    if (unheldKeys.length === 0) return;
    const kind = retentionAction === 'purge' ? 'remove-rows' : 'delete-rows';
    const { accepted: endedRowCount } = await invocation.submit({ kind, type, keys: unheldKeys }, { waits: true });
    invocation.describe({ rowCount: endedRowCount });
    counts.ended += endedRowCount;
    counts.refused += unheldKeys.length - endedRowCount;
  });
}

function dueKeysByPath(dueRows: readonly DueRow[]): ReadonlyMap<string | null, readonly string[]> {
  const keysByPath = new Map<string | null, string[]>();
  for (const { path, key } of dueRows) {
    const pathKeys = keysByPath.get(path);
    if (pathKeys === undefined) keysByPath.set(path, [key]);
    else pathKeys.push(key);
  }
  return keysByPath;
}
