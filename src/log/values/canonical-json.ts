/**
 * JSON with one spelling per value (RFC 8785): no blanks, properties in the order of their UTF-16 units, numbers as
 * ECMAScript writes them, strings with the fewest escapes. All JSON is hashed in this form. Pure.
 */
import { ServiceError } from '../../errors.ts';
import { checkText } from './value.ts';

export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

/** Throws REL_INVALID for a lone surrogate, which UTF-8 can't carry, and for a number that JSON can't say. */
export function canonicalJson(value: Json): string {
  if (value === null || typeof value === 'boolean') return String(value);
  if (typeof value === 'string') return canonicalString(value);
  if (typeof value === 'number') return canonicalNumber(value);
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  const object = value as { readonly [name: string]: Json };
  // The default order of `sort` is the one that the RFC asks for.
  const names = Object.keys(object).sort();
  return `{${names.map((name) => `${canonicalString(name)}:${canonicalJson(object[name]!)}`).join(',')}}`;
}

export function canonicalString(text: string): string {
  checkText(text, 'a text');
  return JSON.stringify(text);
}

function canonicalNumber(value: number): string {
  if (!Number.isFinite(value)) throw new ServiceError('REL_INVALID', `${value} has no form in JSON`);
  return JSON.stringify(value);
}
