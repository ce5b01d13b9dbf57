/** A client of the gRPC door, made of its own .proto. */
import {
  type ChannelCredentials,
  type ChannelOptions,
  type Client,
  credentials,
  loadPackageDefinition,
  Metadata,
  type ServiceError as RpcError,
} from '@grpc/grpc-js';
import { loadProto } from '../../../src/doors/grpc/server.ts';
import type { StoreWorld } from '../http/store-world.ts';

const protoFolder = new URL('../../../src/doors/grpc/', import.meta.url);
export const grpcSecret = 'grpc-secret';

/** Members as the library decodes them. */
type Member = ReturnType<typeof JSON.parse>;
type Message = Readonly<Record<string, Member>>;

/** The way to the door: in the clear on this machine, unless said otherwise. */
export interface Channel {
  readonly host?: string;
  readonly by?: ChannelCredentials;
  readonly options?: ChannelOptions;
}

export interface Told {
  readonly code: number;
  readonly reason: string;
  readonly correlationId: string;
  readonly retries: boolean;
}

export class GrpcClient {
  readonly raw: Client & Record<string, (...given: Member[]) => Member>;
  readonly #metadata: Metadata;

  constructor(
    world: Pick<StoreWorld, 'others'>,
    given: Readonly<Record<string, string>> = {},
    key: string | null = grpcSecret,
    { host = '127.0.0.1', by = credentials.createInsecure(), options = {} }: Channel = {},
  ) {
    const { port } = world.others.find(({ name }) => name === 'grpc')!;
    const loaded = loadPackageDefinition(loadProto(protoFolder, 'annals.proto')) as unknown as {
      annals: { v1: { Annals: new (address: string, by: unknown, options: object) => GrpcClient['raw'] } };
    };
    this.raw = new loaded.annals.v1.Annals(`${host}:${port}`, by, { 'grpc.ssl_target_name_override': 'localhost', ...options });
    this.#metadata = new Metadata();
    if (key !== null) this.#metadata.set('authorization', `Bearer ${key}`);
    for (const [name, value] of Object.entries(given)) this.#metadata.set(name, value);
  }

  call(method: string, request: Message, options: object = {}): Promise<Message> {
    return new Promise((resolve, reject) => {
      this.raw[method]!(request, this.#metadata, options, (error: RpcError | null, reply: Message) =>
        error === null ? resolve(reply) : reject(error),
      );
    });
  }

  stream(method: string, request: Message, options: object = {}) {
    return this.raw[method]!(request, this.#metadata, options) as AsyncIterable<Message> & { cancel(): void };
  }

  async all(method: string, request: Message, options: object = {}): Promise<readonly Message[]> {
    const messages: Message[] = [];
    for await (const message of this.stream(method, request, options)) messages.push(message);
    return messages;
  }

  /** Rows of a question, cells by name. */
  async rows(sql: string, more: Message = {}): Promise<readonly Message[]> {
    return rowsOf(await this.all('Query', { sql, ...more }));
  }

  ingest(head: Message, pieces: readonly string[]): Promise<Message> {
    return new Promise((resolve, reject) => {
      const stream = this.raw['Ingest']!(this.#metadata, (error: RpcError | null, reply: Message) =>
        error === null ? resolve(reply) : reject(error),
      );
      stream.write({ head });
      for (const piece of pieces) stream.write({ rows: Buffer.from(piece) });
      stream.end();
    });
  }

  close(): void {
    this.raw.close();
  }
}

export function rowsOf(messages: readonly Message[]): Message[] {
  const names = (messages[0]!['header'].columns as { name: string }[]).map(({ name }) => name);
  return messages.flatMap(({ rows }) =>
    rows === undefined
      ? []
      : (rows.rows as { values: Message[] }[]).map(({ values }) =>
          Object.fromEntries(values.map((value, i) => [names[i]!, Object.values(value)[0] ?? null])),
        ),
  );
}

/** What a call is refused with. */
export async function refusalOf(asked: Promise<unknown>): Promise<Told> {
  const error = await asked.then(
    () => {
      throw new Error('the call was answered');
    },
    (refused: RpcError) => refused,
  );
  const [details] = error.metadata.get('grpc-status-details-bin');
  const text = Buffer.isBuffer(details) ? details.toString('latin1') : '';
  return {
    code: error.code,
    reason: /REL_[A-Z_]+/.exec(text)?.[0] ?? '',
    correlationId: /correlation_id.\x24?.?([0-9a-f-]{36})/s.exec(text)?.[1] ?? '',
    retries: text.includes('google.rpc.RetryInfo'),
  };
}
