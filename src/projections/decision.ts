/** Input and result of every decide function: entries to append, and facts for the caller. Pure. */
import type { Vector } from '../log/values/columns.ts';
import type { EntryContext, EntryDraft, RowsBody, TypeDefinition } from '../log/entries/entry.ts';
import type { NextPosition } from '../log/log-store.ts';
import { assert, type ServiceError } from '../errors.ts';
import type { DeleteRows, Outcome, PutRows, RowRejection } from './command.ts';
import type { SealText } from './sealed-definitions.ts';

/** A predicate over columns of a type: 1 for the rows that pass, rows as `RowBlock` has them. */
export interface RowTest {
  readonly columns: readonly string[];
  test(columns: readonly Vector[], selection: Int32Array | null, first: number, count: number, out: Uint8Array): void;
}

/** Row-level permissions, checked before a command writes rows. */
export interface RowCheck {
  /** null: every row of the type may be written; 'none': no row. */
  testFor(type: TypeDefinition): RowTest | null | 'none';
  /** Throws what refuses a type of which no row may be written. */
  refuse(type: TypeDefinition): never;
}

/** Checks of governance before rows are written. Absent: none. */
export interface WriteChecks {
  readonly rowCheck?: RowCheck | undefined;
  /** The refusal to write rows of a type that the command does not name itself; null where it may. */
  readonly refusalOf?: ((type: string) => ServiceError | null) | undefined;
  /** The checks of one step of a batch, in place of these. */
  readonly ofStep?: ((step: PutRows | DeleteRows) => WriteChecks) | undefined;
  /** For definitions, and for rows that are removed for good. */
  readonly textSeals?: TextSeals | undefined;
}

/** Chooses the subjects that seal the rows of a body. `stated`: as `PutRows.subject`. */
export interface RowSeals {
  subjectsOf(
    type: TypeDefinition,
    written: Pick<RowsBody, 'ops' | 'keys' | 'closes' | 'closeOffsets' | 'cells'>,
    path: string | null,
    stated?: string,
  ): Pick<RowsBody, 'subjects'>;
}

/** Seals texts that an erasure may have to make unreadable. */
export interface TextSeals {
  /** Under a key of its own. */
  seal(text: string): string;
  /** Under the key of the subject, which is made where there is none. */
  sealFor(tenant: string | null, subject: string, text: string): string;
  /** Whether something was sealed under a key of the subject that stands. */
  hasKey(tenant: string | null, subject: string): boolean;
}

export interface DecideContext extends WriteChecks {
  /** Principal, path and reason: becomes the context of every draft. Rows land in `entry.path`. */
  readonly entry: EntryContext;
  /** UUIDv7 text for a row that brings no key. */
  newKey(): string;
  /** Most tokens that may be registered and neither revoked nor expired. */
  readonly tokensMax: number;
  /** A batch has these for all of its steps: they know what steps before wrote. */
  readonly seals?: RowSeals | undefined;
}

/** Written field by field: one is made for every write, and fields behind a spread make another hidden class each time. */
export function decideContext(
  entry: EntryContext,
  { newKey, tokensMax }: Pick<DecideContext, 'newKey' | 'tokensMax'>,
  { rowCheck, refusalOf, ofStep, textSeals }: WriteChecks,
): { readonly [K in keyof Required<DecideContext>]: DecideContext[K] } {
  return { entry, newKey, tokensMax, rowCheck, refusalOf, ofStep, textSeals, seals: undefined };
}

/** Definitions are written sealed, or not at all: one in the clear would stay readable in every backup. */
export function sealerOf({ textSeals }: Pick<DecideContext, 'textSeals'>): SealText {
  assert(textSeals, 'a definition is decided where it can be sealed');
  return (text) => textSeals.seal(text);
}

/** `drafts` belong at `next`, in this order, in one append of the same turn. */
export interface Decision {
  readonly drafts: readonly EntryDraft[];
  readonly outcome: Omit<Outcome, 'durability' | 'replayed'>;
  /** The command was done before, and this entry holds what it came to. */
  readonly receiptLeaf?: number;
}

/** How much of a long reply is listed. */
export const outcomeLimits = { errorsListed: 1000, idsListed: 1000 } as const;

/** A command about one thing by name: a type or a token. */
export function decideOne(kind: Outcome['kind'], id: string, drafts: readonly EntryDraft[], next: NextPosition): Decision {
  const hasDrafts = drafts.length > 0;
  return {
    drafts,
    outcome: {
      kind,
      accepted: hasDrafts ? 1 : 0,
      rejected: 0,
      errors: [],
      ids: [id],
      idsTruncated: false,
      systemFrom: hasDrafts ? next.time : 0n,
      systemFromLast: hasDrafts ? next.time : 0n,
      changed: hasDrafts,
    },
  };
}

/** A command about rows that wrote nothing. */
export function decideNothing(kind: Outcome['kind'], rejected: number, errors: readonly RowRejection[]): Decision {
  return {
    drafts: [],
    outcome: {
      kind,
      accepted: 0,
      rejected,
      errors: errors.slice(0, outcomeLimits.errorsListed),
      ids: [],
      idsTruncated: false,
      systemFrom: 0n,
      systemFromLast: 0n,
      changed: false,
    },
  };
}
