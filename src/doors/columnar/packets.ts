/** The packets that the native door sends, without those of rows. */
import { textBytes, varintBytes } from './varint.ts';
import { spoken } from './column-types.ts';

const kinds = { hello: 0, data: 1, exception: 2, progress: 3, pong: 4, endOfStream: 5, profile: 6, tablesStatus: 9 } as const;
/** From this revision on, progress includes written rows. */
const writtenFrom = 54_420;

export const pong = Buffer.from([kinds.pong]);
export const endOfStream = Buffer.from([kinds.endOfStream]);
/** Rows of the table without a name. */
export const dataHead = Buffer.from([kinds.data, 0]);
/** The header of a block: no rows beyond a limit (1), no bucket (2), and nothing else. */
export const blockInfo = Buffer.from([1, 0, 2, 0xff, 0xff, 0xff, 0xff, 0]);
/** Neither columns nor rows. */
export const emptyBlock = Buffer.from([...blockInfo, 0, 0]);

export function hello(): Buffer {
  const { name, major, minor, patch, revision, timezone } = spoken;
  return Buffer.concat([
    varintBytes(kinds.hello),
    textBytes(name),
    ...[major, minor, revision].map(varintBytes),
    textBytes(timezone),
    textBytes('annals'),
    varintBytes(patch),
  ]);
}

/**
 * An exception as ClickHouse writes it: the name of the class, again before the text, a stack trace, always empty here, and no
 * cause.
 */
export function exception(code: number, detail: string): Buffer {
  const number = Buffer.alloc(4);
  number.writeInt32LE(code);
  return Buffer.concat([
    varintBytes(kinds.exception),
    number,
    ...['DB::Exception', `DB::Exception: ${detail}`, ''].map(textBytes),
    Buffer.from([0]),
  ]);
}

export function progress({ rows, bytes }: { readonly rows: number; readonly bytes: number }, revision: number): Buffer {
  const written = revision >= writtenFrom ? [0, 0] : [];
  return Buffer.concat([kinds.progress, rows, bytes, rows, ...written].map(varintBytes));
}

export interface Profile {
  readonly rows: number;
  readonly blocks: number;
  readonly bytes: number;
  /** Rows that there were before LIMIT, at least; null: there is none. */
  readonly beforeLimit: number | null;
}

export function profile({ rows, blocks, bytes, beforeLimit }: Profile): Buffer {
  const limited = beforeLimit === null ? 0 : 1;
  return Buffer.concat([kinds.profile, rows, blocks, bytes, limited, beforeLimit ?? rows, 1].map(varintBytes));
}

/** The status of existing tables: none is a replica. */
export function tablesStatus(tables: readonly { readonly database: string; readonly table: string }[]): Buffer {
  return Buffer.concat([
    ...[kinds.tablesStatus, tables.length].map(varintBytes),
    ...tables.flatMap(({ database, table }) => [textBytes(database), textBytes(table), Buffer.from([0])]),
  ]);
}
