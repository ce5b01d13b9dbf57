/**
 * What a caller may ask to be written. A command and the current state become entries in `commands.ts` of the
 * projection that owns it: pure, so testable without a log, a clock or a disk.
 */
import type { RowBatch } from '../log/columns.ts';
import type { GraphTrigger, PropertyDefinition, Provenance, TokenRecord } from '../log/entry.ts';

export type Command =
  | PutRows
  | DeleteRows
  | RemoveRows
  | RegisterType
  | EvolveType
  | MigrateTypes
  | MintToken
  | RotateToken
  | RevokeToken
  | ForkBranch
  | DeleteBranch
  | CreateView
  | LinkExhibit;

export type CommandKind = Command['kind'];

/**
 * Upserts. `rows` holds properties and, where given, `_pk` or `id`, `valid_from`, `valid_to` (timestamp columns).
 * Rows that fail the type contract are rejected one by one; `atomic` makes the first one refuse the whole batch.
 */
export interface PutRows {
  readonly kind: 'put-rows';
  readonly type: string;
  readonly rows: RowBatch;
  readonly atomic: boolean;
  /** Registers the type, open, when it is unknown (`/ingest/auto`). */
  readonly createType: boolean;
  readonly provenance: Provenance;
  /** Keys that the outcome lists, at most; as many as an outcome may list by default. */
  readonly idsMax?: number;
  /** Under an idempotency key: a receipt is written with the rows, and a batch that has one already is not written again. */
  readonly receipt?: BatchReceipt;
}

/** One batch of a request under an idempotency key. Batches of a request are put in order, each once. */
export interface BatchReceipt {
  /** Lower-case hex SHA-256 over who asked and under which key. */
  readonly key: string;
  /** From 0. */
  readonly batch: number;
  /** Lower-case hex SHA-256 over all that was asked for up to the end of this batch. */
  readonly request: string;
  /** Nothing follows in the request. */
  readonly last: boolean;
  /** Index in the request of the batch's first row, and of each of its rows; null: firstIndex, firstIndex + 1, … */
  readonly firstIndex: number;
  readonly indexes: Float64Array | null;
  /** Rows of this stretch of the request that were refused before, by index in the request. */
  readonly refused: readonly RowRejection[];
}

/** Soft delete: the rows stop being true now and stay in the store. */
export interface DeleteRows {
  readonly kind: 'delete-rows';
  readonly type: string;
  readonly keys: readonly string[];
}

/** Hard delete: every version is gone. */
export interface RemoveRows {
  readonly kind: 'remove-rows';
  readonly type: string;
  readonly keys: readonly string[];
}

/** Registering the same definition again is a no-op; a conflicting one is REL_CONFLICT. */
export interface RegisterType {
  readonly kind: 'register-type';
  readonly name: string;
  /** null: an open type, its columns inferred on write. */
  readonly properties: Readonly<Record<string, PropertyDefinition>> | null;
  readonly primaryKey: string | null;
  readonly graphTriggers: readonly GraphTrigger[];
}

/** Adds columns and widens (integer to number, anything to json). Narrowing is REL_CONFLICT. */
export interface EvolveType {
  readonly kind: 'evolve-type';
  readonly name: string;
  readonly properties: Readonly<Record<string, PropertyDefinition>>;
}

/** Several of both, in order, in one append: all of them or none. Later ones see what earlier ones made. */
export interface MigrateTypes {
  readonly kind: 'migrate-types';
  readonly steps: readonly (RegisterType | EvolveType)[];
}

export interface MintToken {
  readonly kind: 'mint-token';
  /** Made by the gate: id and secret hash included, so that deciding stays pure. */
  readonly token: TokenRecord;
}

export interface RotateToken {
  readonly kind: 'rotate-token';
  readonly id: string;
  readonly token: TokenRecord;
}

export interface RevokeToken {
  readonly kind: 'revoke-token';
  readonly id: string;
}

/** REL_NOT_FOUND without the source, REL_CONFLICT when the name is taken. */
export interface ForkBranch {
  readonly kind: 'fork-branch';
  readonly name: string;
  readonly source: string;
  readonly shares: 'everything' | 'ontology';
}

export interface DeleteBranch {
  readonly kind: 'delete-branch';
  readonly name: string;
}

/** The same definition again is a no-op; another one under the name, or a type of that name, is REL_CONFLICT. */
export interface CreateView {
  readonly kind: 'create-view';
  readonly name: string;
  readonly sql: string;
  readonly refreshSecs: number;
}

/** Puts the next link on an exhibit; link 0 opens it. Deciding numbers and seals it, so links of one turn follow each other. */
export interface LinkExhibit {
  readonly kind: 'link-exhibit';
  readonly exhibit: string;
  readonly open: boolean;
  readonly act: string;
  /** RFC 8785 JSON. */
  readonly recipe: string;
  /** Lower-case hex SHA-256. */
  readonly resultHash: string;
}

export interface RowRejection {
  readonly index: number;
  readonly code: string;
  readonly detail: string;
}

/** What a submitted command did. */
export interface Outcome {
  readonly kind: CommandKind;
  readonly accepted: number;
  readonly rejected: number;
  readonly errors: readonly RowRejection[];
  /** `_pk` of accepted rows, capped; `idsTruncated` says so. */
  readonly ids: readonly string[];
  readonly idsTruncated: boolean;
  /** system_from of the first and last row written; 0 when none was. */
  readonly systemFrom: bigint;
  readonly systemFromLast: bigint;
  /** False when the command changed nothing (a type registered again). */
  readonly changed: boolean;
  readonly durability: 'synced' | 'buffered';
  /** What an earlier command under the same receipt came to: this one wrote nothing. */
  readonly replayed?: true;
}
