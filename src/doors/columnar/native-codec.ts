/**
 * Messages of clients of ClickHouse's native protocol: a number for the kind, then its fields. No length is given, so messages
 * are read field by field, and each field once. Fields are those of the client's revision, or of ours where that is lower.
 * Source: clickhouse-client 18.16.1 as recorded, and the published protocol for messages of later clients.
 *
 * Only empty blocks are taken from clients; they end the data that may accompany a query. Rows are refused and end the
 * connection, since their end can't be found without reading them.
 */
import { ServiceError } from '../../errors.ts';
import type { Codec, Decoded } from '../shared/codec.ts';
import { utf8 } from '../shared/utf8.ts';
import { decompressBlock } from './compressed-blocks.ts';

export type NativeMessage =
  | {
      readonly kind: 'hello';
      readonly revision: number;
      readonly database: string;
      readonly user: string;
      readonly password: string;
    }
  /** The bytes begin like a request of HTTP. */
  | { readonly kind: 'http' }
  | NativeQuery
  | { readonly kind: 'empty-block' | 'ping' | 'cancel' | 'keep-alive' }
  | { readonly kind: 'tables-status'; readonly tables: readonly TableName[] };

export interface NativeQuery {
  readonly kind: 'query';
  readonly id: string;
  /** Names and values, in their order. */
  readonly settings: readonly (readonly [string, string])[];
  /** Blocks of both sides are compressed. */
  readonly compressed: boolean;
  readonly text: string;
}

export interface TableName {
  readonly database: string;
  readonly table: string;
}

export type NativeState =
  | { readonly at: 'hello' }
  | { readonly at: 'open'; readonly revision: number; readonly compressed: boolean; readonly query: QueryState | null };

/** A query whose head was read, and settings up to `from`. */
interface QueryState {
  readonly from: number;
  readonly id: string;
  readonly settings: StatedSetting | null;
  readonly count: number;
}

/** Settings as a linked list, the last one first: states of the decoder share it, so it must never be changed in place. */
interface StatedSetting {
  readonly name: string;
  readonly value: string;
  readonly before: StatedSetting | null;
}

/** Clients of 2018: the greeting has all its fields since, and so have the facts of a client in a query. */
export const revisionMin = 54_401;
/** From this revision on a setting of any type is sent as text. */
const textSettingsRevision = 54_429;
const clientPackets = { hello: 0, query: 1, data: 2, cancel: 3, ping: 4, tablesStatus: 5, keepAlive: 6 } as const;
/** Any text but that of a query. */
const packetTextBytesMax = 4_096;
const querySettingsMax = 1_024;
const statusTablesMax = 64;
/** The stage at which a query is answered as a whole. */
const completeStage = 2;

export const nativeCodec: Codec<NativeState, NativeMessage> = {
  start: { at: 'hello' },
  cost: { part: 400, byte: 0.25 },
  partsInTurn: querySettingsMax,
  decode: decodePacket,
};

const packetRefusal = (packetProblem: string): ServiceError => new ServiceError('REL_INVALID', packetProblem);

function decodePacket(nativeState: NativeState, packetBytes: Buffer): Decoded<NativeState, NativeMessage> {
  const packetFields = new PacketFields(packetBytes);
  if (nativeState.at === 'hello') return decodeHelloPacket(packetFields, packetBytes);
  if (nativeState.query !== null) return decodeQuerySettings(packetFields, nativeState, nativeState.query);
  const packetKind = packetFields.number();
  if (packetFields.needs > 0) return { needs: packetFields.needs };
  switch (packetKind) {
    case clientPackets.query:
      return decodeQueryPacket(packetFields, nativeState);
    case clientPackets.data:
      return decodeDataPacket(packetFields, packetBytes, nativeState);
    case clientPackets.cancel:
      return { message: { kind: 'cancel' }, taken: packetFields.at, state: nativeState };
    case clientPackets.ping:
      return { message: { kind: 'ping' }, taken: packetFields.at, state: nativeState };
    case clientPackets.keepAlive:
      return { message: { kind: 'keep-alive' }, taken: packetFields.at, state: nativeState };
    case clientPackets.tablesStatus:
      return decodeTablesStatus(packetFields, nativeState);
    case clientPackets.hello:
      throw packetRefusal('Unexpected packet Hello received from client');
    default:
      throw packetRefusal(`Unknown packet ${packetKind} from client`);
  }
}

function decodeHelloPacket(helloFields: PacketFields, helloBytes: Buffer): Decoded<NativeState, NativeMessage> {
  const helloState: NativeState = { at: 'hello' };
  // GET, POST, PUT, HEAD: a browser, or a client of the other columnar door.
  if (helloBytes[0] === 0x47 || helloBytes[0] === 0x50 || helloBytes[0] === 0x48)
    return { message: { kind: 'http' }, taken: 1, state: helloState };
  const packetKind = helloFields.number();
  if (helloFields.needs === 0 && packetKind !== clientPackets.hello)
    throw packetRefusal('Unexpected packet from client: it begins with Hello');
  helloFields.text();
  helloFields.number();
  helloFields.number();
  const clientRevision = helloFields.number();
  const [database, user, password] = [helloFields.text(), helloFields.text(), helloFields.text()];
  if (helloFields.needs > 0) return { needs: helloFields.needs };
  if (clientRevision < revisionMin) throw packetRefusal(`clients of revision ${revisionMin} and later are served`);
  const helloMessage = { kind: 'hello', revision: clientRevision, database, user, password } as const;
  return {
    message: helloMessage,
    taken: helloFields.at,
    state: { at: 'open', revision: clientRevision, compressed: false, query: null },
  };
}

type OpenNativeState = Extract<NativeState, { at: 'open' }>;

/** Decodes a query up to its settings. */
function decodeQueryPacket(queryFields: PacketFields, openState: OpenNativeState): Decoded<NativeState, NativeMessage> {
  const queryId = queryFields.text();
  const queryKind = queryFields.byte();
  if (queryKind > 0) {
    for (let i = 0; i < 3; i++) queryFields.text();
    const clientInterface = queryFields.byte();
    if (queryFields.needs === 0 && clientInterface !== 1) throw packetRefusal('a query comes from a client of this protocol');
    for (let i = 0; i < 3; i++) queryFields.text();
    for (let i = 0; i < 3; i++) queryFields.number();
    queryFields.text();
    queryFields.number();
  }
  if (queryFields.needs > 0) return { needs: queryFields.needs };
  return decodeQuerySettings(queryFields, openState, { from: queryFields.at, id: queryId, settings: null, count: 0 });
}

function decodeQuerySettings(
  queryFields: PacketFields,
  openState: OpenNativeState,
  queryState: QueryState,
): Decoded<NativeState, NativeMessage> {
  let { from: settingOffset, settings: statedSettings, count: settingCount } = queryState;
  const needsMore = (): Decoded<NativeState, NativeMessage> => ({
    needs: queryFields.needs,
    state: { ...openState, query: { ...queryState, from: settingOffset, settings: statedSettings, count: settingCount } },
  });
  const areSettingsText = openState.revision >= textSettingsRevision;
  for (;;) {
    queryFields.at = settingOffset;
    const settingName = queryFields.text();
    if (queryFields.needs > 0) return needsMore();
    if (settingName === '') break;
    // Whether it may be ignored where it is unknown.
    if (areSettingsText) queryFields.byte();
    const settingValue = areSettingsText || oldTextSettings.has(settingName) ? queryFields.text() : String(queryFields.number());
    if (queryFields.needs > 0) return needsMore();
    if (++settingCount > querySettingsMax) throw packetRefusal(`a query states at most ${querySettingsMax} settings`);
    statedSettings = { name: settingName, value: settingValue, before: statedSettings };
    settingOffset = queryFields.at;
  }
  const queryStage = queryFields.number();
  const compressionFlag = queryFields.number();
  const queryText = queryFields.text(Infinity);
  if (queryFields.needs > 0) return needsMore();
  if (queryStage !== completeStage)
    throw new ServiceError(
      'REL_NOT_IMPLEMENTED',
      'stages of a distributed query are not supported: this is no shard of a cluster',
    );
  const isCompressed = compressionFlag !== 0;
  const queryMessage = {
    kind: 'query',
    id: queryState.id,
    settings: settingsInOrder(statedSettings),
    compressed: isCompressed,
    text: queryText,
  } as const;
  return { message: queryMessage, taken: queryFields.at, state: { ...openState, compressed: isCompressed, query: null } };
}

function settingsInOrder(lastSetting: StatedSetting | null): readonly (readonly [string, string])[] {
  const settingPairs: [string, string][] = [];
  for (let statedSetting = lastSetting; statedSetting !== null; statedSetting = statedSetting.before)
    settingPairs.push([statedSetting.name, statedSetting.value]);
  return settingPairs.reverse();
}

function decodeDataPacket(
  dataFields: PacketFields,
  dataBytes: Buffer,
  openState: OpenNativeState,
): Decoded<NativeState, NativeMessage> {
  const externalTable = dataFields.text();
  if (dataFields.needs > 0) return { needs: dataFields.needs };
  const emptyBlockMessage = { kind: 'empty-block' } as const;
  if (!openState.compressed) {
    if (!isEmptyBlock(dataFields)) throw externalTableRefusal(externalTable);
    return dataFields.needs > 0
      ? { needs: dataFields.needs }
      : { message: emptyBlockMessage, taken: dataFields.at, state: openState };
  }
  const compressedFrame = decompressBlock(dataBytes, dataFields.at);
  if ('needs' in compressedFrame) return compressedFrame;
  const blockFields = new PacketFields(compressedFrame.raw);
  if (!isEmptyBlock(blockFields)) throw externalTableRefusal(externalTable);
  if (blockFields.needs > 0 || blockFields.at !== compressedFrame.raw.length)
    throw packetRefusal('a compressed block is malformed');
  return { message: emptyBlockMessage, taken: compressedFrame.end, state: openState };
}

/** Whether a block has neither columns nor rows, behind its header. True as well while more bytes are needed. */
function isEmptyBlock(blockFields: PacketFields): boolean {
  for (let blockInfoField = blockFields.number(); blockInfoField !== 0; blockInfoField = blockFields.number()) {
    if (blockInfoField === 1) blockFields.byte();
    else if (blockInfoField === 2) blockFields.skip(4);
    else throw packetRefusal(`unknown field in the header of a block: ${blockInfoField}`);
  }
  const blockColumnCount = blockFields.number();
  const blockRowCount = blockFields.number();
  return blockFields.needs > 0 || (blockColumnCount === 0 && blockRowCount === 0);
}

const externalTableRefusal = (externalTable: string): ServiceError =>
  new ServiceError(
    'REL_NOT_IMPLEMENTED',
    `rows that come with a query${externalTable === '' ? '' : ` (external table ${JSON.stringify(externalTable)})`} are not taken: write them through another door`,
  );

function decodeTablesStatus(statusFields: PacketFields, openState: OpenNativeState): Decoded<NativeState, NativeMessage> {
  const tableCount = statusFields.number();
  if (statusFields.needs === 0 && tableCount > statusTablesMax)
    throw packetRefusal(`the state of at most ${statusTablesMax} tables is asked for at once`);
  const statusTables: TableName[] = [];
  while (statusFields.needs === 0 && statusTables.length < tableCount) {
    // No fewer bytes than these are to come: who sends them one by one has them looked at seldom.
    if (statusFields.lack(2 * (tableCount - statusTables.length))) break;
    statusTables.push({ database: statusFields.text(), table: statusFields.text() });
  }
  if (statusFields.needs > 0) return { needs: statusFields.needs };
  return { message: { kind: 'tables-status', tables: statusTables }, taken: statusFields.at, state: openState };
}

/** Reads fields as long as there are bytes; from the first that is not whole on it only tells how many it needs. */
class PacketFields {
  at = 0;
  /** 0: every field so far was whole. */
  needs = 0;
  readonly #packetBytes: Buffer;

  constructor(packetBytes: Buffer) {
    this.#packetBytes = packetBytes;
  }

  byte(): number {
    return this.skip(1) ? this.#packetBytes[this.at - 1]! : 0;
  }

  /** A varint of up to 53 bits. */
  number(): number {
    let varintValue = 0;
    let varintFactor = 1;
    for (let i = 0; ; i++) {
      if (i === 8) throw packetRefusal('a number has too many bytes');
      if (!this.skip(1)) return 0;
      const varintByte = this.#packetBytes[this.at - 1]!;
      varintValue += (varintByte & 0x7f) * varintFactor;
      if (varintByte < 0x80) break;
      varintFactor *= 0x80;
    }
    if (!Number.isSafeInteger(varintValue)) throw packetRefusal('a number has too many bytes');
    return varintValue;
  }

  text(bytesMax = packetTextBytesMax): string {
    const textLength = this.number();
    if (textLength > bytesMax) throw new ServiceError('REL_TOO_LARGE', `a text has at most ${bytesMax} bytes here`);
    if (!this.skip(textLength)) return '';
    return utf8(this.#packetBytes.subarray(this.at - textLength, this.at));
  }

  skip(fieldLength: number): boolean {
    if (this.needs > 0 || this.lack(fieldLength)) return false;
    this.at += fieldLength;
    return true;
  }

  /** Whether so many bytes are not there: then they are needed. */
  lack(fieldLength: number): boolean {
    if (this.at + fieldLength <= this.#packetBytes.length) return false;
    this.needs = this.at + fieldLength;
    return true;
  }
}

/** Settings that clients send as texts where they send others as numbers: the servers before 2019, which know their types. */
const oldTextSettings: ReadonlySet<string> = new Set(
  (
    'load_balancing totals_mode totals_auto_threshold network_compression_method distributed_product_mode ' +
    'count_distinct_implementation join_default_strictness join_algorithm format_schema read_overflow_mode group_by_overflow_mode ' +
    'sort_overflow_mode result_overflow_mode timeout_overflow_mode set_overflow_mode join_overflow_mode transfer_overflow_mode ' +
    'distinct_overflow_mode format_csv_delimiter date_time_input_format send_logs_level max_streams_to_max_threads_ratio ' +
    'memory_tracker_fault_probability input_format_allow_errors_ratio max_streams_multiplier_for_merge_tables'
  ).split(' '),
);
