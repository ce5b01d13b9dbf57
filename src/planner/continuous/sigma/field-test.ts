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
export function testKey(fieldTest: FieldTest): string {
  switch (fieldTest.kind) {
    case 'pattern':
      return `p${fieldTest.cased ? 'c' : ''}${JSON.stringify(fieldTest.pieces.map((patternPiece) => (patternPiece.kind === 'text' ? patternPiece.text : { [patternPiece.kind]: 1 })))}`;
    case 'regex':
      return `r${fieldTest.flags}/${fieldTest.source}`;
    case 'null':
    case 'exists':
      return fieldTest.kind;
    case 'network':
      return `n${fieldTest.source}`;
    case 'compare':
      return `${fieldTest.comparison} ${fieldTest.value}`;
    case 'reference':
      return `f${fieldTest.reference}${fieldTest.cased ? 'c' : ''} ${fieldTest.field}`;
    case 'time':
      return `t${fieldTest.part} ${fieldTest.comparison} ${fieldTest.value}`;
  }
}
