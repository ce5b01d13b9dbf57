/** CREATE and DROP of views as statements: those whose answers are kept for a while, and plain ones, which are asked each time. */
import { smallAnswer } from '../execution/small-answer.ts';
import { bindQuery } from '../binding/binder.ts';
import { viewNamed } from '../languages/view-source.ts';
import type { ControlRequest } from './control-request.ts';
import { type LexedStatement, lexStatement } from '../languages/sql-lexer.ts';
import { quotedName } from '../expressions/quoted-name.ts';
import { errorAt } from '../syntax/error-location.ts';
import type { Answer } from '../planner-contract.ts';
import { checkViewQuery } from '../continuous/views/view-definition.ts';

/** Source: specification, "Operator table": a background refresh every 60 s. */
const refreshSecsDefault = 60;

export function createMaterializedView(request: ControlRequest): Promise<Answer> {
  const seconds = request.statement.options.find(({ name }) => name === 'SECONDS');
  const refreshSecs = seconds === undefined ? refreshSecsDefault : Number(request.literals[seconds.value.slot]);
  if (refreshSecs === 0)
    throw errorAt('REL_INVALID', 'REFRESH INCREMENTAL EVERY takes 1 or more seconds', seconds!.value.location);
  return create(request, { refreshSecs, isRefreshed: seconds !== undefined });
}

export function createView(request: ControlRequest): Promise<Answer> {
  return create(request, { refreshSecs: 0 });
}

export function replaceView(request: ControlRequest): Promise<Answer> {
  return create(request, { refreshSecs: 0, replaces: true });
}

async function create(
  request: ControlRequest,
  { refreshSecs, isRefreshed = false, replaces = false }: { refreshSecs: number; isRefreshed?: boolean; replaces?: boolean },
): Promise<Answer> {
  const { continuous, statement, literals, invocation, clock, startedMs } = request;
  if (continuous === null) throw errorAt('REL_NOT_IMPLEMENTED', 'views are not served here', statement.location);
  const { query, names } = statement;
  checkViewQuery(query!);
  invocation.describe({ action: 'schema', objectType: names[0]! });
  const snapshot = invocation.snapshot();
  // Reports errors of the query, with locations in the statement as it was given.
  bindQuery({
    query: query!,
    withProvenance: false,
    literals,
    catalog: snapshot.catalog,
    views: (name) => viewNamed(snapshot.views, name),
    masksOf: (type) => snapshot.masksOf(type),
    lookups: (name) => continuous.lookups.table(snapshot.caller.path, name),
  });
  const viewSql = querySource(lexStatement(request.text()), isRefreshed);
  const columns = names.slice(1).map(quotedName).join(', ');
  const sql = columns === '' ? viewSql : `SELECT * FROM (${viewSql}) AS ${quotedName(names[0]!)} (${columns})`;
  const outcome = await invocation.submit({
    kind: 'create-view',
    name: names[0]!,
    sql,
    refreshSecs,
    ...(replaces && { replaces }),
  });
  return smallAnswer(
    [
      { name: 'view', type: 'string' },
      { name: 'refresh_secs', type: 'integer' },
      { name: 'created', type: 'boolean' },
    ],
    [[names[0]!, BigInt(refreshSecs), outcome.changed]],
    { asOfSystem: snapshot.instant, costUnits: 1, processingTimeMs: clock.monotonicMs() - startedMs },
  );
}

export function dropMaterializedView(request: ControlRequest): Promise<Answer> {
  return drop(request, { isPlain: false });
}

export function dropView(request: ControlRequest): Promise<Answer> {
  return drop(request, { isPlain: true });
}

/** Its cached answers go with it, on the branch where it is dropped. */
async function drop(request: ControlRequest, { isPlain }: { isPlain: boolean }): Promise<Answer> {
  const { continuous, statement, invocation, clock, startedMs } = request;
  if (continuous === null) throw errorAt('REL_NOT_IMPLEMENTED', 'views are not served here', statement.location);
  const name = statement.names[0]!;
  invocation.describe({ action: 'schema', objectType: name });
  const { instant, branchId, caller, views } = invocation.snapshot();
  const view = views.find((each) => each.name === name && each.owner === caller.path);
  if (view !== undefined && isPlain !== (view.refreshSecs === 0)) {
    const right = isPlain ? 'DROP MATERIALIZED VIEW' : 'DROP VIEW';
    throw errorAt('REL_INVALID', `${JSON.stringify(name)} is a view of the other kind: ${right} ends it`, statement.location);
  }
  await invocation.submit({ kind: 'drop-view', name });
  continuous.views.drop({ name, owner: caller.path, branchId });
  return smallAnswer(
    [
      { name: 'view', type: 'string' },
      { name: 'dropped', type: 'boolean' },
    ],
    [[name, true]],
    { asOfSystem: instant, costUnits: 1, processingTimeMs: clock.monotonicMs() - startedMs },
  );
}

/** The text between AS and REFRESH, as written. */
function querySource({ text, tokens }: LexedStatement, refreshed: boolean): string {
  const as = tokens.findIndex(({ key }) => key === 'AS');
  const end = tokens.findLastIndex(({ key }) => key === (refreshed ? 'REFRESH' : ';'));
  // Without REFRESH and semicolon the query ends with the text.
  return text.slice(tokens[as + 1]!.start, end < 0 ? text.length : tokens[end]!.start).trim();
}
