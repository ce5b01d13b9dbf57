/** Texts grown from a grammar: each byte chooses one alternative of the rule at hand; when they run out, rules take their shortest way. */

/** Alternatives of each rule, apart by ` | `, symbols by a space; what is no rule stands for itself. The first alternative of a rule ends. */
export type Grammar = Readonly<Record<string, string>>;

const split = new WeakMap<Grammar, Readonly<Record<string, readonly string[]>>>();

/** A text of the rule `statement`. */
export function grown(grammar: Grammar, bytes: Uint8Array): string {
  const rules = rulesOf(grammar);
  let at = 0;
  let budget = 400;
  const parts: string[] = [];
  grow('statement');
  return parts.join(' ');

  function grow(rule: string): void {
    const alternatives = rules[rule];
    if (!alternatives) {
      parts.push(rule);
      return;
    }
    const choice = at < bytes.length && --budget > 0 ? bytes[at++]! % alternatives.length : 0;
    for (const symbol of alternatives[choice]!.split(' ')) if (symbol !== '') grow(symbol);
  }
}

function rulesOf(grammar: Grammar): Readonly<Record<string, readonly string[]>> {
  let rules = split.get(grammar);
  if (rules === undefined) {
    rules = Object.fromEntries(Object.entries(grammar).map(([rule, text]) => [rule, text.split(' | ')]));
    split.set(grammar, rules);
  }
  return rules;
}
