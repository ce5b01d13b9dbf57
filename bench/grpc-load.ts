/**
 * Closed-loop load of calls on one connection of the gRPC door, as lean as that on `/query`: the library of a client takes more time
 * than the server, and one that waits for its client commits the records of fewer calls at a time.
 */
import { connect, type Socket } from 'node:net';
import { bytesField, message } from '../src/doors/rpc/protobuf.ts';
import { callBegun, frame, messageSent, preface } from '../test/hostile/frames.ts';

const types = { data: 0, headers: 1, reset: 3, settings: 4, ping: 6, goAway: 7 } as const;
const [ack, endStream] = [1, 1];
const headBytes = 9;
/** Half of what a connection may receive before its receiver says that it goes on. */
const unreadMax = 32_768;

export interface GrpcLoad {
  readonly port: number;
  readonly secret: string;
  /** At once. */
  readonly calls: number;
  readonly seconds: number;
  readonly sql: (n: number) => string;
}

/** How many calls of Query were answered. */
export function grpcLoad({ port, secret, calls, seconds, sql }: GrpcLoad): Promise<number> {
  return new Promise((resolve, reject) => {
    const until = performance.now() + seconds * 1_000;
    const answered = new Map<number, number>();
    let stream = -1;
    let done = 0;
    const begin = (): Buffer => {
      answered.set((stream += 2), 0);
      const asked = message(bytesField(1, Buffer.from(sql(stream >> 1))));
      return Buffer.concat([callBegun(stream, 'annals.v1.Annals/Query', secret), messageSent(stream, asked, false)]);
    };
    let unread = 0;
    const read = (type: number, flags: number, of: number, payload: Buffer): Buffer | null => {
      if (type === types.settings) return flags === ack ? null : frame('settings', ack, 0);
      if (type === types.ping) return flags === ack ? null : frame('ping', ack, 0, payload);
      if (type === types.reset || type === types.goAway) throw new Error('the server ended a call');
      if (type === types.data) {
        answered.set(of, answered.get(of)! + payload.length);
        if ((unread += payload.length) < unreadMax) return null;
        const increment = Buffer.alloc(4);
        increment.writeUInt32BE(unread);
        unread = 0;
        return frame('window', 0, 0, increment);
      }
      if (type !== types.headers || (flags & endStream) === 0) return null;
      if (answered.get(of) === 0) throw new Error('a call was refused');
      answered.delete(of);
      done++;
      return performance.now() < until ? begin() : null;
    };
    const socket: Socket = connect(port, '127.0.0.1', () => {
      socket.write(Buffer.concat([preface, ...Array.from({ length: calls }, begin)]));
    }).setNoDelay(true);
    let received: Buffer = Buffer.alloc(0);
    socket.on('error', reject);
    socket.on('data', (bytes: Buffer) => {
      const all = received.length === 0 ? bytes : Buffer.concat([received, bytes]);
      const said: Buffer[] = [];
      let at = 0;
      try {
        for (let end; at + headBytes <= all.length && (end = at + headBytes + all.readUIntBE(at, 3)) <= all.length; at = end) {
          const reply = read(all[at + 3]!, all[at + 4]!, all.readUInt32BE(at + 5), all.subarray(at + headBytes, end));
          if (reply !== null) said.push(reply);
        }
      } catch (error) {
        socket.destroy();
        return reject(error as Error);
      }
      received = all.subarray(at);
      if (said.length > 0) socket.write(Buffer.concat(said));
      if (answered.size > 0) return;
      socket.destroy();
      resolve(done);
    });
  });
}
