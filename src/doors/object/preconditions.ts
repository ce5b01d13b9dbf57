/** Preconditions and ranges of S3 reads: If-Match, If-None-Match, If-Modified-Since, Range. Source: RFC 9110. */
import { ObjectRefusal, s3Refusals } from './errors.ts';
import type { ObjectRequest } from './request-path.ts';

export interface ObjectState {
  readonly hash: string;
  readonly modifiedMs: number;
}

/** `*`, or a list of tags in quotes or without. */
export function etagMatches(etagList: string, objectHash: string | null): boolean {
  if (objectHash === null) return false;
  return etagList.split(',').some((statedTag) => {
    const etagText = statedTag
      .trim()
      .replace(/^W\//, '')
      .replace(/^"(.*)"$/, '$1');
    return etagText === '*' || etagText === objectHash;
  });
}

/** Whether the client has the object already. Throws PreconditionFailed. */
export function isKnown({ header: requestHeader }: ObjectRequest, { hash: objectHash, modifiedMs }: ObjectState): boolean {
  const modifiedSecondMs = Math.floor(modifiedMs / 1000) * 1000;
  const ifMatch = requestHeader('if-match');
  if (ifMatch !== null) {
    if (!etagMatches(ifMatch, objectHash)) throw s3Refusals.preconditionFailed('If-Match');
  } else if (modifiedSecondMs > Date.parse(requestHeader('if-unmodified-since') ?? ''))
    throw s3Refusals.preconditionFailed('If-Unmodified-Since');
  const ifNoneMatch = requestHeader('if-none-match');
  if (ifNoneMatch !== null) return etagMatches(ifNoneMatch, objectHash);
  return modifiedSecondMs <= Date.parse(requestHeader('if-modified-since') ?? '');
}

export interface ByteRange {
  readonly from: number;
  readonly to: number;
}

/**
 * Null: the whole object, as also for several ranges, for a malformed one, and where `If-Range` names an earlier version. Throws
 * InvalidRange for one behind the end.
 */
export function byteRangeOf({ header }: ObjectRequest, stands: ObjectState, size: number): ByteRange | null {
  const match = /^bytes=\s*(\d{0,15})-(\d{0,15})\s*$/i.exec(header('range')?.trim() ?? '');
  if (!match || !isStillUnchanged(header('if-range'), stands)) return null;
  const [, first, last] = match as unknown as [string, string, string];
  if (first === '' && last === '') return null;
  if (first === '') {
    if (Number(last) === 0 || size === 0) throw rangeOutside(size);
    return { from: Math.max(0, size - Number(last)), to: size };
  }
  const from = Number(first);
  if (last !== '' && Number(last) < from) return null;
  if (from >= size) throw rangeOutside(size);
  return { from, to: last === '' ? size : Math.min(size, Number(last) + 1) };
}

export const contentRange = ({ from: rangeStart, to: rangeEnd }: ByteRange, objectSize: number): string =>
  `bytes ${rangeStart}-${rangeEnd - 1}/${objectSize}`;

/** A tag that is strong, or the very instant: RFC 9110, 13.1.5. */
function isStillUnchanged(ifRange: string | null, { hash: objectHash, modifiedMs }: ObjectState): boolean {
  if (ifRange === null) return true;
  const ifRangeText = ifRange.trim();
  if (ifRangeText.startsWith('"')) return ifRangeText === `"${objectHash}"`;
  return Date.parse(ifRangeText) === Math.floor(modifiedMs / 1000) * 1000;
}

const rangeOutside = (objectSize: number): ObjectRefusal =>
  new ObjectRefusal('InvalidRange', 416, 'REL_INVALID', `the range lies behind the end of the ${objectSize} bytes`, {
    'content-range': `bytes */${objectSize}`,
  });
