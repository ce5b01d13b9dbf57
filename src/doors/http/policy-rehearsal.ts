/**
 * Rehearses a change of policies: answers statements for principals under the installed policies and under the proposed ones, and
 * compares the answers row by row. Also lists the recorded reads that it would decide differently. Nothing is installed.
 *
 * A row is known by the columns that show its type's key, and by its instants where they are shown; rows of an answer without such
 * columns by all their cells.
 */
import { ServiceError } from '../../errors.ts';
import type { AuditEntry, AuditReader } from '../../projections/access-paths.ts';
import type { Caller } from '../../governance/caller.ts';
import type {
  GateContract,
  GovernedSnapshot,
  InvocationRequest,
  PolicyExplanation,
  TokenView,
} from '../../governance/gate-contract.ts';
import { writeNdjson } from '../../planner/formats/json-rows.ts';
import type { Answer, OutputColumn } from '../../planner/planner-contract.ts';
import { parseExactJson } from '../shared/read-exact-json.ts';
import type { HttpContext } from './context.ts';

/** Rows that are compared of one answer. */
export const rowsCompared = 10_000;
/** Rows that are named in each list. */
const rowsNamed = 100;
/** Recorded reads that are looked at. */
const readsSeen = 1_000;
const hourNs = 3_600_000_000_000n;

type Asking = Pick<GateContract, 'invoke'>;

export interface Rehearsing {
  readonly context: HttpContext;
  readonly asItWouldBe: Asking;
  readonly correlationId: string;
  /** Id of the policy that is rehearsed. */
  readonly policy: string;
}

export interface Difference {
  readonly principal: string;
  readonly statement: string;
  /** Rows, or what refuses the statement. */
  readonly before: number | string;
  readonly after: number | string;
  readonly appear: readonly string[];
  readonly vanish: readonly string[];
  readonly changed: readonly { readonly row: string; readonly columns: readonly string[] }[];
  /** How many there are, named or not. */
  readonly counts: { readonly appear: number; readonly vanish: number; readonly changed: number };
  /** More rows than are compared. */
  readonly cut: boolean;
}

/** The caller that a token is, as if it asked through this door. Throws REL_ACL for one that is not in force. */
export function callerOf({ authenticator }: HttpContext, token: TokenView): Caller {
  const { principal, organization, id } = token;
  const owner = { principal, credential: 'token', token: id, path: organization ?? token.tenant, branch: 'main' } as const;
  return { ...authenticator.absentCaller(owner), door: 'http' };
}

export async function compareAnswers(rehearsing: Rehearsing, caller: Caller, sql: string): Promise<Difference> {
  const now = await answerOf(rehearsing, rehearsing.context.gate, caller, sql);
  const then = await answerOf(rehearsing, rehearsing.asItWouldBe, caller, sql);
  const keyColumns = keyOf(now, then);
  const before = rowsBy(now, keyColumns);
  const after = rowsBy(then, keyColumns);
  const appear = [...after.keys()].filter((row) => !before.has(row));
  const vanish = [...before.keys()].filter((row) => !after.has(row));
  const changed = [...before].flatMap(([row, cells]) => {
    const others = after.get(row);
    const columns = others === undefined ? [] : Object.keys(cells).filter((name) => !isSame(cells[name], others[name]));
    return columns.length === 0 ? [] : [{ row, columns }];
  });
  return {
    principal: caller.principal,
    statement: sql,
    before: now.refusal ?? now.rows.length,
    after: then.refusal ?? then.rows.length,
    appear: appear.slice(0, rowsNamed),
    vanish: vanish.slice(0, rowsNamed),
    changed: changed.slice(0, rowsNamed),
    counts: { appear: appear.length, vanish: vanish.length, changed: changed.length },
    cut: now.cut || then.cut,
  };
}

type Row = Readonly<Record<string, unknown>>;

interface Asked {
  readonly rows: readonly Row[];
  readonly columns: readonly OutputColumn[];
  /** Primary keys of the types that its columns come from. */
  readonly keys: ReadonlyMap<string, string>;
  readonly refusal: string | null;
  readonly cut: boolean;
}

async function answerOf(rehearsing: Rehearsing, gate: Asking, caller: Caller, sql: string): Promise<Asked> {
  const { context } = rehearsing;
  try {
    return await gate.invoke(caller, trialOf('query', rehearsing, caller, sql), async (invocation) => {
      const answer = await context.planner.query(invocation, { sql, dialect: 'wide' });
      return { ...rowsOf(answer), ...keysOf(answer, invocation.snapshot()), refusal: null };
    });
  } catch (error) {
    if (!(error instanceof ServiceError) || error.kind === 'unavailable') throw error;
    return { rows: [], columns: [], keys: new Map(), refusal: `${error.code}: ${error.message}`, cut: false };
  }
}

const template = 'rehearsal ? ?';

/** On record as what it is, since the principal asked nothing; and paid for by nobody, since the administrator's act costs no units. */
function trialOf(
  action: 'query' | 'inspect',
  { correlationId, policy }: Rehearsing,
  caller: Caller,
  about: string,
): InvocationRequest {
  const act = { action, template, literals: [policy, about] };
  return { action, purpose: purposeOf(caller), correlationId, continues: true, act };
}

/** A statement that states none is asked for the first purpose that the token has. */
const purposeOf = ({ purposes }: Caller): string | null => purposes[0] ?? null;

function rowsOf(answer: Answer): Pick<Asked, 'rows' | 'cut'> {
  let left = rowsCompared;
  const batches = answer.batches.flatMap((batch) => {
    const count = Math.min(batch.count, left);
    left -= count;
    return count === 0 ? [] : [{ ...batch, count }];
  });
  const lines = writeNdjson({ columns: answer.columns, batches }).toString('utf8').split('\n');
  const rows = lines.filter((line) => line !== '').map((line) => parseExactJson(line) as Row);
  return { rows, cut: answer.rowCount > rowsCompared };
}

function keysOf({ columns }: Answer, { catalog }: GovernedSnapshot): Pick<Asked, 'columns' | 'keys'> {
  const types = new Set(columns.flatMap(({ origin }) => (origin === undefined ? [] : [origin.type])));
  const keys = new Map<string, string>();
  for (const type of types) {
    const key = catalog.type(type)?.primaryKey;
    if (key) keys.set(type, key);
  }
  return { columns, keys };
}

const instants = new Set(['_system_from', '_valid_from', 'system_from', 'valid_from']);

/** Names of the columns that tell rows apart; none: all of them do. */
function keyOf(...answers: readonly Asked[]): ReadonlySet<string> {
  const names = new Set<string>();
  for (const { columns, keys } of answers)
    for (const { name, origin } of columns) if (origin !== undefined && keys.get(origin.type) === origin.column) names.add(name);
  if (names.size === 0) return names;
  for (const { columns } of answers) for (const { name } of columns) if (instants.has(name)) names.add(name);
  return names;
}

function rowsBy({ rows }: Asked, keyColumns: ReadonlySet<string>): ReadonlyMap<string, Row> {
  const rowsByKey = new Map<string, Row>();
  for (const row of rows) {
    const cells = Object.entries(row).filter(([name]) => keyColumns.size === 0 || keyColumns.has(name));
    const text = cells.map(([name, cell]) => `${name} ${typeof cell === 'string' ? cell : jsonOf(cell)}`).join(', ');
    let name = text;
    for (let n = 2; rowsByKey.has(name); n++) name = `${text} (${n})`;
    rowsByKey.set(name, row);
  }
  return rowsByKey;
}

const isSame = (a: unknown, b: unknown): boolean => jsonOf(a) === jsonOf(b);

const jsonOf = (value: unknown): string =>
  JSON.stringify(value, (_, each: unknown) => (typeof each === 'bigint' ? String(each) : each));

export interface TouchedRead {
  readonly principal: string;
  readonly object_type: string;
  /** Recorded reads of the type by the principal. */
  readonly reads: number;
  readonly before: string;
  readonly after: string;
  /** Columns that those reads name and that would be masked otherwise than they are. */
  readonly columns: readonly string[];
}

/** The latest recorded reads, newest last: they have their statements without literals, so that they can't be asked again. */
export async function latestReads(audit: AuditReader, nowNs: bigint): Promise<readonly AuditEntry[]> {
  let latest: AuditEntry[] = [];
  for (const hours of [1n, 24n, 720n]) {
    latest = [];
    for await (const entry of audit.all({ action: 'query', since: nowNs - hours * hourNs })) {
      if (entry.template === template) continue;
      latest.push(entry);
      if (latest.length === 2 * readsSeen) latest = latest.slice(readsSeen);
    }
    if (latest.length >= readsSeen) break;
  }
  return latest.slice(-readsSeen);
}

/** Which of the recorded reads by this caller's principal the policy would decide otherwise. */
export async function touchedReads(
  rehearsing: Rehearsing,
  caller: Caller,
  reads: readonly AuditEntry[],
): Promise<readonly TouchedRead[]> {
  const own = reads.filter(({ principal, tenant }) => principal === caller.principal && tenant === caller.tenant);
  const types = [...new Set(own.flatMap(({ objectType }) => objectType?.split(',') ?? []))].filter((type) => type !== '');
  if (types.length === 0) return [];
  const explain = (gate: Asking): Promise<readonly PolicyExplanation[]> =>
    gate.invoke(caller, trialOf('inspect', rehearsing, caller, types.join(',')), async (invocation) =>
      types.map((type) => invocation.explainPolicy(type)),
    );
  const now = await explain(rehearsing.context.gate);
  const then = await explain(rehearsing.asItWouldBe);
  return types.flatMap((type, i) => {
    const [before, after] = [now[i]!, then[i]!];
    const masks = differentMasks(before, after);
    if (before.decision === after.decision && before.residual === after.residual && masks.length === 0) return [];
    const of = own.filter(({ objectType }) => objectType?.split(',').includes(type));
    const columns = masks.filter((column) => of.some((read) => names(read.template ?? '*', column)));
    return [
      {
        principal: caller.principal,
        object_type: type,
        reads: of.length,
        before: verdict(before),
        after: verdict(after),
        columns,
      },
    ];
  });
}

function differentMasks(now: PolicyExplanation, then: PolicyExplanation): readonly string[] {
  const kinds = ({ masks }: PolicyExplanation): ReadonlyMap<string, string> =>
    new Map(masks.map(({ column, kind, when }) => [column, `${kind} ${when}`]));
  const [before, after] = [kinds(now), kinds(then)];
  return [...new Set([...before.keys(), ...after.keys()])].filter((column) => before.get(column) !== after.get(column));
}

const verdict = ({ decision, residual }: PolicyExplanation): string =>
  residual === null ? decision : `${decision}: ${residual}`;

const names = (template: string, column: string): boolean =>
  template.includes('*') || template.split(/[^\p{L}\p{N}_]+/u).includes(column);
