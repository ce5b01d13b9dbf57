/** A policy text as tokens with their offsets, which the engine's trees leave out. Offsets are in UTF-16 units. */

export interface Token {
  readonly text: string;
  readonly at: number;
}

export interface TextLocation {
  readonly line: number;
  readonly column: number;
}

const cedarTokenPattern = /\/\/[^\n]*|\s+|"(?:[^"\\]|\\[\s\S])*"|[A-Za-z_]\w*|\d+|::|[=!<>]=|&&|\|\||[\s\S]/gu;

/** Without blanks and comments. */
export function tokensOf(text: string): readonly Token[] {
  const cedarTokens: Token[] = [];
  for (const policyToken of text.matchAll(cedarTokenPattern)) {
    if (!/^(\/\/|\s)/.test(policyToken[0])) cedarTokens.push({ text: policyToken[0], at: policyToken.index });
  }
  return cedarTokens;
}

/** One policy of a text: `;` stands nowhere in Cedar but at a policy's end. */
export interface PolicyPart {
  readonly text: string;
  readonly at: number;
  readonly tokens: readonly Token[];
}

export function partsOf(text: string): readonly PolicyPart[] {
  const policyParts: PolicyPart[] = [];
  let openPolicyTokens: Token[] = [];
  const closePolicy = (): void => {
    const last = openPolicyTokens.at(-1)!;
    policyParts.push({
      text: text.slice(openPolicyTokens[0]!.at, last.at + last.text.length),
      at: openPolicyTokens[0]!.at,
      tokens: openPolicyTokens,
    });
    openPolicyTokens = [];
  };
  for (const policyToken of tokensOf(text)) {
    openPolicyTokens.push(policyToken);
    if (policyToken.text === ';') closePolicy();
  }
  if (openPolicyTokens.length > 0) closePolicy();
  return policyParts;
}

export function locationOf(text: string, at: number): TextLocation {
  const before = text.slice(0, at);
  return { line: before.split('\n').length, column: at - before.lastIndexOf('\n') };
}

/** The engine counts bytes of UTF-8. */
export function unitsOf(text: string, bytes: number): number {
  return Buffer.from(text).subarray(0, bytes).toString().length;
}
