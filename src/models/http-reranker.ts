/** A reranker behind an endpoint as Cohere's: `POST {model, query, documents, top_n}` answers `{results: [{index, relevance_score}]}`. */
import type { Settings } from '../config.ts';
import { askModel } from './json-endpoint.ts';
import type { Reranker } from '../planner/embedding/reranker.ts';

const rerankerPatienceMs = 10_000;

export function rerankerOf(settings: Settings): Reranker | null {
  const { SERVICE_RERANK_URL: rerankerUrl, SERVICE_RERANK_MODEL: model, SERVICE_RERANK_KEY: key } = settings;
  if (rerankerUrl === null) return null;
  const endpoint = { url: rerankerUrl, key, what: `the reranker ${model}`, patienceMs: rerankerPatienceMs };
  return {
    name: model,
    rerank: (query, documents, signal) =>
      askModel(endpoint, { model, query, documents, top_n: documents.length }, signal, (answer) =>
        relevanceScoresIn(answer, documents.length),
      ),
  };
}

function relevanceScoresIn(rerankerAnswer: unknown, documentCount: number): readonly number[] {
  const rerankedResults = (rerankerAnswer as { results?: unknown } | null)?.results;
  const relevanceScores = Array.from({ length: documentCount }, () => Number.NaN);
  if (!Array.isArray(rerankedResults)) throw new Error('an answer without scores');
  for (const rerankedResult of rerankedResults as { index?: unknown; relevance_score?: unknown }[]) {
    if (typeof rerankedResult?.index === 'number' && typeof rerankedResult.relevance_score === 'number')
      relevanceScores[rerankedResult.index] = rerankedResult.relevance_score;
  }
  if (relevanceScores.length !== documentCount || !relevanceScores.every(Number.isFinite))
    throw new Error('an answer without a score for each text');
  return relevanceScores;
}
