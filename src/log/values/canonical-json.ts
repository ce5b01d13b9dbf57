/**
 * JSON with one spelling per value (RFC 8785): no blanks, properties in the order of their UTF-16 units, numbers as
 * ECMAScript writes them, strings with the fewest escapes. All JSON is hashed in this form. Pure.
 */
import { ServiceError } from '../../errors.ts';
import { checkText } from './value.ts';

export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

/** Throws REL_INVALID for a lone surrogate, which UTF-8 can't carry, and for a number that JSON can't say. */
export function canonicalJson(jsonValue: Json): string {
  if (jsonValue === null || typeof jsonValue === 'boolean') return String(jsonValue);
  if (typeof jsonValue === 'string') return canonicalString(jsonValue);
  if (typeof jsonValue === 'number') return canonicalNumber(jsonValue);
  if (Array.isArray(jsonValue)) return `[${jsonValue.map(canonicalJson).join(',')}]`;
  const jsonObject = jsonValue as { readonly [memberName: string]: Json };
  // The default order of `sort` is the one that the RFC asks for.
  const memberNames = Object.keys(jsonObject).sort();
  return `{${memberNames.map((memberName) => `${canonicalString(memberName)}:${canonicalJson(jsonObject[memberName]!)}`).join(',')}}`;
}

export function canonicalString(jsonText: string): string {
  checkText(jsonText, 'a text');
  return JSON.stringify(jsonText);
}

function canonicalNumber(jsonNumber: number): string {
  if (!Number.isFinite(jsonNumber)) throw new ServiceError('REL_INVALID', `${jsonNumber} has no form in JSON`);
  return JSON.stringify(jsonNumber);
}
