/**
 * Every error that a caller can meet, once: its code, the kind that doors map to their protocol, its HTTP status
 * and whether trying again can help. Doors never match on message text.
 */

/** Kinds of errors; every protocol has an answer for each (`doors/error-codes.ts`). */
export type ErrorKind =
  | 'invalid'
  | 'unauthenticated'
  | 'payment_required'
  | 'forbidden'
  | 'not_found'
  | 'method_not_allowed'
  | 'cap_exceeded'
  | 'timeout'
  | 'cancelled'
  | 'conflict'
  | 'too_large'
  | 'unprocessable'
  | 'too_many_requests'
  | 'internal'
  | 'storage'
  | 'unimplemented'
  | 'unavailable';

export interface ErrorRow {
  readonly kind: ErrorKind;
  readonly status: number;
  /** Present on the wire only where the specification asks for it: rate-limit and quota replies. */
  readonly retryable: boolean;
  /** One line for README and OpenAPI: when a caller meets it. */
  readonly meaning: string;
}

const errorRow = (errorKind: ErrorKind, httpStatus: number, meaning: string, isRetryable = false): ErrorRow => ({
  kind: errorKind,
  status: httpStatus,
  meaning,
  retryable: isRetryable,
});

/** Source: specification, "Errors". Codes that it does not name are Annals' own and carry the same prefix. */
export const errorTable = {
  REL_PURPOSE: errorRow('forbidden', 403, 'a purpose is required and none was given'),
  REL_PURPOSE_UNKNOWN: errorRow('forbidden', 403, 'the purpose is not registered'),
  REL_TIMEOUT: errorRow('timeout', 408, 'the query ran longer than SERVICE_QUERY_TIMEOUT_SECS'),
  REL_CANCELLED: errorRow('cancelled', 408, 'the caller went away before the answer was ready'),
  REL_WATCH_LIMIT: errorRow('too_many_requests', 429, 'SERVICE_MAX_WATCH_SUBSCRIPTIONS reached', true),
  REL_PARSE: errorRow('invalid', 400, 'syntax error, with line:column'),
  REL_INVALID: errorRow('invalid', 400, 'a value, header or body is malformed'),
  REL_READ_ONLY: errorRow('invalid', 400, '/query is read-only, use ingest'),
  REL_UNKNOWN_TYPE: errorRow('not_found', 404, 'the type is not registered'),
  REL_UNKNOWN_COLUMN: errorRow('invalid', 400, 'the column is not in the type contract'),
  REL_TYPE_MISMATCH: errorRow('invalid', 400, 'a value does not fit the type of its column'),
  REL_REQUIRED: errorRow('invalid', 400, 'a required property is missing or null'),
  REL_NOT_FOUND: errorRow('not_found', 404, 'no such route, row, token or task'),
  REL_METHOD: errorRow('method_not_allowed', 405, 'the route exists, the verb does not'),
  REL_UNAUTHENTICATED: errorRow('unauthenticated', 401, 'missing or invalid credential'),
  REL_ACL: errorRow('forbidden', 403, 'access denied'),
  REL_XORG: errorRow('forbidden', 403, 'no sharing agreement covers the access'),
  REL_TENANT_MISMATCH: errorRow('forbidden', 403, 'a search filters by the tenant_id of another tenant than the caller’s own'),
  REL_HUMINT: errorRow('forbidden', 403, 'classified type, never returned through any door'),
  REL_ACCESS_SCOPE: errorRow('forbidden', 403, 'the type requires access_scope_ref'),
  REL_PROTECTED_COLUMN: errorRow('forbidden', 403, 'the column references a protected type'),
  REL_MASKED_COLUMN: errorRow('invalid', 400, 'a masked column is used as aggregate, sort or group target'),
  REL_STORAGE: errorRow('storage', 500, 'the log or a derived file failed'),
  REL_STORAGE_CAP: errorRow('payment_required', 402, 'the storage cap is reached'),
  REL_LICENSE_EXPIRED: errorRow('payment_required', 402, 'the licence has expired: writes are refused, reads stay open'),
  REL_TENANT_SUSPENDED: errorRow('payment_required', 402, 'the tenant is suspended'),
  REL_QUOTA: errorRow('too_many_requests', 429, 'the admission quota is used up', true),
  REL_QUEUE_FULL: errorRow('too_many_requests', 429, 'all priority queues are full', true),
  REL_RATE_LIMITED: errorRow('too_many_requests', 429, 'the token bucket of this address is empty', true),
  REL_TOKEN_CAP: errorRow('conflict', 409, 'SERVICE_TOKEN_REGISTRY_MAX tokens are registered'),
  REL_TENANT_CAP: errorRow('conflict', 409, 'as many tenants are registered as the licence allows'),
  REL_CONFLICT: errorRow('conflict', 409, 'what is being created exists already, or changed since it was read'),
  REL_RESULT_CAP: errorRow('cap_exceeded', 406, 'the result is larger than SERVICE_MAX_RESULT_ROWS'),
  REL_SCAN_CAP: errorRow('cap_exceeded', 406, 'the query would scan more rows than one query may'),
  REL_MEMORY_CAP: errorRow('cap_exceeded', 406, 'the query needs more memory than one query may use'),
  REL_VECTOR_BUDGET: errorRow('cap_exceeded', 406, 'vector k is over SERVICE_MAX_VECTOR_K'),
  REL_TOO_LARGE: errorRow('too_large', 413, 'the body is over the body limit'),
  REL_UNPROCESSABLE: errorRow('unprocessable', 422, 'well-formed but impossible to act on'),
  REL_NOT_IMPLEMENTED: errorRow('unimplemented', 501, 'recognised, not implemented'),
  REL_UNAVAILABLE: errorRow('unavailable', 503, 'draining, or the log no longer accepts writes', true),
  REL_INTERNAL: errorRow('internal', 500, 'a bug; the detail is masked'),
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof errorTable;

/** Kinds of mistakes within one code that protocols have words of their own for. */
export type ErrorReason =
  | 'syntax'
  | 'not-implemented'
  | 'text-form'
  | 'escape-form'
  | 'vector-dimensions'
  | 'out-of-range'
  | 'instant-form'
  | 'no-such-instant'
  | 'no-such-function'
  | 'no-such-type'
  | 'no-such-table-here'
  | 'types-differ'
  | 'can-not-cast'
  | 'not-grouped'
  | 'no-organisation'
  | 'several-rows'
  | 'ambiguous-name'
  | 'ambiguous-type'
  | 'named-twice'
  | 'alias-twice'
  | 'several-keys'
  | 'relation-exists'
  | 'no-such-column-here'
  | 'no-such-window'
  | 'parameter-count'
  | 'no-such-parameter'
  | 'no-conflict-key'
  | 'window-misplaced'
  | 'not-of-this-call'
  | 'recursion-misplaced'
  | 'pattern'
  | 'logarithm'
  | 'power'
  | 'bucket'
  | 'tile-count'
  | 'nth-row'
  | 'null-value'
  | 'program-limit'
  | 'row-count'
  | 'idle-transaction'
  | 'transaction-full'
  | 'deadlock'
  | 'skip-count'
  | 'length'
  | 'no-such-schema'
  | 'no-such-branch'
  | 'copy-form'
  | 'binary-form'
  | 'not-utf8'
  | 'nested-too-deep';

/** The row that made a write fail: its number in the batch, and the fault in it. */
export interface RefusedRow {
  readonly type: string;
  readonly index: number;
  /** The property that is missing. */
  readonly column?: string;
  /** The primary key that is there already, and the text of its value. */
  readonly key?: { readonly name: string; readonly text: string };
}

/** Extra facts of one error that doors may show: a place in a text, a header to send. */
export interface ErrorDetails {
  readonly reason?: ErrorReason;
  readonly refused?: RefusedRow;
  /** The number of the refused step of a batch. */
  readonly step?: number;
  readonly line?: number;
  readonly column?: number;
  readonly retryAfterSecs?: number;
  /** A row that it was decided from was written since: a retry may well succeed. */
  readonly stale?: true;
  /** Further members of a problem record, such as the effects of a write before it failed. */
  readonly extras?: Readonly<Record<string, unknown>>;
  readonly cause?: unknown;
}

/** Anything that a caller can cause. Our own bugs fail an assertion instead. */
export class ServiceError extends Error {
  readonly code: ErrorCode;
  readonly facts: ErrorDetails;

  constructor(errorCode: ErrorCode, errorDetail: string, errorFacts: ErrorDetails = {}) {
    super(errorDetail, errorFacts.cause === undefined ? undefined : { cause: errorFacts.cause });
    this.name = 'ServiceError';
    this.code = errorCode;
    this.facts = errorFacts;
  }

  get kind(): ErrorKind {
    return errorTable[this.code].kind;
  }

  get status(): number {
    return errorTable[this.code].status;
  }
}

/** One line that says what to set: printed without a stack, exit code 2. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/** A state that our own code must never reach. Stays on in production: halting beats serving a wrong answer. */
export class AssertionError extends Error {
  override readonly name = 'AssertionError';
}

export function assert(mustHold: unknown, assertionText: string): asserts mustHold {
  if (!mustHold) throw new AssertionError(assertionText);
}

/** For exhaustive switches over `errorKind`: does not compile while a case is missing. */
export function unreachable(impossibleValue: never): never {
  throw new AssertionError(`unreachable: ${JSON.stringify(impossibleValue)}`);
}

/** ` (did you mean X?)` for the known name that a slip of the keyboard may have made into this one; empty without one. */
export function didYouMean(misspeltName: string, knownNames: Iterable<string>): string {
  if (misspeltName.length > guessedNameLengthMax) return '';
  const misspeltLower = misspeltName.toLowerCase();
  let nearestName = '';
  // One letter more or less makes any other name of a name of two.
  let nearestDistance = Math.min(3, Math.max(misspeltName.length < 3 ? 0 : 1, Math.floor(misspeltName.length / 3))) + 1;
  let comparedNames = 0;
  for (const knownName of knownNames) {
    const extraCharacters = knownName.length - misspeltName.length;
    if (-extraCharacters >= nearestDistance || extraCharacters > abbreviatedLengthMax) continue;
    if (++comparedNames > guessedNamesMax) break;
    // A word of it: PAGERANK for GRAPH_PAGERANK.
    if (nearestName === '' && misspeltLower.length > 3 && knownName.toLowerCase().split('_').includes(misspeltLower))
      nearestName = knownName;
    if (extraCharacters >= nearestDistance) continue;
    const nameDistance = editDistance(misspeltLower, knownName.toLowerCase());
    if (nameDistance < nearestDistance) [nearestName, nearestDistance] = [knownName, nameDistance];
  }
  return nearestName === '' ? '' : ` (did you mean ${nearestName}?)`;
}

/** Most names compared for a guess, which is made in the turn that fails. */
const guessedNamesMax = 1_000;
const guessedNameLengthMax = 64;
const abbreviatedLengthMax = 12;

/** Letters put in, left out, changed, or swapped with the next one. */
function editDistance(misspelt: string, knownName: string): number {
  let previousDistances: readonly number[] = [];
  let lastDistances: readonly number[] = Array.from({ length: knownName.length + 1 }, (_, i) => i);
  for (let i = 1; i <= misspelt.length; i++) {
    const currentDistances = [i];
    for (let j = 1; j <= knownName.length; j++) {
      const changedDistance = lastDistances[j - 1]! + (misspelt[i - 1] === knownName[j - 1] ? 0 : 1);
      currentDistances[j] = Math.min(lastDistances[j]! + 1, currentDistances[j - 1]! + 1, changedDistance);
      const isSwapped = i > 1 && j > 1 && misspelt[i - 1] === knownName[j - 2] && misspelt[i - 2] === knownName[j - 1];
      if (isSwapped) currentDistances[j] = Math.min(currentDistances[j]!, previousDistances[j - 2]! + 1);
    }
    [previousDistances, lastDistances] = [lastDistances, currentDistances];
  }
  return lastDistances[knownName.length]!;
}
