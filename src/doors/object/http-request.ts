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
import { timeOf } from '../shared/instants.ts';
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

  /** `waitsForContinue`: the client sends its body only after `100 Continue`. */
  constructor(
    objectParts: ObjectDependencies,
    httpRequest: IncomingMessage,
    httpResponse: ServerResponse,
    waitsForContinue: boolean,
  ) {
    this.parts = objectParts;
    this.#call = new HttpCall(objectParts, doorName, httpRequest, httpResponse);
    this.response = httpResponse;
    this.#waits = waitsForContinue;
  }

  get request(): ObjectRequest {
    return this.#request!;
  }

  get caller(): Caller {
    return this.#call.caller;
  }

  async run(s3OperationOf: (request: ObjectRequest) => Operation): Promise<void> {
    this.response.setHeader('x-amz-request-id', this.#call.id);
    const { raw: httpRequest } = this.#call;
    try {
      this.#request = requestOf(httpRequest);
      const isWrite = httpRequest.method !== 'GET' && httpRequest.method !== 'HEAD';
      this.#call.admit(!isWrite ? 'query' : httpRequest.method === 'DELETE' ? 'delete' : 'ingest');
      this.#call.know({ ...this.#credential(), branch: this.request.header('x-service-branch') ?? 'main' });
      await sendReply(this, await s3OperationOf(this.request)(this));
    } catch (requestError) {
      await this.#refuse(requestError);
    } finally {
      this.#call.end();
    }
  }

  invoke<T>(objectAction: Action, runOperation: (invocation: Invocation) => Promise<T>): Promise<T> {
    const statedHeader = (headerName: string): string | null => this.request.header(headerName) || null;
    const headerTerms = {
      purpose: statedHeader('x-service-purpose'),
      break_glass: statedHeader('x-service-break-glass'),
      access_scope_ref: statedHeader('x-service-access-scope-ref'),
    };
    return this.#call.invoke(objectAction, headerTerms, runOperation);
  }

  get time(): DefaultTime {
    const timeHeader = (headerName: string): string | undefined => this.request.header(headerName) ?? undefined;
    return timeOf({ as_of: timeHeader('x-service-as-of'), as_of_system: timeHeader('x-service-as-of-system') });
  }

  get sync(): boolean {
    if (this.time !== 'current') throw s3Refusals.invalidArgument('x-service-as-of is for reads only');
    const durabilityHeader = this.request.header('x-service-durability');
    if (durabilityHeader !== null && durabilityHeader.toLowerCase() !== 'sync')
      throw s3Refusals.invalidArgument('the header x-service-durability takes one value: sync');
    return durabilityHeader !== null;
  }

  get signal(): AbortSignal {
    return this.#call.signal;
  }

  incoming(incomingOptions: IncomingOptions = {}): IncomingBody {
    return new IncomingBody(this.request, {
      ...incomingOptions,
      bodies: this.parts.bodies,
      signed: this.#signed,
      goOn: () => {
        if (this.#waits) this.response.writeContinue();
      },
    });
  }

  #credential(): Caller {
    const { settings, authenticator, clock } = this.parts;
    const { signed: signedRequest } = this.request;
    const objectSecretKey = settings.SERVICE_OBJECT_SECRET_KEY;
    const callerFacts = { door: doorName, clientIp: this.#call.clientIp, organization: this.request.header('x-organization-id') };
    const requestSignature = signatureOf(signedRequest);
    if (requestSignature === 'malformed')
      throw new ObjectRefusal('AuthorizationHeaderMalformed', 400, 'REL_INVALID', 'the signature is not AWS4-HMAC-SHA256');
    if (requestSignature === null) {
      const bearerToken = /^bearer +([^\s,]+) *$/i.exec(signedRequest.headers['authorization'] ?? '')?.[1];
      if (bearerToken === undefined) throw s3Refusals.accessDenied('the request carries no credential');
      if (objectSecretKey !== null) throw s3Refusals.accessDenied('sign the request: bearer tokens are not accepted here');
      return authenticator.passwordCaller(bearerToken, callerFacts);
    }
    const accessKey = authenticator.accessKey(requestSignature.accessKey, objectSecretKey);
    if (requestSignature.by === 'url' && !accessKey.isPublic) throw s3Refusals.accessDenied(publicKeyText);
    if (requestSignature.by === 'header' && accessKey.signs === 'urls')
      throw s3Refusals.accessDenied('this key id opens the signed URLs that name it, and no other request');
    if (accessKey.secretKey === null) return accessKey.caller(callerFacts);
    const signatureVerdict = verifySignature(signedRequest, requestSignature, accessKey.secretKey, clock.now());
    if (signatureVerdict !== 'verified') throw verdictRefusals[signatureVerdict]();
    const unsignedHeader = Object.keys(signedRequest.headers).find(
      (headerName) =>
        mustBeSigned.test(headerName) &&
        !requestSignature.signedHeaders.includes(headerName) &&
        !(requestSignature.by === 'url' && headerName === 'x-amz-content-sha256'),
    );
    if (unsignedHeader !== undefined)
      throw s3Refusals.accessDenied(`the header ${unsignedHeader} is not among those that were signed`);
    const signingCaller = accessKey.caller(callerFacts);
    this.#signed = { signature: requestSignature, secretKey: accessKey.secretKey };
    return signingCaller;
  }

  async #refuse(requestError: unknown): Promise<void> {
    const objectRefusal = await this.#call.refusal(requestError);
    if (objectRefusal === null) return;
    if (this.response.headersSent) return void this.response.destroy();
    const { code: s3ErrorCode, status: s3Status } = wireError(objectRefusal);
    for (const headerName of this.response.getHeaderNames())
      if (headerName !== 'x-amz-request-id') this.response.removeHeader(headerName);
    if (objectRefusal.facts.retryAfterSecs !== undefined)
      this.response.setHeader('retry-after', String(objectRefusal.facts.retryAfterSecs));
    const refusalHeaders = objectRefusal instanceof ObjectRefusal ? objectRefusal.headers : {};
    const errorXml = xmlDocument(
      'Error',
      [
        ['Code', s3ErrorCode],
        ['Message', objectRefusal.message],
        ['Reason', objectRefusal.code],
        ['Resource', (this.#call.raw.url ?? '/').replace(/\?.*$/s, '')],
        ['RequestId', this.#call.id],
      ],
      false,
    );
    const isBodiless = this.#call.raw.method === 'HEAD' || s3Status === 304;
    this.response.writeHead(
      s3Status,
      isBodiless
        ? refusalHeaders
        : { ...refusalHeaders, 'content-type': 'application/xml', 'content-length': Buffer.byteLength(errorXml) },
    );
    this.response.end(isBodiless ? undefined : errorXml);
  }
}

/** Headers that decide the caller or the operation: unsigned, a proxy could have added them. */
const mustBeSigned = /^x-(amz|service)-|^x-organization-id$/;

const publicKeyText =
  'a signed URL names a public access key, as `annals object-key` prints them: anybody may read what the URL names';

const signatureDenial = (s3Code: string, denialDetail: string) => (): ObjectRefusal =>
  new ObjectRefusal(s3Code, 403, 'REL_UNAUTHENTICATED', denialDetail);
const verdictRefusals = {
  mismatch: signatureDenial('SignatureDoesNotMatch', 'the signature is not the one that the secret makes of this request'),
  skewed: signatureDenial('RequestTimeTooSkewed', 'the request was signed more than 15 minutes from now'),
  expired: signatureDenial('AccessDenied', 'the signed URL has expired'),
} as const;
