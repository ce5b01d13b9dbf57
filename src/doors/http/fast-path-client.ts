/** The head and the credential that a client of the fast path sent last: most send the same ones again and again. */
import type { Socket } from 'node:net';
import type { Caller } from '../../governance/caller.ts';
import type { HttpContext, RateBucket } from './context.ts';
import { type PlainHead, readPlainHead } from './fast-path-head.ts';
import { refuseForeign } from './foreign-origin.ts';

export class FastPathClient {
  readonly #address: string;
  #headText = '';
  #head: PlainHead | null = null;
  /** The caller of these credentials, kept because bodies of different lengths have different heads. */
  #caller: Caller | null = null;
  #authorization: string | undefined = undefined;
  #organization: string | undefined = undefined;

  constructor(socket: Socket) {
    this.#address = socket.remoteAddress ?? '';
  }

  readHead(text: string): PlainHead | null {
    if (text !== this.#headText) {
      this.#head = readPlainHead(text);
      this.#headText = text;
    }
    return this.#head;
  }

  /** Null: the framework reads the request again, and refuses it. */
  admit({ headers }: PlainHead, bucket: RateBucket, socket: Socket, context: HttpContext): Caller | null {
    const { authenticator, clock, readLimit, writeLimit } = context;
    const { authorization, 'x-organization-id': organization } = headers;
    const known = authorization === this.#authorization && organization === this.#organization ? this.#caller : null;
    let caller: Caller;
    try {
      caller =
        known === null
          ? authenticator.dataCaller({ authorization, organization, door: 'http', clientIp: this.#address })
          : authenticator.renew(known);
      if (caller.credential === 'none') refuseForeign(headers, 'loopback');
    } catch {
      return null;
    }
    if (known === null) context.connections.know(socket);
    this.#caller = caller;
    this.#authorization = authorization;
    this.#organization = organization;
    const limiter = bucket === 'write' ? writeLimit : readLimit;
    return limiter.take(this.#address, clock.monotonicMs()).allowed ? caller : null;
  }
}
