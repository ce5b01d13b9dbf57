/**
 * Closed-loop load on a few connections of the Bolt door, as lean as that on `/query`: a driver takes more time than the server, and
 * one that waits for its client commits the records of fewer requests at a time.
 */
import { connect, type Socket } from 'node:net';
import type { PackStreamValue } from '../src/doors/graph/packstream.ts';
import { handshakeBytes, helloBytes, map, messageBytes } from '../test/doors/graph/bolt-client.ts';

const tags = { run: 0x10, pull: 0x3f, success: 0x70, record: 0x71, failure: 0x7f } as const;

export interface BoltLoad {
  readonly port: number;
  readonly secret: string;
  readonly connections: number;
  readonly seconds: number;
  readonly text: string;
  readonly parameters: (n: number) => Readonly<Record<string, PackStreamValue>>;
}

/** How many questions were answered, each by one record. */
export async function boltLoad({ port, secret, connections, seconds, text, parameters }: BoltLoad): Promise<number> {
  const pull = messageBytes(tags.pull, map({ n: 1_000n }));
  const asked = (n: number): Buffer =>
    Buffer.concat([messageBytes(tags.run, text, map(parameters(n)), map({ mode: 'r' })), pull]);
  const opened = await Promise.all(Array.from({ length: connections }, () => Client.open(port, secret)));
  const until = performance.now() + seconds * 1_000;
  let n = 0;
  await Promise.all(
    opened.map(async (client) => {
      while (performance.now() < until) {
        const records = await client.ask(asked(n++), 2);
        if (records !== 1) throw new Error(`${records} records for one key`);
      }
      client.close();
    }),
  );
  return n;
}

class Client {
  readonly #socket: Socket;
  #received: Buffer = Buffer.alloc(0);
  #summaries = 0;
  #records = 0;
  #done: ((records: number) => void) | null = null;
  #failed: ((error: Error) => void) | null = null;

  private constructor(socket: Socket) {
    this.#socket = socket.setNoDelay(true);
    socket.on('error', (error) => this.#failed?.(error));
    socket.on('close', () => this.#failed?.(new Error('the server closed the connection')));
  }

  static async open(port: number, secret: string): Promise<Client> {
    const socket = await new Promise<Socket>((resolve, reject) => {
      const opened: Socket = connect(port, '127.0.0.1', () => resolve(opened)).once('error', reject);
    });
    const agreed = new Promise((resolve) => socket.once('data', resolve));
    socket.write(handshakeBytes(0, 4, 4));
    await agreed;
    const client = new Client(socket);
    socket.on('data', (bytes) => client.#read(bytes as Buffer));
    await client.ask(helloBytes(secret), 1);
    return client;
  }

  /** Resolves with the number of records before the last of so many summaries. */
  ask(bytes: Buffer, summaries: number): Promise<number> {
    return new Promise((resolve, reject) => {
      [this.#summaries, this.#records, this.#done, this.#failed] = [summaries, 0, resolve, reject];
      this.#socket.write(bytes);
    });
  }

  close(): void {
    this.#failed = null;
    this.#socket.destroy();
  }

  /** A message of these answers is one chunk: its length, its bytes, and a chunk of none. */
  #read(bytes: Buffer): void {
    const all = this.#received.length === 0 ? bytes : Buffer.concat([this.#received, bytes]);
    let at = 0;
    for (let end; at + 2 <= all.length && (end = at + 4 + all.readUInt16BE(at)) <= all.length; at = end) this.#note(all[at + 3]!);
    this.#received = all.subarray(at);
  }

  #note(tag: number): void {
    if (tag === tags.failure) this.#failed?.(new Error('a question was refused'));
    else if (tag === tags.record) this.#records++;
    else if (--this.#summaries === 0) this.#done?.(this.#records);
  }
}
