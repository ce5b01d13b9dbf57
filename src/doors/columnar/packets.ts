/** The packets that the native door sends, without those of rows. */
import { textBytes, varintBytes } from './varint.ts';
import { spoken } from './column-types.ts';

const serverPackets = {
  hello: 0,
  data: 1,
  exception: 2,
  progress: 3,
  pong: 4,
  endOfStream: 5,
  profile: 6,
  tablesStatus: 9,
} as const;
/** From this revision on, progress includes written rows. */
const writtenRowsRevision = 54_420;

export const pong = Buffer.from([serverPackets.pong]);
export const endOfStream = Buffer.from([serverPackets.endOfStream]);
/** Rows of the table without a name. */
export const dataHead = Buffer.from([serverPackets.data, 0]);
/** The header of a block: no rows beyond a limit (1), no bucket (2), and nothing else. */
export const blockInfo = Buffer.from([1, 0, 2, 0xff, 0xff, 0xff, 0xff, 0]);
/** Neither columns nor rows. */
export const emptyBlock = Buffer.from([...blockInfo, 0, 0]);

export function hello(): Buffer {
  const { name, major, minor, patch, revision, timezone } = spoken;
  return Buffer.concat([
    varintBytes(serverPackets.hello),
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
export function exception(exceptionCode: number, exceptionDetail: string): Buffer {
  const codeBytes = Buffer.alloc(4);
  codeBytes.writeInt32LE(exceptionCode);
  return Buffer.concat([
    varintBytes(serverPackets.exception),
    codeBytes,
    ...['DB::Exception', `DB::Exception: ${exceptionDetail}`, ''].map(textBytes),
    Buffer.from([0]),
  ]);
}

export function progress(
  { rows: progressRows, bytes: progressBytes }: { readonly rows: number; readonly bytes: number },
  clientRevision: number,
): Buffer {
  const writtenFigures = clientRevision >= writtenRowsRevision ? [0, 0] : [];
  return Buffer.concat([serverPackets.progress, progressRows, progressBytes, progressRows, ...writtenFigures].map(varintBytes));
}

export interface Profile {
  readonly rows: number;
  readonly blocks: number;
  readonly bytes: number;
  /** Rows that there were before LIMIT, at least; null: there is none. */
  readonly beforeLimit: number | null;
}

export function profile({ rows: profileRows, blocks: profileBlocks, bytes: profileBytes, beforeLimit }: Profile): Buffer {
  const isLimited = beforeLimit === null ? 0 : 1;
  return Buffer.concat(
    [serverPackets.profile, profileRows, profileBlocks, profileBytes, isLimited, beforeLimit ?? profileRows, 1].map(varintBytes),
  );
}

/** The status of existing tables: none is a replica. */
export function tablesStatus(statusTables: readonly { readonly database: string; readonly table: string }[]): Buffer {
  return Buffer.concat([
    ...[serverPackets.tablesStatus, statusTables.length].map(varintBytes),
    ...statusTables.flatMap(({ database, table: tableName }) => [textBytes(database), textBytes(tableName), Buffer.from([0])]),
  ]);
}
