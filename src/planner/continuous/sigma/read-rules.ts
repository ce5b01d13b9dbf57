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
export async function readSigmaRules(documents: readonly string[], sigmaReading: SigmaReadRequest): Promise<readonly Parsed[]> {
  const parseInTurns = async (sigmaTexts: readonly string[]): Promise<Parsed[]> => {
    const parsedSigma: Parsed[] = [];
    for (const sigmaText of sigmaTexts) {
      const parsingSteps = parseInSteps(sigmaText, sigmaReading.placeholders);
      let parsingStep = parsingSteps.next();
      for (; parsingStep.done !== true; parsingStep = parsingSteps.next()) await sigmaReading.yieldTurn();
      parsedSigma.push(parsingStep.value);
      await sigmaReading.yieldTurn();
    }
    return parsedSigma;
  };
  const givenSigma = await parseInTurns(documents);
  const sigmaRules = givenSigma.flatMap(({ document }): readonly SigmaRule[] => (document?.kind === 'rule' ? [document] : []));
  const compilingSteps = SigmaMatcher.compile(sigmaRules);
  while (compilingSteps.next().done !== true) await sigmaReading.yieldTurn();
  if (!givenSigma.some(({ document }) => document?.kind === 'correlation')) return givenSigma;
  const standingSigma = await parseInTurns(sigmaReading.registered);
  // New documents come last, and so win where one of the standing rules has the same name.
  const allSigmaDocuments = [...standingSigma, ...givenSigma].map(({ document }) => document);
  const { refused } = linkCorrelations(allSigmaDocuments);
  return givenSigma.map((parsed, i) => {
    const correlationRefusal = refused.get(standingSigma.length + i);
    if (correlationRefusal === undefined || parsed.document === null) return parsed;
    return { document: null, id: parsed.document.id, title: parsed.document.title, error: correlationRefusal.toError() };
  });
}
