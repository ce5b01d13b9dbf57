/** An embedding model behind an endpoint as OpenAI's: `POST {model, input}` answers `{data: [{embedding: [number, …]}]}`. */
import { ServiceError } from './errors.ts';
import type { Settings } from './config.ts';
import type { Embedder } from './planner/embedding/embedder.ts';

export interface HttpEmbedderOptions {
  /** The whole address, `/embeddings` included. */
  readonly url: string;
  readonly model: string;
  /** Sent as a bearer token. */
  readonly key: string | null;
}

/** Milliseconds after which a model counts as down. */
const patienceMs = 10_000;
const dimsMax = 4_096;

export function embedderOf(settings: Settings): Embedder | null {
  const { SERVICE_EMBED_URL: url, SERVICE_EMBED_MODEL: model, SERVICE_EMBED_KEY: key } = settings;
  return url === null ? null : httpEmbedder({ url, model, key });
}

export function httpEmbedder({ url, model, key }: HttpEmbedderOptions): Embedder {
  return {
    name: model,
    embed: async (text, signal) => {
      const patience = AbortSignal.timeout(patienceMs);
      try {
        const response = await fetch(url, {
          method: 'POST',
          headers: { 'content-type': 'application/json', ...(key !== null && { authorization: `Bearer ${key}` }) },
          body: JSON.stringify({ model, input: text }),
          signal: signal ? AbortSignal.any([signal, patience]) : patience,
          redirect: 'error',
        });
        if (!response.ok) throw new Error(`status ${response.status}`);
        return vectorIn(await response.json());
      } catch (error) {
        if (signal?.aborted) throw new ServiceError('REL_CANCELLED', 'the caller went away');
        throw new ServiceError('REL_UNAVAILABLE', `the embedding model ${model} does not answer: ${reasonOf(error)}`);
      }
    },
  };
}

/** Never what the endpoint wrote: it may repeat the text. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'no reason given';
  if (error.name === 'TimeoutError') return `no answer within ${patienceMs / 1000} s`;
  return error.message.startsWith('status ') || error.message.startsWith('an answer') ? error.message : 'no connection';
}

function vectorIn(answer: unknown): Float32Array {
  const data = (answer as { data?: unknown } | null)?.data;
  const first: unknown = Array.isArray(data) ? data[0] : undefined;
  const numbers = (first as { embedding?: unknown } | undefined)?.embedding;
  const isVector = Array.isArray(numbers) && numbers.length > 0 && numbers.length <= dimsMax;
  if (!isVector || !numbers.every((each) => typeof each === 'number')) throw new Error('an answer without a vector');
  const vector = Float32Array.from(numbers as number[]);
  if (!vector.every(Number.isFinite) || vector.every((value) => value === 0)) throw new Error('an answer without a direction');
  return vector;
}
