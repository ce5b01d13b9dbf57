/** Closed-loop load on a few kept-alive connections: each sends its next request when the reply to the last is whole. */
import { connect, type Socket } from 'node:net';

export interface LoadOptions {
  readonly port: number;
  readonly connections: number;
  readonly seconds: number;
  /** It goes on until it has sent so many; absent: it ends with its time. */
  readonly requestsMin?: number;
  /** The bytes of request number n. */
  readonly request: (n: number) => Buffer;
  /** Between a reply and the next request of its connection; none unless said otherwise. */
  readonly pauseMs?: number;
}

export interface LoadResult {
  readonly perSecond: number;
  /** Milliseconds. */
  readonly p50: number;
  readonly p99: number;
  readonly firstReply: string;
}

export function post(path: string, headers: Readonly<Record<string, string>>, body: string): Buffer {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.from(
    `POST ${path} HTTP/1.1\r\nhost: localhost\r\n${lines.join('')}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

export async function load(options: LoadOptions): Promise<LoadResult> {
  const { connections, request, requestsMin = 0, pauseMs = 0 } = options;
  const latencies: number[] = [];
  let sent = 0;
  let firstReply = '';
  const began = performance.now();
  const until = began + options.seconds * 1000;
  await Promise.all(
    Array.from({ length: connections }, async () => {
      const connection = await Connection.open(options.port);
      try {
        while (performance.now() < until || sent < requestsMin) {
          const at = performance.now();
          const reply = await connection.roundTrip(request(sent++));
          latencies.push(performance.now() - at);
          if (firstReply === '') firstReply = reply;
          if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
        }
      } finally {
        connection.close();
      }
    }),
  );
  const seconds = (performance.now() - began) / 1000;
  latencies.sort((a, b) => a - b);
  const quantile = (q: number): number => latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * q))]!;
  return { perSecond: latencies.length / seconds, p50: quantile(0.5), p99: quantile(0.99), firstReply };
}

const headEnd = Buffer.from('\r\n\r\n');

class Connection {
  readonly #socket: Socket;
  #first = true;
  #received: Buffer = Buffer.alloc(0);
  #resolve: ((reply: string) => void) | null = null;
  #reject: ((error: Error) => void) | null = null;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.on('data', (bytes) => {
      this.#received = this.#received.length === 0 ? bytes : Buffer.concat([this.#received, bytes]);
      this.#settle();
    });
    socket.on('error', (error) => this.#reject?.(error));
    socket.on('close', () => this.#reject?.(new Error('the server closed the connection')));
  }

  static open(port: number): Promise<Connection> {
    return new Promise((resolve, reject) => {
      const socket = connect(port, '127.0.0.1', () => resolve(new Connection(socket)));
      socket.once('error', reject);
    });
  }

  roundTrip(request: Buffer): Promise<string> {
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
      this.#socket.write(request);
    });
  }

  close(): void {
    this.#reject = null;
    this.#socket.destroy();
  }

  #settle(): void {
    const head = this.#received.indexOf(headEnd);
    if (head < 0) return;
    const text = this.#received.toString('latin1', 0, head);
    const length = /content-length: *(\d+)/i.exec(text);
    if (!length) return this.#reject!(new Error(`a reply without a length: ${text}`));
    const end = head + 4 + Number(length[1]);
    if (this.#received.length < end) return;
    const good = text.startsWith('HTTP/1.1 2');
    // Only a first reply is looked at: the load shares a core with nobody, but it must keep up.
    const body = this.#first || !good ? this.#received.toString('utf8', head + 4, end) : '';
    this.#first = false;
    this.#received = this.#received.subarray(end);
    if (!good) return this.#reject!(new Error(`${text.split('\r\n')[0]}: ${body.slice(0, 500)}`));
    this.#resolve!(body);
  }
}
