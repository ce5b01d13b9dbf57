/** Why a Sigma rule is not accepted: thrown inside this folder, and handed out as a value by `parse-rules.ts`. */

export type RefusalCode = 'REL_PARSE' | 'REL_INVALID' | 'REL_TOO_LARGE';

export interface SigmaError {
  readonly code: RefusalCode;
  /** Keys of the rule from its root, joined by dots: `detection.selection.Image|re`. */
  readonly path: string;
  readonly detail: string;
}

export class Refusal extends Error {
  readonly code: RefusalCode;
  readonly path: string;

  constructor(path: string, refusalDetail: string, code: RefusalCode = 'REL_INVALID') {
    super(refusalDetail);
    this.code = code;
    this.path = path;
  }

  toError(): SigmaError {
    return { code: this.code, path: this.path, detail: this.message };
  }
}

/** Bounds of one rule: larger ones are refused, never cut. */
export const bounds = {
  /** Bytes of one document: parsing YAML is one turn. */
  documentBytes: 256 * 1024,
  /** Lexemes of one document: about five for each value of a list in lines of its own. */
  lexemes: 20_000,
  /** Characters of all regular expressions of one rule: compiling takes longer than all else. */
  regexLength: 4_096,
  /** Values of one rule, after placeholders and encodings have multiplied them. */
  values: 20_000,
  /** Characters that base64 and base64offset encode in one rule, those that they encode again included. */
  encodedLength: 2 << 20,
  /** Characters of one value. */
  valueLength: 8_192,
  conditionLength: 16_384,
  /** Parentheses and negations inside each other. */
  conditionDepth: 64,
  /** Parts of a condition once its search identifiers stand in their places. */
  conditionParts: 100_000,
  /** Lists and maps inside each other in a detection. */
  detectionDepth: 16,
  yamlAliases: 100,
  yamlDepth: 64,
} as const;
