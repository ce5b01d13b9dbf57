/** The head and the credential that a client of the fast path sent last: most send the same ones again and again. */
import type { Socket } from 'node:net';
import type { Caller } from '../../governance/caller.ts';
import type { HttpContext, RateBucket } from './context.ts';
import { type PlainHead, readPlainHead } from './fast-path-head.ts';
import { refuseForeign } from './foreign-origin.ts';

export class FastPathClient {
  readonly #clientAddress: string;
  #lastHeadText = '';
  #lastPlainHead: PlainHead | null = null;
  /** The caller of these credentials, kept because bodies of different lengths have different heads. */
  #admittedCaller: Caller | null = null;
  #lastAuthorization: string | undefined = undefined;
  #lastOrganization: string | undefined = undefined;

  constructor(clientSocket: Socket) {
    this.#clientAddress = clientSocket.remoteAddress ?? '';
  }

  readHead(headText: string): PlainHead | null {
    if (headText !== this.#lastHeadText) {
      this.#lastPlainHead = readPlainHead(headText);
      this.#lastHeadText = headText;
    }
    return this.#lastPlainHead;
  }

  /** Null: the framework reads the request again, and refuses it. */
  admit(
    { headers: plainHeaders }: PlainHead,
    rateBucket: RateBucket,
    clientSocket: Socket,
    httpContext: HttpContext,
  ): Caller | null {
    const { authenticator, clock, readLimit, writeLimit } = httpContext;
    const { authorization: authorizationHeader, 'x-organization-id': organizationHeader } = plainHeaders;
    const admittedBefore =
      authorizationHeader === this.#lastAuthorization && organizationHeader === this.#lastOrganization
        ? this.#admittedCaller
        : null;
    let caller: Caller;
    try {
      caller =
        admittedBefore === null
          ? authenticator.dataCaller({
              authorization: authorizationHeader,
              organization: organizationHeader,
              door: 'http',
              clientIp: this.#clientAddress,
            })
          : authenticator.renew(admittedBefore);
      if (caller.credential === 'none') refuseForeign(plainHeaders, 'loopback');
    } catch {
      return null;
    }
    if (admittedBefore === null) httpContext.connections.know(clientSocket);
    this.#admittedCaller = caller;
    this.#lastAuthorization = authorizationHeader;
    this.#lastOrganization = organizationHeader;
    const bucketLimiter = rateBucket === 'write' ? writeLimit : readLimit;
    return bucketLimiter.take(this.#clientAddress, clock.monotonicMs()).allowed ? caller : null;
  }
}
