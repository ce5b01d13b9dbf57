/** A policy text as tokens with their offsets, which the engine's trees leave out. Offsets are in UTF-16 units. */

export interface Token {
  readonly text: string;
  readonly at: number;
}

export interface TextLocation {
  readonly line: number;
  readonly column: number;
}

const token = /\/\/[^\n]*|\s+|"(?:[^"\\]|\\[\s\S])*"|[A-Za-z_]\w*|\d+|::|[=!<>]=|&&|\|\||[\s\S]/gu;

/** Without blanks and comments. */
export function tokensOf(text: string): readonly Token[] {
  const tokens: Token[] = [];
  for (const policyToken of text.matchAll(token)) {
    if (!/^(\/\/|\s)/.test(policyToken[0])) tokens.push({ text: policyToken[0], at: policyToken.index });
  }
  return tokens;
}

/** One policy of a text: `;` stands nowhere in Cedar but at a policy's end. */
export interface PolicyPart {
  readonly text: string;
  readonly at: number;
  readonly tokens: readonly Token[];
}

export function partsOf(text: string): readonly PolicyPart[] {
  const parts: PolicyPart[] = [];
  let open: Token[] = [];
  const close = (): void => {
    const last = open.at(-1)!;
    parts.push({ text: text.slice(open[0]!.at, last.at + last.text.length), at: open[0]!.at, tokens: open });
    open = [];
  };
  for (const policyToken of tokensOf(text)) {
    open.push(policyToken);
    if (policyToken.text === ';') close();
  }
  if (open.length > 0) close();
  return parts;
}

export function placeOf(text: string, at: number): TextLocation {
  const before = text.slice(0, at);
  return { line: before.split('\n').length, column: at - before.lastIndexOf('\n') };
}

/** The engine counts bytes of UTF-8. */
export function unitsOf(text: string, bytes: number): number {
  return Buffer.from(text).subarray(0, bytes).toString().length;
}
