/** Preconditions and ranges of S3 reads: If-Match, If-None-Match, If-Modified-Since, Range. Source: RFC 9110. */
import { ObjectRefusal, s3Refusals } from './errors.ts';
import type { ObjectRequest } from './request-path.ts';

export interface ObjectState {
  readonly hash: string;
  readonly modifiedMs: number;
}

/** `*`, or a list of tags in quotes or without. */
export function etagMatches(list: string, hash: string | null): boolean {
  if (hash === null) return false;
  return list.split(',').some((tag) => {
    const said = tag
      .trim()
      .replace(/^W\//, '')
      .replace(/^"(.*)"$/, '$1');
    return said === '*' || said === hash;
  });
}

/** Whether the client has the object already. Throws PreconditionFailed. */
export function isKnown({ header }: ObjectRequest, { hash, modifiedMs }: ObjectState): boolean {
  const seconds = Math.floor(modifiedMs / 1000) * 1000;
  const match = header('if-match');
  if (match !== null) {
    if (!etagMatches(match, hash)) throw s3Refusals.preconditionFailed('If-Match');
  } else if (seconds > Date.parse(header('if-unmodified-since') ?? ''))
    throw s3Refusals.preconditionFailed('If-Unmodified-Since');
  const none = header('if-none-match');
  if (none !== null) return etagMatches(none, hash);
  return seconds <= Date.parse(header('if-modified-since') ?? '');
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
  if (!match || !isStill(header('if-range'), stands)) return null;
  const [, first, last] = match as unknown as [string, string, string];
  if (first === '' && last === '') return null;
  if (first === '') {
    if (Number(last) === 0 || size === 0) throw outside(size);
    return { from: Math.max(0, size - Number(last)), to: size };
  }
  const from = Number(first);
  if (last !== '' && Number(last) < from) return null;
  if (from >= size) throw outside(size);
  return { from, to: last === '' ? size : Math.min(size, Number(last) + 1) };
}

export const contentRange = ({ from, to }: ByteRange, size: number): string => `bytes ${from}-${to - 1}/${size}`;

/** A tag that is strong, or the very instant: RFC 9110, 13.1.5. */
function isStill(ifRange: string | null, { hash, modifiedMs }: ObjectState): boolean {
  if (ifRange === null) return true;
  const said = ifRange.trim();
  if (said.startsWith('"')) return said === `"${hash}"`;
  return Date.parse(said) === Math.floor(modifiedMs / 1000) * 1000;
}

const outside = (size: number): ObjectRefusal =>
  new ObjectRefusal('InvalidRange', 416, 'REL_INVALID', `the range lies behind the end of the ${size} bytes`, {
    'content-range': `bytes */${size}`,
  });
