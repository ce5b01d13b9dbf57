/** Reads headers: as UTF-8 text, once each, and the specification's own headers. */
import { ServiceError } from '../../errors.ts';
import { checkText } from '../../log/values/value.ts';
import type { GateRequest } from './context.ts';

/** The transaction that a request reads and writes in. */
export const transactionHeader = 'x-service-transaction';

/** Headers that decide the caller and the purpose: a repeated one is a way to make a proxy and a server disagree. */
const singleHeaders: ReadonlySet<string> = new Set([
  'authorization',
  'x-organization-id',
  'x-service-purpose',
  'x-service-durability',
  'x-service-branch',
  transactionHeader,
  'x-service-break-glass',
  'x-service-access-scope-ref',
  'content-type',
  'content-encoding',
  'idempotency-key',
  'if-match',
  'if-none-match',
]);

const singleHeaderLengths: ReadonlySet<number> = new Set([...singleHeaders].map((name) => name.length));

/** Throws REL_INVALID when a header that must be single was sent twice. `rawHeaders` alternates names and values. */
export function refuseRepeatedHeaders(rawHeaders: readonly string[]): void {
  let seenHeaders = '';
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const headerName = rawHeaders[i]!;
    // Names of other lengths are none of ours: most headers end here, without a lower-case copy.
    if (!singleHeaderLengths.has(headerName.length)) continue;
    const lowerHeader = headerName.toLowerCase();
    if (!singleHeaders.has(lowerHeader)) continue;
    if (seenHeaders.includes(`${lowerHeader};`))
      throw new ServiceError('REL_INVALID', `the header ${lowerHeader} was sent more than once`);
    seenHeaders += `${lowerHeader};`;
  }
}

/** A header as text: Node hands the bytes over as latin1, callers mean UTF-8. null when it was not sent. */
export function headerText(request: GateRequest, headerName: string): string | null {
  const headerValue = request.headers[headerName];
  if (headerValue === undefined) return null;
  if (typeof headerValue !== 'string') throw new ServiceError('REL_INVALID', `the header ${headerName} was sent more than once`);
  for (let i = 0; i < headerValue.length; i++)
    if (headerValue.charCodeAt(i) > 0x7f) return headerFromUtf8(headerValue, headerName);
  return headerValue;
}

/** The media type that the Accept header prefers, the first of equally preferred ones; null when it names none. */
export function preferredType<Type extends string>(request: GateRequest, mediaTypes: readonly Type[]): Type | null {
  let bestType: Type | null = null;
  let bestQuality = 0;
  for (const acceptPart of (headerText(request, 'accept') ?? '').split(',')) {
    const [acceptName, ...acceptParameters] = acceptPart.split(';').map((parameterText) => parameterText.trim().toLowerCase());
    const acceptQuality = Number(acceptParameters.find((parameterText) => parameterText.startsWith('q='))?.slice(2) ?? 1);
    const acceptedType = mediaTypes.find((mediaType) => mediaType === acceptName);
    if (acceptedType === undefined || !(acceptQuality > bestQuality)) continue;
    bestType = acceptedType;
    bestQuality = acceptQuality;
  }
  return bestType;
}

/** The purpose that a request states: its own field, else the header. Two that differ are refused, not ranked. */
export function statedPurpose(request: GateRequest, purposeField: string | undefined): string | null {
  const purposeHeader = headerText(request, 'x-service-purpose');
  if (purposeHeader === '') throw new ServiceError('REL_INVALID', 'the header x-service-purpose is empty');
  if (purposeField !== undefined && purposeHeader !== null && purposeField !== purposeHeader) {
    throw new ServiceError('REL_INVALID', 'the request and its x-service-purpose header state different purposes');
  }
  return purposeField ?? purposeHeader;
}

/**
 * The branch that a request names: by a `branch` field of its body, by `?branch=`, or by the header; null when by none.
 * Ways that differ are refused, not ranked.
 */
export function statedBranch(request: GateRequest): string | null {
  const statedBranches: string[] = [];
  const branchHeader = headerText(request, 'x-service-branch');
  if (branchHeader !== null) statedBranches.push(branchHeader);
  const requestUrl = request.raw.url ?? '';
  const queryStart = requestUrl.indexOf('?');
  // Spelled out or percent-encoded, there is no third way to name it.
  if (queryStart >= 0 && (requestUrl.includes('branch', queryStart) || requestUrl.includes('%', queryStart)))
    statedBranches.push(...new URLSearchParams(requestUrl.slice(queryStart + 1)).getAll('branch'));
  const { body: requestBody } = request;
  if (typeof requestBody === 'object' && requestBody !== null && Object.hasOwn(requestBody, 'branch')) {
    const branchField = (requestBody as { readonly branch: unknown }).branch;
    if (typeof branchField === 'string') statedBranches.push(branchField);
  }
  return requireOneStated(statedBranches, 'the request names different branches');
}

function requireOneStated([firstStated, ...otherStated]: readonly string[], differenceMessage: string): string | null {
  if (otherStated.some((statedValue) => statedValue !== firstStated)) throw new ServiceError('REL_INVALID', differenceMessage);
  return firstStated ?? null;
}

/** How a request says what opens a guard: by header, by the query of its URL, or by its body. */
const openerFields = {
  breakGlass: { header: 'x-service-break-glass', field: 'break_glass' },
  accessScopeRef: { header: 'x-service-access-scope-ref', field: 'access_scope_ref' },
} as const;

const openerLengthMax = 1_024;

/** As the request states it; null when it does not. Ways that differ are refused, not ranked. */
export function statedOpener(request: GateRequest, openerName: keyof typeof openerFields): string | null {
  const { header: openerHeader, field: openerField } = openerFields[openerName];
  const statedOpeners: string[] = [];
  const sentHeader = headerText(request, openerHeader);
  if (sentHeader !== null) statedOpeners.push(sentHeader);
  const requestUrl = request.raw.url ?? '';
  const queryStart = requestUrl.indexOf('?');
  if (queryStart >= 0 && (requestUrl.includes(openerField, queryStart) || requestUrl.includes('%', queryStart)))
    statedOpeners.push(...new URLSearchParams(requestUrl.slice(queryStart + 1)).getAll(openerField));
  const { body: requestBody } = request;
  if (typeof requestBody === 'object' && requestBody !== null && Object.hasOwn(requestBody, openerField)) {
    const openerMember = (requestBody as Readonly<Record<string, unknown>>)[openerField];
    if (typeof openerMember === 'string') statedOpeners.push(openerMember);
  }
  const statedReason = requireOneStated(statedOpeners, `the request states ${openerField} in different ways`);
  if (statedReason === null) return null;
  checkText(statedReason, openerField);
  if (statedReason.length > openerLengthMax)
    throw new ServiceError('REL_INVALID', `${openerField} has at most ${openerLengthMax} characters`);
  return statedReason.trim() === '' ? null : statedReason;
}

/** True when this write asks for its own fsync. */
export function wantsSync(request: GateRequest): boolean {
  const durabilityHeader = headerText(request, 'x-service-durability');
  if (durabilityHeader === null) return false;
  if (durabilityHeader.toLowerCase() === 'sync') return true;
  throw new ServiceError('REL_INVALID', 'the header x-service-durability takes one value: sync');
}

const headerUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function headerFromUtf8(headerLatin1: string, headerName: string): string {
  try {
    return headerUtf8.decode(Buffer.from(headerLatin1, 'latin1'));
  } catch {
    throw new ServiceError('REL_INVALID', `the header ${headerName} is not UTF-8`);
  }
}
