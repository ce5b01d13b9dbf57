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
const viewRefreshSecs = 60;

export function createMaterializedView(request: ControlRequest): Promise<Answer> {
  const secondsOption = request.statement.options.find(({ name }) => name === 'SECONDS');
  const refreshSecs = secondsOption === undefined ? viewRefreshSecs : Number(request.literals[secondsOption.value.slot]);
  if (refreshSecs === 0)
    throw errorAt('REL_INVALID', 'REFRESH INCREMENTAL EVERY takes 1 or more seconds', secondsOption!.value.location);
  return createAnyView(request, { refreshSecs, isRefreshed: secondsOption !== undefined });
}

export function createView(request: ControlRequest): Promise<Answer> {
  return createAnyView(request, { refreshSecs: 0 });
}

export function replaceView(request: ControlRequest): Promise<Answer> {
  return createAnyView(request, { refreshSecs: 0, replaces: true });
}

async function createAnyView(
  request: ControlRequest,
  { refreshSecs, isRefreshed = false, replaces = false }: { refreshSecs: number; isRefreshed?: boolean; replaces?: boolean },
): Promise<Answer> {
  const { continuous, statement, literals, invocation, clock, startedMs } = request;
  if (continuous === null) throw errorAt('REL_NOT_IMPLEMENTED', 'views are not served here', statement.location);
  const { query, names } = statement;
  checkViewQuery(query!);
  invocation.describe({ action: 'schema', objectType: names[0]! });
  const viewSnapshot = invocation.snapshot();
  // Reports errors of the query, with locations in the statement as it was given.
  bindQuery({
    query: query!,
    withProvenance: false,
    literals,
    catalog: viewSnapshot.catalog,
    views: (name) => viewNamed(viewSnapshot.views, name),
    masksOf: (type) => viewSnapshot.masksOf(type),
    lookups: (name) => continuous.lookups.table(viewSnapshot.caller.path, name),
  });
  const viewSql = viewQueryText(lexStatement(request.text()), isRefreshed);
  const viewColumnsText = names.slice(1).map(quotedName).join(', ');
  const sql = viewColumnsText === '' ? viewSql : `SELECT * FROM (${viewSql}) AS ${quotedName(names[0]!)} (${viewColumnsText})`;
  const viewOutcome = await invocation.submit({
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
    [[names[0]!, BigInt(refreshSecs), viewOutcome.changed]],
    { asOfSystem: viewSnapshot.instant, costUnits: 1, processingTimeMs: clock.monotonicMs() - startedMs },
  );
}

export function dropMaterializedView(request: ControlRequest): Promise<Answer> {
  return dropAnyView(request, { isPlain: false });
}

export function dropView(request: ControlRequest): Promise<Answer> {
  return dropAnyView(request, { isPlain: true });
}

/** Its cached answers go with it, on the branch where it is dropped. */
async function dropAnyView(request: ControlRequest, { isPlain }: { isPlain: boolean }): Promise<Answer> {
  const { continuous, statement, invocation, clock, startedMs } = request;
  if (continuous === null) throw errorAt('REL_NOT_IMPLEMENTED', 'views are not served here', statement.location);
  const viewName = statement.names[0]!;
  invocation.describe({ action: 'schema', objectType: viewName });
  const { instant, branchId, caller, views } = invocation.snapshot();
  const droppedView = views.find((each) => each.name === viewName && each.owner === caller.path);
  if (droppedView !== undefined && isPlain !== (droppedView.refreshSecs === 0)) {
    const rightStatement = isPlain ? 'DROP MATERIALIZED VIEW' : 'DROP VIEW';
    throw errorAt(
      'REL_INVALID',
      `${JSON.stringify(viewName)} is a view of the other kind: ${rightStatement} ends it`,
      statement.location,
    );
  }
  await invocation.submit({ kind: 'drop-view', name: viewName });
  continuous.views.drop({ name: viewName, owner: caller.path, branchId });
  return smallAnswer(
    [
      { name: 'view', type: 'string' },
      { name: 'dropped', type: 'boolean' },
    ],
    [[viewName, true]],
    { asOfSystem: instant, costUnits: 1, processingTimeMs: clock.monotonicMs() - startedMs },
  );
}

/** The text between AS and REFRESH, as written. */
function viewQueryText({ text, tokens }: LexedStatement, refreshed: boolean): string {
  const asToken = tokens.findIndex(({ key }) => key === 'AS');
  const lastToken = tokens.findLastIndex(({ key }) => key === (refreshed ? 'REFRESH' : ';'));
  // Without REFRESH and semicolon the query ends with the text.
  return text.slice(tokens[asToken + 1]!.start, lastToken < 0 ? text.length : tokens[lastToken]!.start).trim();
}
