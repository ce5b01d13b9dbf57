/**
 * Policy checks of written rows: the condition of the action, per type, which `decide` tests on each row as it would be stored
 * and on the versions that it supersedes. None apply while no policy is installed, nor to the store's own upkeep.
 */
import { ServiceError } from '../../errors.ts';
import type { TypeDefinition } from '../../log/entries/entry.ts';
import type { Command } from '../../projections/command.ts';
import type { RowCheck, WriteChecks } from '../../projections/decision.ts';
import { edgeColumns } from '../../projections/catalog/edge-columns.ts';
import { actionOf } from '../authorization/action-names.ts';
import { decideEarly, type RowDecision } from '../authorization/cedar/compile.ts';
import type { Judge, Judged } from '../authorization/judge.ts';
import { cedarActionOf } from '../authorization/policy-set.ts';
import type { Action } from '../gate-contract.ts';

/** Empty where the command writes no rows of a caller's. */
export function writeChecks(
  judge: Judge,
  judged: Judged,
  command: Command,
  now: bigint,
  unknown?: ReadonlySet<string>,
): WriteChecks {
  if (command.kind === 'batch') return { ofStep: (step) => writeChecks(judge, judged, step, now) };
  if (command.kind === 'record-run') return command.alerts === null ? {} : writeChecks(judge, judged, command.alerts, now);
  const isRowCommand = writesRows(command);
  const commandRowCheck =
    isRowCommand || commandsCheckingRows.has(command.kind)
      ? rowCheck(judge, judged, actionOf[command.kind], now, unknown)
      : undefined;
  const action = actionOf[command.kind];
  return {
    rowCheck: commandRowCheck,
    refusalOf: isRowCommand ? (type) => writeRefusalOf(judge, judged, action, type) : undefined,
  };
}

/** The refusal to write edges of a type that the command does not name. */
function writeRefusalOf(judge: Judge, judged: Judged, action: Action, objectType: string): ServiceError | null {
  try {
    judge.authorise(judged, { action, objectType });
    judge.writeGuards({ ...judged, action }).check(objectType, Object.values(edgeColumns));
    return null;
  } catch (error) {
    if (error instanceof ServiceError) return error;
    throw error;
  }
}

/** Commands that write no rows, and are about some that have to be allowed. */
const commandsCheckingRows: ReadonlySet<Command['kind']> = new Set([
  'schedule-retention',
  'hold-row',
  'release-retention',
  'judge-identities',
]);

/** Undefined while no policy is installed. `unknown`: columns whose cells are not known yet. */
export function rowCheck(
  judge: Judge,
  judged: Judged,
  action: Action,
  now: bigint,
  unknown?: ReadonlySet<string>,
): RowCheck | undefined {
  const callerPolicies = judge.policies.policiesFor(judged.caller, judged);
  if (callerPolicies === null) return undefined;
  const decideType = (type: TypeDefinition): RowDecision => {
    const decision = callerPolicies.rows(cedarActionOf[action].action, type, now);
    return unknown === undefined ? decision : decideEarly(decision, type, unknown);
  };
  return {
    testFor: (type) => decideType(type).rows,
    refuse: (type) => {
      const forbiddingPolicies = decideType(type).because.map((id) => `the policy ${id} forbids it`);
      throw new ServiceError('REL_ACL', `${action} is denied: ${forbiddingPolicies.join('; ') || 'no policy permits it'}`);
    },
  };
}

type RowCommand = Extract<Command, { kind: 'put-rows' | 'delete-rows' | 'remove-rows' }>;

export function writesRows(command: Command): command is RowCommand {
  return command.kind === 'put-rows' || command.kind === 'delete-rows' || command.kind === 'remove-rows';
}
