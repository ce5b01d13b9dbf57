/** A client of ClickHouse's native protocol: as little of it as tests need, read from its own bytes and from no code of the door. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { uncompressSync } from 'lz4-napi';
import type { StoreWorld } from '../http/store-world.ts';

export const nativeSecret = 'native-secret-of-tests';

export type NativeCell = bigint | number | string | boolean | null | readonly number[];

export interface NativeBlock {
  readonly names: readonly string[];
  readonly types: readonly string[];
  readonly rows: readonly (readonly NativeCell[])[];
}

export interface NativeAnswer {
  readonly names: readonly string[];
  readonly types: readonly string[];
  readonly rows: readonly (readonly NativeCell[])[];
  /** Kinds of packets in their order. */
  readonly packets: readonly string[];
  readonly blocks: number;
  readonly profile: { readonly rows: number; readonly blocks: number; readonly beforeLimit: number | null } | null;
}

export class NativeError extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

export interface NativeOptions {
  readonly password?: string;
  readonly user?: string;
  readonly database?: string;
  readonly revision?: number;
  readonly compressed?: boolean;
}

export interface Asked {
  readonly settings?: Readonly<Record<string, string>>;
  readonly id?: string;
}

export const varint = (value: number): Buffer => {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 0x7f; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80);
  return Buffer.from([...bytes, rest]);
};
export const text = (value: string): Buffer => Buffer.concat([varint(Buffer.byteLength(value)), Buffer.from(value)]);

/** An empty block as clients send it, and the same in the frame that clickhouse-client 18.16.1 sends. */
const emptyBlock = Buffer.from('010002ffffffff000000', 'hex');
const emptyFrame = Buffer.from('a783ac6cd55c7a7cb5ac46bddb86e21482140000000a000000a0010002ffffffff000000', 'hex');

export const helloBytes = ({
  password = nativeSecret,
  user = 'default',
  database = '',
  revision = 54_453,
}: NativeOptions): Buffer =>
  Buffer.concat([varint(0), text('test'), varint(21), varint(12), varint(revision), text(database), text(user), text(password)]);

export function queryBytes(
  sql: string,
  { settings = {}, id = '' }: Asked = {},
  { revision = 54_453, compressed = false }: NativeOptions = {},
): Buffer {
  const stated = Object.entries(settings).flatMap(([name, value]) =>
    revision < 54_429 ? [text(name), varint(Number(value))] : [text(name), Buffer.from([0]), text(value)],
  );
  return Buffer.concat([
    varint(1),
    text(id),
    Buffer.from([1]),
    ...['', '', '0.0.0.0:0'].map(text),
    Buffer.from([1]),
    ...['tester', 'host', 'test'].map(text),
    ...[21, 12, revision].map(varint),
    text(''),
    varint(0),
    ...stated,
    text(''),
    varint(2),
    varint(compressed ? 1 : 0),
    text(sql),
  ]);
}

export const blockBytes = (compressed: boolean): Buffer =>
  Buffer.concat([varint(2), text(''), compressed ? emptyFrame : emptyBlock]);

interface Source {
  bytes(count: number): Promise<Buffer>;
}

const number = async (from: Source): Promise<number> => {
  let value = 0;
  for (let factor = 1; ; factor *= 0x80) {
    const byte = (await from.bytes(1))[0]!;
    value += (byte & 0x7f) * factor;
    if (byte < 0x80) return value;
  }
};
const string = async (from: Source): Promise<string> => (await from.bytes(await number(from))).toString();

class Frames implements Source {
  readonly #from: Source;
  #rest: Buffer = Buffer.alloc(0);

  constructor(from: Source) {
    this.#from = from;
  }

  async bytes(count: number): Promise<Buffer> {
    while (this.#rest.length < count) {
      const head = await this.#from.bytes(25);
      if (head[16] !== 0x82) throw new Error(`method ${head[16]}`);
      const packed = await this.#from.bytes(head.readUInt32LE(17) - 9);
      this.#rest = Buffer.concat([this.#rest, uncompressSync(Buffer.concat([head.subarray(21), packed]))]);
    }
    const taken = this.#rest.subarray(0, count);
    this.#rest = this.#rest.subarray(count);
    return taken;
  }
}

export class NativeClient implements Source {
  readonly socket: Socket;
  readonly #options: NativeOptions;
  #pieces: Buffer[] = [];
  #length = 0;
  #wake: () => void = () => undefined;
  #ended = false;

  private constructor(socket: Socket, options: NativeOptions) {
    this.socket = socket;
    this.#options = options;
    socket.on('data', (piece: Buffer) => {
      this.#pieces.push(piece);
      this.#length += piece.length;
      this.#wake();
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      this.#ended = true;
      this.#wake();
    });
  }

  /** Without a greeting. */
  static async bare(port: number, options: NativeOptions = {}): Promise<NativeClient> {
    const socket = connect(port, '127.0.0.1');
    const client = new NativeClient(socket, options);
    await once(socket, 'connect');
    return client;
  }

  static async connect(port: number, options: NativeOptions = {}): Promise<NativeClient> {
    const client = await NativeClient.bare(port, options);
    client.send(helloBytes(options));
    try {
      await client.greeting();
    } catch (error) {
      client.end();
      throw error;
    }
    return client;
  }

  send(...bytes: readonly Buffer[]): void {
    this.socket.write(Buffer.concat(bytes));
  }

  end(): void {
    this.socket.destroy();
  }

  /** Resolves once the other side has ended the connection. */
  async ended(): Promise<void> {
    while (!this.#ended) await new Promise<void>((resolve) => (this.#wake = resolve));
  }

  async bytes(count: number): Promise<Buffer> {
    while (this.#length < count) {
      if (this.#ended) throw new Error('the connection was ended');
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
    if (this.#pieces.length > 1) this.#pieces = [Buffer.concat(this.#pieces)];
    const [all] = this.#pieces as [Buffer];
    this.#pieces = [all.subarray(count)];
    this.#length -= count;
    return all.subarray(0, count);
  }

  /** Bytes that were not looked at. */
  get waiting(): number {
    return this.#length;
  }

  /** Resolves once something has come that was not looked at. */
  async begun(): Promise<void> {
    while (this.#length === 0 && !this.#ended) await new Promise<void>((resolve) => (this.#wake = resolve));
  }

  async greeting(): Promise<readonly (string | number)[]> {
    const kind = await number(this);
    if (kind === 2) throw await this.#exception();
    if (kind !== 0) throw new Error(`packet ${kind} in place of Hello`);
    const facts = [await string(this), await number(this), await number(this), await number(this)];
    return [...facts, await string(this), await string(this), await number(this)];
  }

  async ping(): Promise<void> {
    this.send(varint(4));
    const kind = await number(this);
    if (kind === 2) throw await this.#exception();
    if (kind !== 4) throw new Error(`packet ${kind} in place of Pong`);
  }

  async tables(names: readonly string[]): Promise<string[]> {
    this.send(varint(5), varint(names.length), ...names.flatMap((name) => [text('default'), text(name)]));
    if ((await number(this)) !== 9) throw new Error('not a status of tables');
    const there: string[] = [];
    for (let left = await number(this); left > 0; left--) {
      await string(this);
      there.push(await string(this));
      await this.bytes(1);
    }
    return there;
  }

  ask(sql: string, asked: Asked = {}): void {
    this.send(queryBytes(sql, asked, this.#options), blockBytes(this.#options.compressed ?? false));
  }

  cancel(): void {
    this.send(varint(3));
  }

  async query(sql: string, asked: Asked = {}): Promise<NativeAnswer> {
    this.ask(sql, asked);
    return this.answer();
  }

  async answer(): Promise<NativeAnswer> {
    const packets: string[] = [];
    const rows: (readonly NativeCell[])[] = [];
    let head: NativeBlock | null = null;
    let blocks = 0;
    let profile: NativeAnswer['profile'] = null;
    for (;;) {
      const kind = await number(this);
      switch (kind) {
        case 1: {
          await string(this);
          const block = await this.#block();
          head ??= block;
          packets.push(block.names.length === 0 ? 'end of rows' : block.rows.length === 0 ? 'header' : 'rows');
          for (const row of block.rows) rows.push(row);
          if (block.rows.length > 0) blocks++;
          break;
        }
        case 2:
          throw await this.#exception();
        case 3:
          for (let i = 0; i < ((this.#options.revision ?? 54_453) < 54_420 ? 3 : 5); i++) await number(this);
          packets.push('progress');
          break;
        case 5:
          packets.push('end');
          return { names: head?.names ?? [], types: head?.types ?? [], rows, packets, blocks, profile };
        case 6: {
          const [count, of] = [await number(this), await number(this), await number(this)];
          const limited = (await this.bytes(1))[0] === 1;
          const before = await number(this);
          await this.bytes(1);
          profile = { rows: count!, blocks: of!, beforeLimit: limited ? before : null };
          packets.push('profile');
          break;
        }
        default:
          throw new Error(`packet ${kind}`);
      }
    }
  }

  async #exception(): Promise<NativeError> {
    const code = (await this.bytes(4)).readInt32LE();
    const [, message] = [await string(this), await string(this), await string(this)];
    await this.bytes(1);
    return new NativeError(code, message!);
  }

  #block(): Promise<NativeBlock> {
    return readBlock(this.#options.compressed ? new Frames(this) : this, true);
  }
}

export async function readBlock(from: Source, hasInfo: boolean): Promise<NativeBlock> {
  if (hasInfo) {
    const info = await from.bytes(8);
    if (info.toString('hex') !== '010002ffffffff00') throw new Error(`a block says ${info.toString('hex')} of itself`);
  }
  const count = await number(from);
  const length = await number(from);
  const names: string[] = [];
  const types: string[] = [];
  const columns: NativeCell[][] = [];
  for (let i = 0; i < count; i++) {
    names.push(await string(from));
    const type = await string(from);
    types.push(type);
    columns.push(length === 0 ? [] : await readColumn(from, type, length));
  }
  return { names, types, rows: Array.from({ length }, (_, row) => columns.map((column) => column[row]!)) };
}

/** Blocks of `FORMAT Native`, one after the other. */
export async function readBlocks(bytes: Buffer): Promise<NativeBlock[]> {
  let at = 0;
  const from = {
    bytes: (count: number) => {
      if (at + count > bytes.length) return Promise.reject(new Error('a block is not whole'));
      at += count;
      return Promise.resolve(bytes.subarray(at - count, at));
    },
  };
  const blocks: NativeBlock[] = [];
  while (at < bytes.length) blocks.push(await readBlock(from, false));
  return blocks;
}

async function readColumn(from: Source, type: string, length: number): Promise<NativeCell[]> {
  const inner = /^Nullable\((.*)\)$/.exec(type)?.[1];
  if (inner !== undefined) {
    const nulls = Buffer.from(await from.bytes(length));
    const cells = await readColumn(from, inner, length);
    return cells.map((cell, i) => {
      if (nulls[i] !== 1) return cell;
      if (cell !== 0n && cell !== 0 && cell !== '' && cell !== false) throw new Error(`a NULL holds ${String(cell)}`);
      return null;
    });
  }
  if (type === 'Array(Float32)') {
    const ends = await readColumn(from, 'Int64', length);
    const total = Number(ends[length - 1]);
    const floats = await from.bytes(total * 4);
    return ends.map((end, i) => {
      const start = i === 0 ? 0 : Number(ends[i - 1]);
      return Array.from({ length: Number(end) - start }, (_, k) => floats.readFloatLE((start + k) * 4));
    });
  }
  const cells: NativeCell[] = [];
  for (let i = 0; i < length; i++) {
    if (type === 'String') cells.push(await string(from));
    else if (type === 'Int64' || type.startsWith('DateTime64(9')) cells.push((await from.bytes(8)).readBigInt64LE());
    else if (type === 'Float64') cells.push((await from.bytes(8)).readDoubleLE());
    else if (type === 'UInt8') cells.push((await from.bytes(1))[0]!);
    else if (type === 'Bool') cells.push((await from.bytes(1))[0] === 1);
    else throw new Error(`a type that clients do not know: ${type}`);
  }
  return cells;
}

export const nativePort = (world: StoreWorld): number => world.others.find(({ name }) => name === 'columnar-native')!.port;

/** What somebody of this organisation is answered; null: he names none. */
export async function asNative<T>(
  world: StoreWorld,
  path: string | null,
  run: (client: NativeClient) => Promise<T>,
  options: NativeOptions = {},
): Promise<T> {
  const client = await NativeClient.connect(nativePort(world), {
    user: path === null ? 'default' : `default@${path}`,
    ...options,
  });
  try {
    return await run(client);
  } finally {
    client.end();
  }
}
