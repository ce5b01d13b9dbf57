/**
 * What doors and planner hold of the gate. Two verbs inside one invocation: `snapshot` to read, `submit` to write;
 * the invocation itself guarantees that exactly one access record is written on every way out.
 */
import type { TokenRecord } from '../log/entry.ts';
import type { AccessPaths, AuditReader } from '../projections/access-paths.ts';
import type { Command, Outcome } from '../projections/command.ts';
import type { Caller } from './caller.ts';

/** An access path that has passed the gate: rows outside the caller's scope can't come out of it. */
export interface GovernedSnapshot extends AccessPaths {
  readonly governed: true;
  readonly caller: Caller;
  readonly purpose: string | null;
  /** Changes with anything that could change a decision or a plan: part of every plan-cache key. */
  readonly grantKey: string;
}

export type Action =
  | 'query'
  | 'export'
  | 'watch'
  | 'replay'
  | 'ingest'
  | 'delete'
  | 'remove'
  | 'schema'
  | 'fork'
  | 'administer'
  | 'audit'
  | 'inspect';

export interface InvocationRequest {
  readonly action: Action;
  /** Purpose as given by the caller; null when none was. */
  readonly purpose: string | null;
  readonly correlationId: string;
  /** Set by doors whose every call needs a purpose. */
  readonly purposeRequired?: boolean;
}

/** What is known of an invocation once it is understood, for its access record. Later calls override earlier ones. */
export interface InvocationFacts {
  readonly objectType?: string;
  readonly template?: string;
  /** Literals of the statement, in order: only their keyed digest is kept. */
  readonly literals?: readonly string[];
  readonly purpose?: string;
  readonly rowCount?: number;
  readonly costUnits?: number;
}

export interface Invocation {
  readonly caller: Caller;
  readonly correlationId: string;
  describe(facts: InvocationFacts): void;
  /** Checks purpose, quota and policy for reading, then pins branch, position and instant. */
  snapshot(): GovernedSnapshot;
  /** Checks purpose, quota, policy and storage cap, decides, appends, applies; resolves when acknowledged. */
  submit(command: Command, options?: { readonly sync?: boolean }): Promise<Outcome>;
  /** Access records of the caller's own scope; everybody's for the administrator. */
  audit(): AuditReader;
  /** Registered tokens that the caller may know of, by id, without their hashes. */
  tokens(): readonly TokenView[];
  /** The live decision about reading a type, and the rules that determine it. Refuses nothing. */
  explainPolicy(objectType: string | null): PolicyExplanation;
}

export type TokenView = Omit<TokenRecord, 'secretHash'>;

export interface PolicyExplanation {
  readonly decision: 'allow' | 'deny';
  /** One line a rule: `permit-own-tenant: whoever is known may …`. */
  readonly because: readonly string[];
  /** What the caller's scope lets through, in words. */
  readonly scope: string;
}

export interface GateContract {
  /**
   * Runs one invocation. The access record is appended before the returned promise settles, whatever happens; if it
   * can't be, the promise rejects with REL_UNAVAILABLE and no data leaves.
   */
  invoke<T>(caller: Caller, request: InvocationRequest, run: (invocation: Invocation) => Promise<T>): Promise<T>;
}
