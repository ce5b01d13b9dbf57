/** Reads documents of Sigma rules for an import: each by itself, then the references of correlations among all of them. */
import { linkCorrelations } from './correlations.ts';
import { SigmaMatcher } from './sigma-matcher.ts';
import type { Placeholders } from './field-modifiers.ts';
import { type Parsed, parseInSteps } from './parse-rules.ts';
import type { SigmaRule } from './sigma-rule.ts';

export interface SigmaReadRequest {
  readonly placeholders: Placeholders;
  /** Texts of the rules that stand already: correlations may refer to them. */
  readonly registered: readonly string[];
  /** Lets others have their turn. */
  readonly yieldTurn: () => Promise<void>;
}

/** In the order of `documents`. What is accepted has been compiled. */
export async function readSigmaRules(documents: readonly string[], reading: SigmaReadRequest): Promise<readonly Parsed[]> {
  const parse = async (texts: readonly string[]): Promise<Parsed[]> => {
    const parsed: Parsed[] = [];
    for (const text of texts) {
      const steps = parseInSteps(text, reading.placeholders);
      let step = steps.next();
      for (; step.done !== true; step = steps.next()) await reading.yieldTurn();
      parsed.push(step.value);
      await reading.yieldTurn();
    }
    return parsed;
  };
  const given = await parse(documents);
  const rules = given.flatMap(({ document }): readonly SigmaRule[] => (document?.kind === 'rule' ? [document] : []));
  const steps = SigmaMatcher.compile(rules);
  while (steps.next().done !== true) await reading.yieldTurn();
  if (!given.some(({ document }) => document?.kind === 'correlation')) return given;
  const standing = await parse(reading.registered);
  // New documents come last, and so win where one of the standing rules has the same name.
  const all = [...standing, ...given].map(({ document }) => document);
  const { refused } = linkCorrelations(all);
  return given.map((parsed, i) => {
    const refusal = refused.get(standing.length + i);
    if (refusal === undefined || parsed.document === null) return parsed;
    return { document: null, id: parsed.document.id, title: parsed.document.title, error: refusal.toError() };
  });
}
