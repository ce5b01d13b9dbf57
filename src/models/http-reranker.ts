/** A reranker behind an endpoint as Cohere's: `POST {model, query, documents, top_n}` answers `{results: [{index, relevance_score}]}`. */
import type { Settings } from '../config.ts';
import { askModel } from './json-endpoint.ts';
import type { Reranker } from '../planner/embedding/reranker.ts';

const patienceMs = 10_000;

export function rerankerOf(settings: Settings): Reranker | null {
  const { SERVICE_RERANK_URL: url, SERVICE_RERANK_MODEL: model, SERVICE_RERANK_KEY: key } = settings;
  if (url === null) return null;
  const endpoint = { url, key, what: `the reranker ${model}`, patienceMs };
  return {
    name: model,
    rerank: (query, documents, signal) =>
      askModel(endpoint, { model, query, documents, top_n: documents.length }, signal, (answer) =>
        scoresIn(answer, documents.length),
      ),
  };
}

function scoresIn(answer: unknown, count: number): readonly number[] {
  const results = (answer as { results?: unknown } | null)?.results;
  const scores = Array.from({ length: count }, () => Number.NaN);
  if (!Array.isArray(results)) throw new Error('an answer without scores');
  for (const each of results as { index?: unknown; relevance_score?: unknown }[]) {
    if (typeof each?.index === 'number' && typeof each.relevance_score === 'number') scores[each.index] = each.relevance_score;
  }
  if (scores.length !== count || !scores.every(Number.isFinite)) throw new Error('an answer without a score for each text');
  return scores;
}
