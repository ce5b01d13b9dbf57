/** The leaves of a condition: tests of one field, after its modifiers. */
import type { RE2JS } from 're2js';
import type { Network } from './cidr-ranges.ts';
import type { Piece } from './wildcard-pattern.ts';

export type Comparison = 'lt' | 'lte' | 'gt' | 'gte';
export type TimePart = 'minute' | 'hour' | 'day' | 'week' | 'month' | 'year';
export type Reference = 'equals' | 'startswith' | 'endswith' | 'contains';

export type FieldTest =
  /** The whole text of the cell. Pieces are in lower case unless `cased`. */
  | { readonly kind: 'pattern'; readonly pieces: readonly Piece[]; readonly cased: boolean }
  /** Sought anywhere in the text. `literal`: a text in lower case that every match holds, null where none is known. */
  | {
      readonly kind: 'regex';
      readonly source: string;
      readonly flags: string;
      readonly regex: RE2JS;
      readonly literal: string | null;
    }
  | { readonly kind: 'null' | 'exists' }
  | { readonly kind: 'network'; readonly source: string; readonly network: Network }
  | { readonly kind: 'compare'; readonly comparison: Comparison; readonly value: number }
  | { readonly kind: 'reference'; readonly field: string; readonly reference: Reference; readonly cased: boolean }
  | { readonly kind: 'time'; readonly part: TimePart; readonly comparison: Comparison | 'eq'; readonly value: number };

/** Equal for tests that hold for the same cells. */
export function testKey(test: FieldTest): string {
  switch (test.kind) {
    case 'pattern':
      return `p${test.cased ? 'c' : ''}${JSON.stringify(test.pieces.map((piece) => (piece.kind === 'text' ? piece.text : { [piece.kind]: 1 })))}`;
    case 'regex':
      return `r${test.flags}/${test.source}`;
    case 'null':
    case 'exists':
      return test.kind;
    case 'network':
      return `n${test.source}`;
    case 'compare':
      return `${test.comparison} ${test.value}`;
    case 'reference':
      return `f${test.reference}${test.cased ? 'c' : ''} ${test.field}`;
    case 'time':
      return `t${test.part} ${test.comparison} ${test.value}`;
  }
}
