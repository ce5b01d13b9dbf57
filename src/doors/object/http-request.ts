/**
 * One request of the object door, from its headers to its answer:
 *
 *   path and headers -> rate limit -> credential -> operation -> gate -> answer
 *
 * and on every way out there is one answer, and one access record of the request.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { signatureOf, verifySignature } from '../../governance/authentication/sigv4.ts';
import type { Caller } from '../../governance/caller.ts';
import type { Action, Invocation } from '../../governance/gate-contract.ts';
import type { DefaultTime } from '../../planner/syntax/statement.ts';
import { HttpCall } from '../shared/http-call.ts';
import { timeOf } from '../schemas/instants.ts';
import type { S3Exchange, ObjectDependencies } from './exchange.ts';
import { IncomingBody, type IncomingOptions, type VerifiedSignature } from './incoming-body.ts';
import { type Operation, sendReply } from './reply.ts';
import { ObjectRefusal, s3Refusals, wireError } from './errors.ts';
import { type ObjectRequest, requestOf } from './request-path.ts';
import { xmlDocument } from './xml.ts';

export const doorName = 'object';

export class ObjectHttpRequest implements S3Exchange {
  readonly parts: ObjectDependencies;
  readonly response: ServerResponse;
  readonly #call: HttpCall;
  readonly #waits: boolean;
  #request: ObjectRequest | null = null;
  #signed: VerifiedSignature | null = null;

  /** `waits`: the client sends its body only after `100 Continue`. */
  constructor(parts: ObjectDependencies, raw: IncomingMessage, response: ServerResponse, waits: boolean) {
    this.parts = parts;
    this.#call = new HttpCall(parts, doorName, raw, response);
    this.response = response;
    this.#waits = waits;
  }

  get request(): ObjectRequest {
    return this.#request!;
  }

  get caller(): Caller {
    return this.#call.caller;
  }

  async run(operationOf: (request: ObjectRequest) => Operation): Promise<void> {
    this.response.setHeader('x-amz-request-id', this.#call.id);
    const { raw } = this.#call;
    try {
      this.#request = requestOf(raw);
      const writes = raw.method !== 'GET' && raw.method !== 'HEAD';
      this.#call.admit(!writes ? 'query' : raw.method === 'DELETE' ? 'delete' : 'ingest');
      this.#call.know({ ...this.#credential(), branch: this.request.header('x-service-branch') ?? 'main' });
      await sendReply(this, await operationOf(this.request)(this));
    } catch (error) {
      await this.#refuse(error);
    } finally {
      this.#call.end();
    }
  }

  invoke<T>(action: Action, run: (invocation: Invocation) => Promise<T>): Promise<T> {
    const statedHeader = (name: string): string | null => this.request.header(name) || null;
    const terms = {
      purpose: statedHeader('x-service-purpose'),
      break_glass: statedHeader('x-service-break-glass'),
      access_scope_ref: statedHeader('x-service-access-scope-ref'),
    };
    return this.#call.invoke(action, terms, run);
  }

  get time(): DefaultTime {
    const header = (name: string): string | undefined => this.request.header(name) ?? undefined;
    return timeOf({ as_of: header('x-service-as-of'), as_of_system: header('x-service-as-of-system') });
  }

  get sync(): boolean {
    if (this.time !== 'current') throw s3Refusals.invalidArgument('x-service-as-of is for reads only');
    const said = this.request.header('x-service-durability');
    if (said !== null && said.toLowerCase() !== 'sync')
      throw s3Refusals.invalidArgument('the header x-service-durability takes one value: sync');
    return said !== null;
  }

  get signal(): AbortSignal {
    return this.#call.signal;
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

  #credential(): Caller {
    const { settings, authenticator, clock } = this.parts;
    const { signed } = this.request;
    const secret = settings.SERVICE_OBJECT_SECRET_KEY;
    const facts = { door: doorName, clientIp: this.#call.clientIp, organization: this.request.header('x-organization-id') };
    const signature = signatureOf(signed);
    if (signature === 'malformed')
      throw new ObjectRefusal('AuthorizationHeaderMalformed', 400, 'REL_INVALID', 'the signature is not AWS4-HMAC-SHA256');
    if (signature === null) {
      const bearer = /^bearer +([^\s,]+) *$/i.exec(signed.headers['authorization'] ?? '')?.[1];
      if (bearer === undefined) throw s3Refusals.accessDenied('the request carries no credential');
      if (secret !== null) throw s3Refusals.accessDenied('sign the request: bearer tokens are not accepted here');
      return authenticator.passwordCaller(bearer, facts);
    }
    const accessKey = authenticator.accessKey(signature.accessKey, secret);
    if (signature.by === 'url' && !accessKey.isPublic) throw s3Refusals.accessDenied(publicKeys);
    if (signature.by === 'header' && accessKey.signs === 'urls')
      throw s3Refusals.accessDenied('this key id opens the signed URLs that name it, and no other request');
    if (accessKey.secretKey === null) return accessKey.caller(facts);
    const verdict = verifySignature(signed, signature, accessKey.secretKey, clock.now());
    if (verdict !== 'verified') throw verdicts[verdict]();
    const unsigned = Object.keys(signed.headers).find(
      (name) =>
        covered.test(name) &&
        !signature.signedHeaders.includes(name) &&
        !(signature.by === 'url' && name === 'x-amz-content-sha256'),
    );
    if (unsigned !== undefined) throw s3Refusals.accessDenied(`the header ${unsigned} is not among those that were signed`);
    const caller = accessKey.caller(facts);
    this.#signed = { signature, secretKey: accessKey.secretKey };
    return caller;
  }

  async #refuse(error: unknown): Promise<void> {
    const refusal = await this.#call.refusal(error);
    if (refusal === null) return;
    if (this.response.headersSent) return void this.response.destroy();
    const { code, status } = wireError(refusal);
    for (const name of this.response.getHeaderNames()) if (name !== 'x-amz-request-id') this.response.removeHeader(name);
    if (refusal.facts.retryAfterSecs !== undefined) this.response.setHeader('retry-after', String(refusal.facts.retryAfterSecs));
    const headers = refusal instanceof ObjectRefusal ? refusal.headers : {};
    const document = xmlDocument(
      'Error',
      [
        ['Code', code],
        ['Message', refusal.message],
        ['Reason', refusal.code],
        ['Resource', (this.#call.raw.url ?? '/').replace(/\?.*$/s, '')],
        ['RequestId', this.#call.id],
      ],
      false,
    );
    const bare = this.#call.raw.method === 'HEAD' || status === 304;
    this.response.writeHead(
      status,
      bare ? headers : { ...headers, 'content-type': 'application/xml', 'content-length': Buffer.byteLength(document) },
    );
    this.response.end(bare ? undefined : document);
  }
}

/** Headers that decide the caller or the operation: unsigned, a proxy could have added them. */
const covered = /^x-(amz|service)-|^x-organization-id$/;

const publicKeys =
  'a signed URL names a public access key, as `annals object-key` prints them: anybody may read what the URL names';

const denial = (s3: string, detail: string) => (): ObjectRefusal => new ObjectRefusal(s3, 403, 'REL_UNAUTHENTICATED', detail);
const verdicts = {
  mismatch: denial('SignatureDoesNotMatch', 'the signature is not the one that the secret makes of this request'),
  skewed: denial('RequestTimeTooSkewed', 'the request was signed more than 15 minutes from now'),
  expired: denial('AccessDenied', 'the signed URL has expired'),
} as const;
