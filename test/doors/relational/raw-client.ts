/** A client that sends what it is told to, byte by byte: what no driver would send is sent, too. */
import { createHash, createHmac, pbkdf2Sync } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { framed, repliesIn, startup } from './frames.ts';

type Reply = ReturnType<typeof repliesIn>[number];

export class RawClient {
  readonly socket: Socket;
  #bytes = Buffer.alloc(0);
  #wake = (): void => undefined;

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', (piece) => {
      this.#bytes = Buffer.concat([this.#bytes, piece as Buffer]);
      this.#wake();
    });
    socket.on('close', () => this.#wake());
    socket.on('error', () => undefined);
  }

  static async open(port: number): Promise<RawClient> {
    const socket = connect(port, '127.0.0.1');
    const client = new RawClient(socket);
    await new Promise((resolve) => socket.once('connect', resolve));
    return client;
  }

  /** Connected, and ready for a query. */
  static async ready(port: number, secret: string, user = 'raw'): Promise<RawClient> {
    const client = await RawClient.open(port);
    client.socket.write(startup({ user, database: 'annals' }));
    await client.until('R');
    const bare = 'n=,r=abcdefgh';
    const mechanism = Buffer.from('SCRAM-SHA-256\0');
    const length = Buffer.alloc(4);
    length.writeInt32BE(bare.length + 3);
    client.socket.write(framed('p', Buffer.concat([mechanism, length, Buffer.from(`n,,${bare}`)])));
    const [challenge] = await client.until('R');
    const first = challenge!.body.subarray(4).toString();
    const [, nonce, salt, rounds] = /^r=([^,]+),s=([^,]+),i=(\d+)$/.exec(first)!;
    const hmac = (key: Uint8Array, text: string): Buffer => createHmac('sha256', key).update(text).digest();
    const key = hmac(pbkdf2Sync(secret, Buffer.from(salt!, 'base64'), Number(rounds), 32, 'sha256'), 'Client Key');
    const withoutProof = `c=biws,r=${nonce}`;
    const signature = hmac(createHash('sha256').update(key).digest(), `${bare},${first},${withoutProof}`);
    const proof = Buffer.from(key.map((byte, i) => byte ^ signature[i]!)).toString('base64');
    client.socket.write(framed('p', Buffer.from(`${withoutProof},p=${proof}`)));
    await client.until('Z');
    return client;
  }

  /** All replies up to the first of this type, which is the last of them; or up to the end of the connection. */
  async until(type: string): Promise<Reply[]> {
    for (;;) {
      const replies = repliesIn(this.#bytes);
      const last = replies.findIndex((reply) => reply.type === type);
      if (last >= 0 || this.socket.closed) {
        const taken = last >= 0 ? replies.slice(0, last + 1) : replies;
        this.#bytes = this.#bytes.subarray(taken.reduce((sum, { body }) => sum + body.length + 5, 0));
        return taken;
      }
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  /** The same, sending first. */
  ask(...messages: readonly Buffer[]): Promise<Reply[]> {
    this.socket.write(Buffer.concat(messages));
    return this.until('Z');
  }

  close(): void {
    this.socket.destroy();
  }
}

export const parse = (text: string, name = ''): Buffer => framed('P', Buffer.from(`${name}\0${text}\0\0\0`));
export const bind = (resultFormat = 0, portal = '', statement = ''): Buffer =>
  framed('B', Buffer.from(`${portal}\0${statement}\0\0\0\0\0\0\x01\0${resultFormat === 1 ? '\x01' : '\0'}`));
export const describe = (what: 'S' | 'P', name = ''): Buffer => framed('D', Buffer.from(`${what}${name}\0`));
export const execute = (rowsMax = 0, portal = ''): Buffer => {
  const count = Buffer.alloc(4);
  count.writeInt32BE(rowsMax);
  return framed('E', Buffer.concat([Buffer.from(`${portal}\0`), count]));
};
export const sync = framed('S');
export const flush = framed('H');
export const simple = (text: string): Buffer => framed('Q', Buffer.from(`${text}\0`));
