/**
 * One request of the object door, from its headers to its answer:
 *
 *   path and headers -> rate limit -> credential -> operation -> gate -> answer
 *
 * and on every way out there is one answer, and one access record of what the caller asked for.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ServiceError } from '../../errors.ts';
import { refundOf } from '../../governance/admission/rate-limit.ts';
import { signatureOf, verified } from '../../governance/authentication/sigv4.ts';
import type { Caller } from '../../governance/caller.ts';
import type { Action, Invocation } from '../../governance/gate-contract.ts';
import type { DefaultTime } from '../../planner/statement.ts';
import { admitAddress, recordRefusal } from '../frame/door-parts.ts';
import { shuttingDown } from '../frame/drain.ts';
import { timeOf } from '../instants.ts';
import type { Exchange, ObjectParts } from './exchange.ts';
import { IncomingBody, type IncomingOptions, type VerifiedSignature } from './incoming-body.ts';
import { type Operation, sendReply } from './reply.ts';
import { ObjectRefusal, refusals, told } from './refusal.ts';
import { type ObjectRequest, requestOf } from './request.ts';
import { xmlDocument } from './xml.ts';

export const doorName = 'object';

export class HttpExchange implements Exchange {
  readonly parts: ObjectParts;
  readonly id: string;
  readonly response: ServerResponse;
  readonly #raw: IncomingMessage;
  readonly #waits: boolean;
  readonly #gone = new AbortController();
  #request: ObjectRequest | null = null;
  #caller: Caller | null = null;
  #signed: VerifiedSignature | null = null;
  #action: Action = 'query';
  #recorded = false;

  /** `waits`: the client sends its body once it is told to. */
  constructor(parts: ObjectParts, raw: IncomingMessage, response: ServerResponse, waits: boolean) {
    this.parts = parts;
    this.id = parts.ids.next();
    this.response = response;
    this.#raw = raw;
    this.#waits = waits;
    response.once('close', () => this.#gone.abort());
  }

  get request(): ObjectRequest {
    return this.#request!;
  }

  get caller(): Caller {
    return this.#caller!;
  }

  async run(operationOf: (request: ObjectRequest) => Operation): Promise<void> {
    this.response.setHeader('x-amz-request-id', this.id);
    try {
      this.#request = requestOf(this.#raw);
      if (this.parts.draining.hasBegun) throw shuttingDown();
      const writes = this.#raw.method !== 'GET' && this.#raw.method !== 'HEAD';
      if (writes) this.#action = this.#raw.method === 'DELETE' ? 'delete' : 'ingest';
      admitAddress(this.parts, writes ? this.parts.writeLimit : this.parts.readLimit, this.#clientIp);
      this.#caller = { ...this.#credential(), branch: this.request.header('x-service-branch') ?? 'main' };
      this.parts.unknown.know(this.#raw.socket);
      await sendReply(this, await operationOf(this.request)(this));
    } catch (error) {
      await this.#refuse(error);
    } finally {
      this.parts.bodies.discard(this.#raw, this.#caller === null ? 'stranger' : 'known');
    }
  }

  invoke<T>(action: Action, run: (invocation: Invocation) => Promise<T>): Promise<T> {
    const stated = (name: string): string | null => this.request.header(name) || null;
    const asked = {
      action,
      purpose: stated('x-service-purpose'),
      correlationId: this.id,
      breakGlass: stated('x-service-break-glass'),
      accessScopeRef: stated('x-service-access-scope-ref'),
      gone: this.#gone.signal,
      ...(action === 'query' && { onCost: refundOf(this.parts.readLimit, this.#clientIp) }),
    };
    this.#recorded = true;
    return this.parts.gate.invoke(this.parts.authenticator.renewed(this.caller), asked, run);
  }

  get time(): DefaultTime {
    const header = (name: string): string | undefined => this.request.header(name) ?? undefined;
    return timeOf({ as_of: header('x-service-as-of'), as_of_system: header('x-service-as-of-system') });
  }

  get sync(): boolean {
    if (this.time !== 'current')
      throw refusals.invalidArgument('what was can be read, not written: x-service-as-of is for reads');
    const said = this.request.header('x-service-durability');
    if (said !== null && said.toLowerCase() !== 'sync')
      throw refusals.invalidArgument('the header x-service-durability knows one value: sync');
    return said !== null;
  }

  get signal(): AbortSignal {
    return this.#gone.signal;
  }

  incoming(options: IncomingOptions = {}): IncomingBody {
    return new IncomingBody(this.request, {
      ...options,
      bodies: this.parts.bodies,
      signed: this.#signed,
      goOn: () => {
        if (this.#waits) this.response.writeContinue();
      },
    });
  }

  get #clientIp(): string | null {
    return this.#raw.socket.remoteAddress ?? null;
  }

  #credential(): Caller {
    const { settings, authenticator, clock } = this.parts;
    const { signed } = this.request;
    const secret = settings.SERVICE_OBJECT_SECRET_KEY;
    const facts = { door: doorName, clientIp: this.#clientIp, organization: this.request.header('x-organization-id') };
    const signature = signatureOf(signed);
    if (signature === 'malformed')
      throw new ObjectRefusal('AuthorizationHeaderMalformed', 400, 'REL_INVALID', 'the signature is no AWS4-HMAC-SHA256 one');
    if (signature === null) {
      const bearer = /^bearer +([^\s,]+) *$/i.exec(signed.headers['authorization'] ?? '')?.[1];
      if (bearer === undefined) throw refusals.accessDenied('the request carries no credential');
      if (secret !== null) throw refusals.accessDenied('requests are signed here: a bearer token is not taken');
      return authenticator.passwordCaller(bearer, facts);
    }
    const accessKey = authenticator.accessKey(signature.accessKey, secret);
    if (signature.by === 'url' && !accessKey.isPublic) throw refusals.accessDenied(publicKeys);
    if (signature.by === 'header' && accessKey.signs === 'urls')
      throw refusals.accessDenied('this key id opens the signed URLs that name it, and no other request');
    if (accessKey.secretKey === null) return accessKey.caller(facts);
    const verdict = verified(signed, signature, accessKey.secretKey, clock.now());
    if (verdict !== 'verified') throw verdicts[verdict]();
    const unsigned = Object.keys(signed.headers).find(
      (name) =>
        covered.test(name) &&
        !signature.signedHeaders.includes(name) &&
        !(signature.by === 'url' && name === 'x-amz-content-sha256'),
    );
    if (unsigned !== undefined) throw refusals.accessDenied(`the header ${unsigned} is not among those that were signed`);
    const caller = accessKey.caller(facts);
    this.#signed = { signature, secretKey: accessKey.secretKey };
    return caller;
  }

  async #refuse(error: unknown): Promise<void> {
    if (this.#gone.signal.aborted && !(error instanceof ServiceError)) return;
    const known = error instanceof ServiceError ? error : new ServiceError('REL_INTERNAL', 'internal error', { cause: error });
    if (this.#caller === null && (known.kind === 'unauthenticated' || known.kind === 'forbidden'))
      this.parts.unknown.refuse(this.#raw.socket, this.response);
    const who = this.#caller ?? { door: doorName, clientIp: this.#clientIp };
    let refusal = this.#recorded ? known : await recordRefusal(this.parts, who, this.#action, known);
    if (refusal.code === 'REL_INTERNAL') {
      this.parts.failed(refusal.facts.cause ?? refusal);
      refusal = new ServiceError('REL_INTERNAL', 'internal error');
    }
    if (this.response.headersSent) return void this.response.destroy();
    const { code, status } = told(refusal);
    for (const name of this.response.getHeaderNames()) if (name !== 'x-amz-request-id') this.response.removeHeader(name);
    if (refusal.facts.retryAfterSecs !== undefined) this.response.setHeader('retry-after', String(refusal.facts.retryAfterSecs));
    const headers = refusal instanceof ObjectRefusal ? refusal.headers : {};
    const document = xmlDocument(
      'Error',
      [
        ['Code', code],
        ['Message', refusal.message],
        ['Reason', refusal.code],
        ['Resource', (this.#raw.url ?? '/').replace(/\?.*$/s, '')],
        ['RequestId', this.id],
      ],
      false,
    );
    const bare = this.#raw.method === 'HEAD' || status === 304;
    this.response.writeHead(
      status,
      bare ? headers : { ...headers, 'content-type': 'application/xml', 'content-length': Buffer.byteLength(document) },
    );
    this.response.end(bare ? undefined : document);
  }
}

/** Headers that say for whom, or what: unsigned, anybody on the way could have put them there. */
const covered = /^x-(amz|service)-|^x-organization-id$/;

const publicKeys =
  'a signed URL names a public access key, as `annals object-key` prints them: anybody may read what the URL names';

const denied = (s3: string, detail: string) => (): ObjectRefusal => new ObjectRefusal(s3, 403, 'REL_UNAUTHENTICATED', detail);
const verdicts = {
  mismatch: denied('SignatureDoesNotMatch', 'the signature is not the one that the secret makes of this request'),
  skewed: denied('RequestTimeTooSkewed', 'the request was signed more than 15 minutes from now'),
  expired: denied('AccessDenied', 'the signed URL has expired'),
} as const;
