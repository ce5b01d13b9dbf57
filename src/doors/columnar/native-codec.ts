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
  readonly settings: Stated | null;
  readonly count: number;
}

/** Settings as a linked list, the last one first: states of the decoder share it, so it must never be changed in place. */
interface Stated {
  readonly name: string;
  readonly value: string;
  readonly before: Stated | null;
}

/** Clients of 2018: the greeting has all its fields since, and so have the facts of a client in a query. */
export const revisionMin = 54_401;
/** From this revision on a setting of any type is sent as text. */
const textSettingsFrom = 54_429;
const packets = { hello: 0, query: 1, data: 2, cancel: 3, ping: 4, tablesStatus: 5, keepAlive: 6 } as const;
/** Any text but that of a query. */
const textBytesMax = 4_096;
const settingsMax = 1_024;
const tablesMax = 64;
/** The stage at which a query is answered as a whole. */
const complete = 2;

export const nativeCodec: Codec<NativeState, NativeMessage> = {
  start: { at: 'hello' },
  cost: { part: 400, byte: 0.25 },
  partsInTurn: settingsMax,
  decode,
};

const refusal = (why: string): ServiceError => new ServiceError('REL_INVALID', why);

function decode(state: NativeState, bytes: Buffer): Decoded<NativeState, NativeMessage> {
  const fields = new Fields(bytes);
  if (state.at === 'hello') return decodeHello(fields, bytes);
  if (state.query !== null) return decodeSettings(fields, state, state.query);
  const packet = fields.number();
  if (fields.needs > 0) return { needs: fields.needs };
  switch (packet) {
    case packets.query:
      return decodeQuery(fields, state);
    case packets.data:
      return decodeData(fields, bytes, state);
    case packets.cancel:
      return { message: { kind: 'cancel' }, taken: fields.at, state };
    case packets.ping:
      return { message: { kind: 'ping' }, taken: fields.at, state };
    case packets.keepAlive:
      return { message: { kind: 'keep-alive' }, taken: fields.at, state };
    case packets.tablesStatus:
      return decodeTables(fields, state);
    case packets.hello:
      throw refusal('Unexpected packet Hello received from client');
    default:
      throw refusal(`Unknown packet ${packet} from client`);
  }
}

function decodeHello(fields: Fields, bytes: Buffer): Decoded<NativeState, NativeMessage> {
  const state: NativeState = { at: 'hello' };
  // GET, POST, PUT, HEAD: a browser, or a client of the other columnar door.
  if (bytes[0] === 0x47 || bytes[0] === 0x50 || bytes[0] === 0x48) return { message: { kind: 'http' }, taken: 1, state };
  const packet = fields.number();
  if (fields.needs === 0 && packet !== packets.hello) throw refusal('Unexpected packet from client: it begins with Hello');
  fields.text();
  fields.number();
  fields.number();
  const revision = fields.number();
  const [database, user, password] = [fields.text(), fields.text(), fields.text()];
  if (fields.needs > 0) return { needs: fields.needs };
  if (revision < revisionMin) throw refusal(`clients of revision ${revisionMin} and later are served`);
  const message = { kind: 'hello', revision, database, user, password } as const;
  return { message, taken: fields.at, state: { at: 'open', revision, compressed: false, query: null } };
}

type OpenState = Extract<NativeState, { at: 'open' }>;

/** Decodes a query up to its settings. */
function decodeQuery(fields: Fields, state: OpenState): Decoded<NativeState, NativeMessage> {
  const id = fields.text();
  const kind = fields.byte();
  if (kind > 0) {
    for (let i = 0; i < 3; i++) fields.text();
    const carrier = fields.byte();
    if (fields.needs === 0 && carrier !== 1) throw refusal('a query comes from a client of this protocol');
    for (let i = 0; i < 3; i++) fields.text();
    for (let i = 0; i < 3; i++) fields.number();
    fields.text();
    fields.number();
  }
  if (fields.needs > 0) return { needs: fields.needs };
  return decodeSettings(fields, state, { from: fields.at, id, settings: null, count: 0 });
}

function decodeSettings(fields: Fields, state: OpenState, query: QueryState): Decoded<NativeState, NativeMessage> {
  let { from, settings, count } = query;
  const later = (): Decoded<NativeState, NativeMessage> => ({
    needs: fields.needs,
    state: { ...state, query: { ...query, from, settings, count } },
  });
  const asText = state.revision >= textSettingsFrom;
  for (;;) {
    fields.at = from;
    const name = fields.text();
    if (fields.needs > 0) return later();
    if (name === '') break;
    // Whether it may be ignored where it is unknown.
    if (asText) fields.byte();
    const value = asText || textSettings.has(name) ? fields.text() : String(fields.number());
    if (fields.needs > 0) return later();
    if (++count > settingsMax) throw refusal(`a query states at most ${settingsMax} settings`);
    settings = { name, value, before: settings };
    from = fields.at;
  }
  const stage = fields.number();
  const compression = fields.number();
  const text = fields.text(Infinity);
  if (fields.needs > 0) return later();
  if (stage !== complete)
    throw new ServiceError(
      'REL_NOT_IMPLEMENTED',
      'stages of a distributed query are not supported: this is no shard of a cluster',
    );
  const compressed = compression !== 0;
  const message = { kind: 'query', id: query.id, settings: inOrder(settings), compressed, text } as const;
  return { message, taken: fields.at, state: { ...state, compressed, query: null } };
}

function inOrder(last: Stated | null): readonly (readonly [string, string])[] {
  const list: [string, string][] = [];
  for (let each = last; each !== null; each = each.before) list.push([each.name, each.value]);
  return list.reverse();
}

function decodeData(fields: Fields, bytes: Buffer, state: OpenState): Decoded<NativeState, NativeMessage> {
  const name = fields.text();
  if (fields.needs > 0) return { needs: fields.needs };
  const message = { kind: 'empty-block' } as const;
  if (!state.compressed) {
    if (!isEmptyBlock(fields)) throw notTaken(name);
    return fields.needs > 0 ? { needs: fields.needs } : { message, taken: fields.at, state };
  }
  const frame = decompressBlock(bytes, fields.at);
  if ('needs' in frame) return frame;
  const inner = new Fields(frame.raw);
  if (!isEmptyBlock(inner)) throw notTaken(name);
  if (inner.needs > 0 || inner.at !== frame.raw.length) throw refusal('a compressed block is malformed');
  return { message, taken: frame.end, state };
}

/** Whether a block has neither columns nor rows, behind its header. True as well while more bytes are needed. */
function isEmptyBlock(fields: Fields): boolean {
  for (let field = fields.number(); field !== 0; field = fields.number()) {
    if (field === 1) fields.byte();
    else if (field === 2) fields.skip(4);
    else throw refusal(`unknown field in the header of a block: ${field}`);
  }
  const columns = fields.number();
  const rows = fields.number();
  return fields.needs > 0 || (columns === 0 && rows === 0);
}

const notTaken = (name: string): ServiceError =>
  new ServiceError(
    'REL_NOT_IMPLEMENTED',
    `rows that come with a query${name === '' ? '' : ` (external table ${JSON.stringify(name)})`} are not taken: write them through another door`,
  );

function decodeTables(fields: Fields, state: OpenState): Decoded<NativeState, NativeMessage> {
  const count = fields.number();
  if (fields.needs === 0 && count > tablesMax) throw refusal(`the state of at most ${tablesMax} tables is asked for at once`);
  const tables: TableName[] = [];
  while (fields.needs === 0 && tables.length < count) {
    // No fewer bytes than these are to come: who sends them one by one has them looked at seldom.
    if (fields.lack(2 * (count - tables.length))) break;
    tables.push({ database: fields.text(), table: fields.text() });
  }
  if (fields.needs > 0) return { needs: fields.needs };
  return { message: { kind: 'tables-status', tables }, taken: fields.at, state };
}

/** Reads fields as long as there are bytes; from the first that is not whole on it only tells how many it needs. */
class Fields {
  at = 0;
  /** 0: every field so far was whole. */
  needs = 0;
  readonly #bytes: Buffer;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  byte(): number {
    return this.skip(1) ? this.#bytes[this.at - 1]! : 0;
  }

  /** A varint of up to 53 bits. */
  number(): number {
    let value = 0;
    let factor = 1;
    for (let i = 0; ; i++) {
      if (i === 8) throw refusal('a number has too many bytes');
      if (!this.skip(1)) return 0;
      const byte = this.#bytes[this.at - 1]!;
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) break;
      factor *= 0x80;
    }
    if (!Number.isSafeInteger(value)) throw refusal('a number has too many bytes');
    return value;
  }

  text(bytesMax = textBytesMax): string {
    const length = this.number();
    if (length > bytesMax) throw new ServiceError('REL_TOO_LARGE', `a text has at most ${bytesMax} bytes here`);
    if (!this.skip(length)) return '';
    return utf8(this.#bytes.subarray(this.at - length, this.at));
  }

  skip(length: number): boolean {
    if (this.needs > 0 || this.lack(length)) return false;
    this.at += length;
    return true;
  }

  /** Whether so many bytes are not there: then they are needed. */
  lack(length: number): boolean {
    if (this.at + length <= this.#bytes.length) return false;
    this.needs = this.at + length;
    return true;
  }
}

/** Settings that clients send as texts where they send others as numbers: the servers before 2019, which know their types. */
const textSettings: ReadonlySet<string> = new Set(
  (
    'load_balancing totals_mode totals_auto_threshold network_compression_method distributed_product_mode ' +
    'count_distinct_implementation join_default_strictness join_algorithm format_schema read_overflow_mode group_by_overflow_mode ' +
    'sort_overflow_mode result_overflow_mode timeout_overflow_mode set_overflow_mode join_overflow_mode transfer_overflow_mode ' +
    'distinct_overflow_mode format_csv_delimiter date_time_input_format send_logs_level max_streams_to_max_threads_ratio ' +
    'memory_tracker_fault_probability input_format_allow_errors_ratio max_streams_multiplier_for_merge_tables'
  ).split(' '),
);
