/**
 * An embedding model behind an endpoint as OpenAI's: `POST {model, input}`, of one text or several, answers
 * `{data: [{index, embedding: [number, …]}, …]}`.
 */
import { createHash } from 'node:crypto';
import type { Settings } from '../config.ts';
import { canonicalJson } from '../log/values/canonical-json.ts';
import { askModel } from './json-endpoint.ts';
import type { Embedder } from '../governance/embedding/embedder.ts';

export interface HttpEmbedderOptions {
  /** The whole address, `/embeddings` included. */
  readonly url: string;
  readonly model: string;
  /** Sent as a bearer token. */
  readonly key: string | null;
  /** Tells models of one name apart, as their operator numbers them. */
  readonly revision?: string | null;
}

/** Milliseconds after which a model counts as down. */
const patienceMs = 10_000;
const dimsMax = 4_096;

export function embedderOf(settings: Settings): Embedder | null {
  const {
    SERVICE_EMBED_URL: url,
    SERVICE_EMBED_MODEL: model,
    SERVICE_EMBED_KEY: key,
    SERVICE_EMBED_REVISION: revision,
  } = settings;
  return url === null ? null : httpEmbedder({ url, model, key, revision });
}

export function httpEmbedder({ url, model, key, revision = null }: HttpEmbedderOptions): Embedder {
  const endpoint = { url, key, what: `the embedding model ${model}`, patienceMs };
  const digest = createHash('sha256').update(canonicalJson({ model, revision })).digest('hex');
  return {
    name: model,
    digest,
    embed: (text, signal) => askModel(endpoint, { model, input: text }, signal, (answer) => vectorIn(itemsIn(answer)[0])),
    embedAll: (texts, signal) => askModel(endpoint, { model, input: texts }, signal, (answer) => vectorsIn(answer, texts.length)),
  };
}

interface Item {
  readonly index?: unknown;
  readonly embedding?: unknown;
}

function itemsIn(answer: unknown): readonly (Item | undefined)[] {
  const data = (answer as { data?: unknown } | null)?.data;
  return Array.isArray(data) ? (data as readonly (Item | undefined)[]) : [];
}

/** In the order of what was asked for: by `index`, where items have one. */
function vectorsIn(answer: unknown, count: number): readonly Float32Array[] {
  const items = itemsIn(answer);
  const vectors: Float32Array[] = [];
  for (const [i, item] of items.entries()) vectors[typeof item?.index === 'number' ? item.index : i] = vectorIn(item);
  const dims = vectors[0]?.length;
  for (let i = 0; i < count; i++) {
    if (vectors[i] === undefined || vectors[i]!.length !== dims) throw new Error('an answer without a vector of each text');
  }
  if (vectors.length !== count) throw new Error('an answer with more vectors than texts');
  return vectors;
}

function vectorIn(item: Item | undefined): Float32Array {
  const numbers = item?.embedding;
  const isVector = Array.isArray(numbers) && numbers.length > 0 && numbers.length <= dimsMax;
  if (!isVector || !numbers.every((each) => typeof each === 'number')) throw new Error('an answer without a vector');
  const vector = Float32Array.from(numbers as number[]);
  if (!vector.every(Number.isFinite) || vector.every((value) => value === 0)) throw new Error('an answer without a direction');
  return vector;
}
