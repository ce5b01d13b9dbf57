/**
 * What a caller may ask to be written. A command and the current state become entries in `commands.ts` of the
 * projection that owns it: pure, so testable without a log, a clock or a disk.
 */
import type { RowBatch } from '../log/columns.ts';
import type { GraphTrigger, PropertyDefinition, Provenance, TokenRecord } from '../log/entry.ts';

export type Command = PutRows | DeleteRows | RemoveRows | RegisterType | EvolveType | MintToken | RotateToken | RevokeToken;

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
}
