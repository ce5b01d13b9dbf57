/**
 * Makes the access record of an invocation from what is known at its end. Records of one turn share an entry, so a record that
 * can't be encoded would take its neighbours down with it: texts that callers chose are cut to length and made well-formed here.
 */
import { ServiceError, type ErrorKind } from '../../errors.ts';
import type { AccessRecord, Recalled, StatementRecord } from '../../log/entries/entry.ts';
import { limits, tenantOf } from '../../log/values/value.ts';
import type { Caller } from '../caller.ts';
import type { Action } from '../gate-contract.ts';

/** How an invocation ended for its holder. */
export type Ending<T> = { readonly answer: T } | { readonly failure: unknown };

export interface InvocationFacts {
  readonly caller: Caller;
  readonly action: Action;
  readonly correlationId: string;
  readonly time: bigint;
  readonly purpose: string | null;
  readonly objectType: string | null;
  readonly breakGlass: string | null;
  readonly accessScopeRef: string | null;
  readonly template: string | null;
  readonly literalDigest: string | null;
  readonly basis: bigint;
  readonly rowCount: number;
  readonly costUnits: number;
  readonly durationMs: number;
  readonly statements: readonly StatementRecord[];
  readonly recalled: Recalled | null;
  readonly ending: Ending<unknown>;
}

const templateLengthMax = 8192;
const statedLengthMax = 1024;
/** As many types as one question may name: leaving one out would hide what was read. */
const objectTypesLengthMax = 64 * (limits.identifierLength + 1);

/** Refusals are denials; malformed, late, cancelled and failed requests are errors. */
const deniedKinds: ReadonlySet<ErrorKind> = new Set(['unauthenticated', 'payment_required', 'forbidden', 'too_many_requests']);

/** Written field by field: one is made for every invocation, and a spread makes another hidden class each time. */
export function accessRecord(invocationFacts: InvocationFacts): AccessRecord {
  const { caller, statements, recalled } = invocationFacts;
  const { decision, code } = verdictOn(invocationFacts.ending);
  const invocationRecord: { -readonly [K in keyof AccessRecord]: AccessRecord[K] } = {
    time: invocationFacts.time,
    correlationId: invocationFacts.correlationId,
    principal: caller.principal,
    tenant: tenantOf(caller.path),
    path: caller.path,
    door: caller.door,
    action: invocationFacts.action,
    purpose: clipText(invocationFacts.purpose, limits.identifierLength),
    objectType: clipText(invocationFacts.objectType, objectTypesLengthMax),
    decision,
    code,
    template: clipText(invocationFacts.template, templateLengthMax),
    literalDigest: invocationFacts.literalDigest,
    basis: invocationFacts.basis,
    rowCount: invocationFacts.rowCount,
    costUnits: invocationFacts.costUnits,
    durationMs: Math.max(0, invocationFacts.durationMs),
  };
  if (invocationFacts.breakGlass !== null || invocationFacts.accessScopeRef !== null)
    invocationRecord.stated = {
      breakGlass: clipText(invocationFacts.breakGlass, statedLengthMax),
      accessScopeRef: clipText(invocationFacts.accessScopeRef, statedLengthMax),
    };
  if (statements.length > 0) invocationRecord.statements = statements.map(statementRecord);
  if (recalled !== null && recalled.ids.length > 0) invocationRecord.recalled = recalled;
  return invocationRecord;
}

function statementRecord({ template, objectType, ...otherStatementFacts }: StatementRecord): StatementRecord {
  return {
    ...otherStatementFacts,
    template: clipText(template, templateLengthMax),
    objectType: clipText(objectType, objectTypesLengthMax),
  };
}

function verdictOn(ending: Ending<unknown>): Pick<AccessRecord, 'decision' | 'code'> {
  if (!('failure' in ending)) return { decision: 'allow', code: null };
  const { failure } = ending;
  if (!(failure instanceof ServiceError)) return { decision: 'error', code: 'REL_INTERNAL' };
  return { decision: deniedKinds.has(failure.kind) ? 'deny' : 'error', code: failure.code };
}

function clipText(recordedText: string | null, lengthMax: number): string | null {
  if (recordedText === null) return null;
  const clippedText = recordedText.length > lengthMax ? `${recordedText.slice(0, lengthMax)}…` : recordedText;
  return clippedText.toWellFormed();
}
