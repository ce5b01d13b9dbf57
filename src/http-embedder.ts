/** An embedding model behind an endpoint as OpenAI's: `POST {model, input}` answers `{data: [{embedding: [number, …]}]}`. */
import type { Settings } from './config.ts';
import { askModel } from './http-model.ts';
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
  const place = { url, key, what: `the embedding model ${model}`, patienceMs };
  return { name: model, embed: (text, signal) => askModel(place, { model, input: text }, signal, vectorIn) };
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
