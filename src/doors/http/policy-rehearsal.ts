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
const rehearsalRowsNamed = 100;
/** Recorded reads that are looked at. */
const rehearsalReadsMax = 1_000;
const rehearsalHourNs = 3_600_000_000_000n;

type RehearsalGate = Pick<GateContract, 'invoke'>;

export interface Rehearsing {
  readonly context: HttpContext;
  readonly asItWouldBe: RehearsalGate;
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
export function callerOf({ authenticator }: HttpContext, rehearsedToken: TokenView): Caller {
  const { principal: tokenPrincipal, organization: tokenOrganization, id: tokenId } = rehearsedToken;
  const tokenOwner = {
    principal: tokenPrincipal,
    credential: 'token',
    token: tokenId,
    path: tokenOrganization ?? rehearsedToken.tenant,
    branch: 'main',
  } as const;
  return { ...authenticator.absentCaller(tokenOwner), door: 'http' };
}

export async function compareAnswers(rehearsing: Rehearsing, rehearsedCaller: Caller, sql: string): Promise<Difference> {
  const currentAnswer = await rehearsedAnswer(rehearsing, rehearsing.context.gate, rehearsedCaller, sql);
  const rehearsedResult = await rehearsedAnswer(rehearsing, rehearsing.asItWouldBe, rehearsedCaller, sql);
  const keyColumns = rehearsalKeyColumns(currentAnswer, rehearsedResult);
  const rowsBefore = rowsByRehearsalKey(currentAnswer, keyColumns);
  const rowsAfter = rowsByRehearsalKey(rehearsedResult, keyColumns);
  const appearingRows = [...rowsAfter.keys()].filter((rowKey) => !rowsBefore.has(rowKey));
  const vanishingRows = [...rowsBefore.keys()].filter((rowKey) => !rowsAfter.has(rowKey));
  const changedRows = [...rowsBefore].flatMap(([rowKey, cellsBefore]) => {
    const cellsAfter = rowsAfter.get(rowKey);
    const changedColumns =
      cellsAfter === undefined
        ? []
        : Object.keys(cellsBefore).filter((columnName) => !isSameCell(cellsBefore[columnName], cellsAfter[columnName]));
    return changedColumns.length === 0 ? [] : [{ row: rowKey, columns: changedColumns }];
  });
  return {
    principal: rehearsedCaller.principal,
    statement: sql,
    before: currentAnswer.refusal ?? currentAnswer.rows.length,
    after: rehearsedResult.refusal ?? rehearsedResult.rows.length,
    appear: appearingRows.slice(0, rehearsalRowsNamed),
    vanish: vanishingRows.slice(0, rehearsalRowsNamed),
    changed: changedRows.slice(0, rehearsalRowsNamed),
    counts: { appear: appearingRows.length, vanish: vanishingRows.length, changed: changedRows.length },
    cut: currentAnswer.cut || rehearsedResult.cut,
  };
}

type RehearsedRow = Readonly<Record<string, unknown>>;

interface RehearsedAnswer {
  readonly rows: readonly RehearsedRow[];
  readonly columns: readonly OutputColumn[];
  /** Primary keys of the types that its columns come from. */
  readonly keys: ReadonlyMap<string, string>;
  readonly refusal: string | null;
  readonly cut: boolean;
}

async function rehearsedAnswer(
  rehearsing: Rehearsing,
  rehearsalGate: RehearsalGate,
  rehearsedCaller: Caller,
  rehearsedSql: string,
): Promise<RehearsedAnswer> {
  const { context } = rehearsing;
  try {
    return await rehearsalGate.invoke(
      rehearsedCaller,
      rehearsalInvocation('query', rehearsing, rehearsedCaller, rehearsedSql),
      async (rehearsedInvocation) => {
        const sqlAnswer = await context.planner.query(rehearsedInvocation, { sql: rehearsedSql, dialect: 'wide' });
        return { ...rehearsedRows(sqlAnswer), ...rehearsedKeys(sqlAnswer, rehearsedInvocation.snapshot()), refusal: null };
      },
    );
  } catch (rehearsalError) {
    if (!(rehearsalError instanceof ServiceError) || rehearsalError.kind === 'unavailable') throw rehearsalError;
    return { rows: [], columns: [], keys: new Map(), refusal: `${rehearsalError.code}: ${rehearsalError.message}`, cut: false };
  }
}

const rehearsalTemplate = 'rehearsal ? ?';

/** On record as what it is, since the principal asked nothing; and paid for by nobody, since the administrator's act costs no units. */
function rehearsalInvocation(
  action: 'query' | 'inspect',
  { correlationId, policy: policyName }: Rehearsing,
  rehearsedCaller: Caller,
  rehearsedText: string,
): InvocationRequest {
  const rehearsalAct = { action, template: rehearsalTemplate, literals: [policyName, rehearsedText] };
  return { action, purpose: firstPurpose(rehearsedCaller), correlationId, continues: true, act: rehearsalAct };
}

/** A statement that states none is asked for the first purpose that the token has. */
const firstPurpose = ({ purposes }: Caller): string | null => purposes[0] ?? null;

function rehearsedRows(sqlAnswer: Answer): Pick<RehearsedAnswer, 'rows' | 'cut'> {
  let rowsToCompare = rowsCompared;
  const comparedBatches = sqlAnswer.batches.flatMap((answerBatch) => {
    const comparedCount = Math.min(answerBatch.count, rowsToCompare);
    rowsToCompare -= comparedCount;
    return comparedCount === 0 ? [] : [{ ...answerBatch, count: comparedCount }];
  });
  const rowLines = writeNdjson({ columns: sqlAnswer.columns, batches: comparedBatches }).toString('utf8').split('\n');
  const comparedRows = rowLines.filter((rowLine) => rowLine !== '').map((rowLine) => parseExactJson(rowLine) as RehearsedRow);
  return { rows: comparedRows, cut: sqlAnswer.rowCount > rowsCompared };
}

function rehearsedKeys(
  { columns: answerColumns }: Answer,
  { catalog }: GovernedSnapshot,
): Pick<RehearsedAnswer, 'columns' | 'keys'> {
  const answerTypes = new Set(answerColumns.flatMap(({ origin }) => (origin === undefined ? [] : [origin.type])));
  const primaryKeys = new Map<string, string>();
  for (const answerType of answerTypes) {
    const primaryKey = catalog.type(answerType)?.primaryKey;
    if (primaryKey) primaryKeys.set(answerType, primaryKey);
  }
  return { columns: answerColumns, keys: primaryKeys };
}

const instantColumns = new Set(['_system_from', '_valid_from', 'system_from', 'valid_from']);

/** Names of the columns that tell rows apart; none: all of them do. */
function rehearsalKeyColumns(...rehearsedAnswers: readonly RehearsedAnswer[]): ReadonlySet<string> {
  const keyColumnNames = new Set<string>();
  for (const { columns: answerColumns, keys: primaryKeys } of rehearsedAnswers)
    for (const { name: keyColumnName, origin: columnOrigin } of answerColumns)
      if (columnOrigin !== undefined && primaryKeys.get(columnOrigin.type) === columnOrigin.column)
        keyColumnNames.add(keyColumnName);
  if (keyColumnNames.size === 0) return keyColumnNames;
  for (const { columns } of rehearsedAnswers)
    for (const { name } of columns) if (instantColumns.has(name)) keyColumnNames.add(name);
  return keyColumnNames;
}

function rowsByRehearsalKey({ rows }: RehearsedAnswer, keyColumns: ReadonlySet<string>): ReadonlyMap<string, RehearsedRow> {
  const rowsByKey = new Map<string, RehearsedRow>();
  for (const rehearsedRow of rows) {
    const keyCells = Object.entries(rehearsedRow).filter(([keyName]) => keyColumns.size === 0 || keyColumns.has(keyName));
    const keyText = keyCells
      .map(([keyName, keyCell]) => `${keyName} ${typeof keyCell === 'string' ? keyCell : cellJson(keyCell)}`)
      .join(', ');
    let name = keyText;
    for (let n = 2; rowsByKey.has(name); n++) name = `${keyText} (${n})`;
    rowsByKey.set(name, rehearsedRow);
  }
  return rowsByKey;
}

const isSameCell = (a: unknown, b: unknown): boolean => cellJson(a) === cellJson(b);

const cellJson = (cellValue: unknown): string =>
  JSON.stringify(cellValue, (_, memberValue: unknown) => (typeof memberValue === 'bigint' ? String(memberValue) : memberValue));

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
export async function latestReads(auditReader: AuditReader, nowNs: bigint): Promise<readonly AuditEntry[]> {
  let latestEntries: AuditEntry[] = [];
  for (const auditHours of [1n, 24n, 720n]) {
    latestEntries = [];
    for await (const auditRead of auditReader.all({ action: 'query', since: nowNs - auditHours * rehearsalHourNs })) {
      if (auditRead.template === rehearsalTemplate) continue;
      latestEntries.push(auditRead);
      if (latestEntries.length === 2 * rehearsalReadsMax) latestEntries = latestEntries.slice(rehearsalReadsMax);
    }
    if (latestEntries.length >= rehearsalReadsMax) break;
  }
  return latestEntries.slice(-rehearsalReadsMax);
}

/** Which of the recorded reads by this caller's principal the policy would decide otherwise. */
export async function touchedReads(
  rehearsing: Rehearsing,
  rehearsedCaller: Caller,
  auditReads: readonly AuditEntry[],
): Promise<readonly TouchedRead[]> {
  const ownReads = auditReads.filter(
    ({ principal, tenant }) => principal === rehearsedCaller.principal && tenant === rehearsedCaller.tenant,
  );
  const readTypes = [...new Set(ownReads.flatMap(({ objectType }) => objectType?.split(',') ?? []))].filter(
    (readType) => readType !== '',
  );
  if (readTypes.length === 0) return [];
  const explainPolicies = (gate: RehearsalGate): Promise<readonly PolicyExplanation[]> =>
    gate.invoke(
      rehearsedCaller,
      rehearsalInvocation('inspect', rehearsing, rehearsedCaller, readTypes.join(',')),
      async (invocation) => readTypes.map((type) => invocation.explainPolicy(type)),
    );
  const explainedNow = await explainPolicies(rehearsing.context.gate);
  const explainedThen = await explainPolicies(rehearsing.asItWouldBe);
  return readTypes.flatMap((readType, i) => {
    const [explanationBefore, explanationAfter] = [explainedNow[i]!, explainedThen[i]!];
    const maskDifferences = changedMasks(explanationBefore, explanationAfter);
    if (
      explanationBefore.decision === explanationAfter.decision &&
      explanationBefore.residual === explanationAfter.residual &&
      maskDifferences.length === 0
    )
      return [];
    const readsOfType = ownReads.filter(({ objectType }) => objectType?.split(',').includes(readType));
    const maskedColumns = maskDifferences.filter((maskedColumn) =>
      readsOfType.some((auditRead) => templateNamesColumn(auditRead.template ?? '*', maskedColumn)),
    );
    return [
      {
        principal: rehearsedCaller.principal,
        object_type: readType,
        reads: readsOfType.length,
        before: policyVerdict(explanationBefore),
        after: policyVerdict(explanationAfter),
        columns: maskedColumns,
      },
    ];
  });
}

function changedMasks(explainedNow: PolicyExplanation, explainedThen: PolicyExplanation): readonly string[] {
  const maskKinds = ({ masks }: PolicyExplanation): ReadonlyMap<string, string> =>
    new Map(masks.map(({ column, kind, when }) => [column, `${kind} ${when}`]));
  const [masksBefore, masksAfter] = [maskKinds(explainedNow), maskKinds(explainedThen)];
  return [...new Set([...masksBefore.keys(), ...masksAfter.keys()])].filter(
    (column) => masksBefore.get(column) !== masksAfter.get(column),
  );
}

const policyVerdict = ({ decision, residual }: PolicyExplanation): string =>
  residual === null ? decision : `${decision}: ${residual}`;

const templateNamesColumn = (auditTemplate: string, maskedColumn: string): boolean =>
  auditTemplate.includes('*') || auditTemplate.split(/[^\p{L}\p{N}_]+/u).includes(maskedColumn);
