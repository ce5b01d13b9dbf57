/**
 * gRPC by frames, as lean as the clients that the other doors are measured by: a library for clients takes more time than the server, and
 * one that waits for its client commits the records of fewer calls at a time.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { bytesField, protobufMessage } from '../src/doors/grpc/protobuf.ts';
import { callBegun, frame, messageSent, preface } from '../test/hostile/frames.ts';

const types = { data: 0, headers: 1, reset: 3, settings: 4, ping: 6, goAway: 7 } as const;
const [ack, endStream] = [1, 1];
const headBytes = 9;
/** Unread bytes of a stream, and of a connection. Clients of Flight find a window of that size by themselves. */
const windowBytes = 4 << 20;
const windowAtFirst = 65_535;
const initialWindow = 4;

class Connection {
  readonly #socket: Socket;
  readonly #secret: string;
  /** By stream: the bytes that came of its answer, and who is told of its end. */
  readonly #calls = new Map<number, { bytes: number; readonly end: (bytes: number) => void }>();
  #received: Buffer = Buffer.alloc(0);
  #said: Buffer[] = [];
  #stream = -1;
  #unread = 0;
  readonly failed: Promise<never>;

  private constructor(socket: Socket, secret: string) {
    this.#socket = socket;
    this.#secret = secret;
    this.failed = new Promise((_, reject) => {
      socket.on('error', reject);
      socket.on('data', (bytes: Buffer) => {
        try {
          this.#read(bytes);
        } catch (error) {
          reject(error as Error);
          socket.destroy();
        }
      });
    });
    this.failed.catch(() => undefined);
    const setting = Buffer.alloc(6);
    setting.writeUInt16BE(initialWindow);
    setting.writeUInt32BE(windowBytes, 2);
    socket.write(Buffer.concat([preface, frame('settings', 0, 0, setting), windowFrame(0, windowBytes - windowAtFirst)]));
  }

  static async open(port: number, secret: string): Promise<Connection> {
    const socket = connect(port, '127.0.0.1').setNoDelay(true);
    await once(socket, 'connect');
    return new Connection(socket, secret);
  }

  close(): void {
    this.#socket.destroy();
  }

  /** `end` gets the number of bytes of the answer. What is begun in one turn leaves together. */
  begin(method: string, asked: Buffer, end: (bytes: number) => void): void {
    const stream = (this.#stream += 2);
    this.#calls.set(stream, { bytes: 0, end });
    this.#say(Buffer.concat([callBegun(stream, method, this.#secret), messageSent(stream, asked, false)]));
  }

  #say(bytes: Buffer): void {
    if (this.#said.push(bytes) > 1) return;
    queueMicrotask(() => {
      this.#socket.write(Buffer.concat(this.#said));
      this.#said = [];
    });
  }

  #read(bytes: Buffer): void {
    const all = this.#received.length === 0 ? bytes : Buffer.concat([this.#received, bytes]);
    let at = 0;
    for (let end; at + headBytes <= all.length && (end = at + headBytes + all.readUIntBE(at, 3)) <= all.length; at = end)
      this.#take(all[at + 3]!, all[at + 4]!, all.readUInt32BE(at + 5), all.subarray(at + headBytes, end));
    this.#received = all.subarray(at);
  }

  #take(type: number, flags: number, stream: number, payload: Buffer): void {
    const call = this.#calls.get(stream);
    if (type === types.settings && flags !== ack) this.#say(frame('settings', ack, 0));
    else if (type === types.ping && flags !== ack) this.#say(frame('ping', ack, 0, payload));
    else if (type === types.reset || type === types.goAway) throw new Error('the server ended a call');
    else if (type === types.data && call !== undefined) {
      call.bytes += payload.length;
      if ((this.#unread += payload.length) < windowBytes / 2) return;
      this.#say(Buffer.concat([windowFrame(0, this.#unread), windowFrame(stream, this.#unread)]));
      this.#unread = 0;
    } else if (type === types.headers && (flags & endStream) !== 0 && call !== undefined) {
      if (call.bytes === 0) throw new Error('a call was refused');
      this.#calls.delete(stream);
      call.end(call.bytes);
    }
  }
}

function windowFrame(stream: number, bytes: number): Buffer {
  const payload = Buffer.alloc(4);
  payload.writeUInt32BE(bytes);
  return frame('window', 0, stream, payload);
}

export interface GrpcLoad {
  readonly port: number;
  readonly secret: string;
  /** At once, on one connection. */
  readonly calls: number;
  readonly seconds: number;
  readonly sql: (n: number) => string;
}

/** How many calls of Query were answered. */
export async function grpcLoad({ port, secret, calls, seconds, sql }: GrpcLoad): Promise<number> {
  const connection = await Connection.open(port, secret);
  const until = performance.now() + seconds * 1_000;
  let n = 0;
  let open = 0;
  const ended = new Promise<void>((resolve) => {
    const begin = (): void => {
      open++;
      connection.begin('annals.v1.Annals/Query', protobufMessage(bytesField(1, Buffer.from(sql(n++)))), () => {
        open--;
        if (performance.now() < until) begin();
        else if (open === 0) resolve();
      });
    };
    for (let i = 0; i < calls; i++) begin();
  });
  await Promise.race([ended, connection.failed]);
  connection.close();
  return n;
}

/** Reads the rows of a ticket, and makes nothing of them. */
export async function doGet(port: number, secret: string, ticket: Uint8Array): Promise<void> {
  const connection = await Connection.open(port, secret);
  const method = 'arrow.flight.protocol.FlightService/DoGet';
  const ended = new Promise((resolve) => connection.begin(method, protobufMessage(bytesField(1, ticket)), resolve));
  await Promise.race([ended, connection.failed]);
  connection.close();
}
