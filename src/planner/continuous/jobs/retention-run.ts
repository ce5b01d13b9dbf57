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
const writtenMax = 1_000;
const dayNs = 86_400_000_000_000n;

interface DueRow {
  readonly path: string | null;
  readonly key: string;
}

export function performRetention(dependencies: RetentionDependencies): PerformAlone {
  return async (job, { caller, run, signal, progress }) => {
    const retention = job.definition.run.retention!;
    const request = { purpose: job.definition.purpose, correlationId: run.id, gone: signal };
    const counts = { ended: 0, held: 0, refused: 0 };
    let after: DueRow | null = null;
    for (;;) {
      const due = await findDue(dependencies, retention, { caller, request, basis: BigInt(run.basis), after });
      for (const [path, keys] of byPath(due.filter((row) => sees(caller.path, row.path)))) {
        for (let first = 0; first < keys.length; first += writtenMax) {
          signal.throwIfAborted();
          await endRows(dependencies, retention, { ...caller, path }, request, keys.slice(first, first + writtenMax), counts);
          progress(counts.ended, null);
        }
      }
      if (due.length < dependencies.foundMax) break;
      after = due.at(-1)!;
    }
    return { ...counts };
  };
}

interface Search {
  readonly caller: Caller;
  readonly request: Omit<InvocationRequest, 'action'>;
  readonly basis: bigint;
  readonly after: DueRow | null;
}

/** In the order of their keys and paths. */
async function findDue(
  { gate, planner, foundMax }: RetentionDependencies,
  retention: TypeRetention,
  search: Search,
): Promise<DueRow[]> {
  const { type, days, by, action } = retention;
  const { caller, request, basis, after } = search;
  const parameters: Literal[] = [basis - BigInt(days) * dayNs];
  const mark = (value: Literal): string => `$${parameters.push(value)}`;
  // A row that has ended can't be ended again.
  const still = action === 'delete' ? ` AND MAX(valid_to) > ${mark(basis)}` : '';
  const key = after === null ? '' : mark(after.key);
  const further =
    after === null ? '' : `WHERE _pk > ${key} OR (_pk = ${key} AND COALESCE(namespace_path, '') > ${mark(after.path ?? '')})`;
  const sql = `SELECT _pk, COALESCE(namespace_path, '') AS path FROM ${quoteName(type)} ${further}
    GROUP BY _pk, COALESCE(namespace_path, '') HAVING MAX(${by}) <= $1${still} ORDER BY _pk, path LIMIT ${foundMax}`;
  return gate.invoke(caller, { ...request, action: 'query' }, async (invocation) => {
    const time = { system: 'now' } as const;
    const answer = await planner.query(invocation, {
      sql,
      parameters,
      time,
      dialect: 'wide',
      queriesOnly: true,
      signal: request.gone,
    });
    const rows: DueRow[] = [];
    for (const { columns, selection, first, count } of answer.batches) {
      for (let i = 0; i < count; i++) {
        const at = selection === null ? first + i : selection[i]!;
        const [key, path] = [cellAt(columns[0]!, 'string', at) as string, cellAt(columns[1]!, 'string', at) as string];
        rows.push({ key, path: path === '' ? null : path });
      }
    }
    return rows;
  });
}

async function endRows(
  { gate }: RetentionDependencies,
  { type, action: what }: TypeRetention,
  caller: Caller,
  request: Omit<InvocationRequest, 'action'>,
  keys: readonly string[],
  counts: { ended: number; held: number; refused: number },
): Promise<void> {
  const action = what === 'purge' ? 'remove' : 'delete';
  await gate.invoke(caller, { ...request, action }, async (invocation) => {
    invocation.describe({ objectType: type });
    const held = new Set(invocation.heldRows(type, action).flatMap(({ path, key }) => (path === caller.path ? [key] : [])));
    const free = keys.filter((key) => !held.has(key));
    counts.held += keys.length - free.length;
    if (free.length === 0) return;
    const kind = what === 'purge' ? 'remove-rows' : 'delete-rows';
    const { accepted } = await invocation.submit({ kind, type, keys: free }, { waits: true });
    invocation.describe({ rowCount: accepted });
    counts.ended += accepted;
    counts.refused += free.length - accepted;
  });
}

function byPath(rows: readonly DueRow[]): ReadonlyMap<string | null, readonly string[]> {
  const paths = new Map<string | null, string[]>();
  for (const { path, key } of rows) {
    const keys = paths.get(path);
    if (keys === undefined) paths.set(path, [key]);
    else keys.push(key);
  }
  return paths;
}
