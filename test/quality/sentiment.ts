/** How many labelled sentences SENTIMENT_SCORE and VADER by itself call as their label does: glad from 0.05 on, sorry from -0.05 on. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { sentimentOf } from '../../src/planner/table-functions/domain/scorers/sentiment.ts';
import { finishSteps } from '../finish-steps.ts';

export interface SentimentFigures {
  readonly sentences: number;
  readonly own: number;
  readonly vader: number;
}

const { SentimentIntensityAnalyzer: vader } = createRequire(import.meta.url)('vader-sentiment') as {
  readonly SentimentIntensityAnalyzer: { polarity_scores(text: string): { readonly compound: number } };
};

export function sentimentFigures(): SentimentFigures {
  const sentences = (['glad', 'sorry', 'plain'] as const).flatMap((label) => {
    const text = readFileSync(new URL(`../../fixtures/sentiment/${label}.txt`, import.meta.url), 'utf8');
    return text
      .trim()
      .split('\n')
      .map((sentence) => ({ label, sentence }));
  });
  const right = (scoreOf: (sentence: string) => number): number =>
    sentences.filter(({ label, sentence }) => labelOf(scoreOf(sentence)) === label).length;
  return {
    sentences: sentences.length,
    own: right((sentence) => finishSteps(sentimentOf(sentence)).compound ?? 0),
    vader: right((sentence) => vader.polarity_scores(sentence).compound),
  };
}

function labelOf(compound: number): 'glad' | 'sorry' | 'plain' {
  return compound >= 0.05 ? 'glad' : compound <= -0.05 ? 'sorry' : 'plain';
}
