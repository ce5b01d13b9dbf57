/** Reads headers: as UTF-8 text, once each, and the specification's own headers. */
import { ServiceError } from '../../errors.ts';
import { checkText } from '../../log/values/value.ts';
import type { GateRequest } from './context.ts';

/** The transaction that a request reads and writes in. */
export const transactionHeader = 'x-service-transaction';

/** Headers that decide the caller and the purpose: a repeated one is a way to make a proxy and a server disagree. */
const single: ReadonlySet<string> = new Set([
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

const singleLengths: ReadonlySet<number> = new Set([...single].map((name) => name.length));

/** Throws REL_INVALID when a header that must be single was sent twice. `rawHeaders` alternates names and values. */
export function refuseRepeatedHeaders(rawHeaders: readonly string[]): void {
  let seen = '';
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!;
    // Names of other lengths are none of ours: most headers end here, without a lower-case copy.
    if (!singleLengths.has(name.length)) continue;
    const lower = name.toLowerCase();
    if (!single.has(lower)) continue;
    if (seen.includes(`${lower};`)) throw new ServiceError('REL_INVALID', `the header ${lower} was sent more than once`);
    seen += `${lower};`;
  }
}

/** A header as text: Node hands the bytes over as latin1, callers mean UTF-8. null when it was not sent. */
export function headerText(request: GateRequest, name: string): string | null {
  const value = request.headers[name];
  if (value === undefined) return null;
  if (typeof value !== 'string') throw new ServiceError('REL_INVALID', `the header ${name} was sent more than once`);
  for (let i = 0; i < value.length; i++) if (value.charCodeAt(i) > 0x7f) return fromUtf8(value, name);
  return value;
}

/** The media type that the Accept header prefers, the first of equally preferred ones; null when it names none. */
export function preferredType<Type extends string>(request: GateRequest, types: readonly Type[]): Type | null {
  let best: Type | null = null;
  let bestQuality = 0;
  for (const part of (headerText(request, 'accept') ?? '').split(',')) {
    const [name, ...parameters] = part.split(';').map((text) => text.trim().toLowerCase());
    const quality = Number(parameters.find((text) => text.startsWith('q='))?.slice(2) ?? 1);
    const type = types.find((each) => each === name);
    if (type === undefined || !(quality > bestQuality)) continue;
    best = type;
    bestQuality = quality;
  }
  return best;
}

/** The purpose that a request states: its own field, else the header. Two that differ are refused, not ranked. */
export function statedPurpose(request: GateRequest, field: string | undefined): string | null {
  const header = headerText(request, 'x-service-purpose');
  if (header === '') throw new ServiceError('REL_INVALID', 'the header x-service-purpose is empty');
  if (field !== undefined && header !== null && field !== header) {
    throw new ServiceError('REL_INVALID', 'the request and its x-service-purpose header state different purposes');
  }
  return field ?? header;
}

/**
 * The branch that a request names: by a `branch` field of its body, by `?branch=`, or by the header; null when by none.
 * Ways that differ are refused, not ranked.
 */
export function statedBranch(request: GateRequest): string | null {
  const stated: string[] = [];
  const header = headerText(request, 'x-service-branch');
  if (header !== null) stated.push(header);
  const url = request.raw.url ?? '';
  const query = url.indexOf('?');
  // Spelled out or percent-encoded, there is no third way to name it.
  if (query >= 0 && (url.includes('branch', query) || url.includes('%', query)))
    stated.push(...new URLSearchParams(url.slice(query + 1)).getAll('branch'));
  const { body } = request;
  if (typeof body === 'object' && body !== null && Object.hasOwn(body, 'branch')) {
    const field = (body as { readonly branch: unknown }).branch;
    if (typeof field === 'string') stated.push(field);
  }
  return requireOne(stated, 'the request names different branches');
}

function requireOne([first, ...others]: readonly string[], otherwise: string): string | null {
  if (others.some((other) => other !== first)) throw new ServiceError('REL_INVALID', otherwise);
  return first ?? null;
}

/** How a request says what opens a guard: by header, by the query of its URL, or by its body. */
const openers = {
  breakGlass: { header: 'x-service-break-glass', field: 'break_glass' },
  accessScopeRef: { header: 'x-service-access-scope-ref', field: 'access_scope_ref' },
} as const;

const openerLengthMax = 1_024;

/** As the request states it; null when it does not. Ways that differ are refused, not ranked. */
export function statedOpener(request: GateRequest, name: keyof typeof openers): string | null {
  const { header, field } = openers[name];
  const stated: string[] = [];
  const sent = headerText(request, header);
  if (sent !== null) stated.push(sent);
  const url = request.raw.url ?? '';
  const query = url.indexOf('?');
  if (query >= 0 && (url.includes(field, query) || url.includes('%', query)))
    stated.push(...new URLSearchParams(url.slice(query + 1)).getAll(field));
  const { body } = request;
  if (typeof body === 'object' && body !== null && Object.hasOwn(body, field)) {
    const member = (body as Readonly<Record<string, unknown>>)[field];
    if (typeof member === 'string') stated.push(member);
  }
  const said = requireOne(stated, `the request states ${field} in different ways`);
  if (said === null) return null;
  checkText(said, field);
  if (said.length > openerLengthMax) throw new ServiceError('REL_INVALID', `${field} has at most ${openerLengthMax} characters`);
  return said.trim() === '' ? null : said;
}

/** True when this write asks for its own fsync. */
export function wantsSync(request: GateRequest): boolean {
  const value = headerText(request, 'x-service-durability');
  if (value === null) return false;
  if (value.toLowerCase() === 'sync') return true;
  throw new ServiceError('REL_INVALID', 'the header x-service-durability takes one value: sync');
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function fromUtf8(latin1: string, name: string): string {
  try {
    return utf8.decode(Buffer.from(latin1, 'latin1'));
  } catch {
    throw new ServiceError('REL_INVALID', `the header ${name} is not UTF-8`);
  }
}
