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
const embedderPatienceMs = 10_000;
const embeddingDimsMax = 4_096;

export function embedderOf(settings: Settings): Embedder | null {
  const {
    SERVICE_EMBED_URL: embedderUrl,
    SERVICE_EMBED_MODEL: model,
    SERVICE_EMBED_KEY: key,
    SERVICE_EMBED_REVISION: revision,
  } = settings;
  return embedderUrl === null ? null : httpEmbedder({ url: embedderUrl, model, key, revision });
}

export function httpEmbedder({ url: embedderUrl, model, key: embedderKey, revision = null }: HttpEmbedderOptions): Embedder {
  const endpoint = { url: embedderUrl, key: embedderKey, what: `the embedding model ${model}`, patienceMs: embedderPatienceMs };
  const modelDigest = createHash('sha256').update(canonicalJson({ model, revision })).digest('hex');
  return {
    name: model,
    digest: modelDigest,
    embed: (text, signal) =>
      askModel(endpoint, { model, input: text }, signal, (answer) => embeddingIn(embeddingItemsIn(answer)[0])),
    embedAll: (texts, signal) =>
      askModel(endpoint, { model, input: texts }, signal, (answer) => embeddingsIn(answer, texts.length)),
  };
}

interface EmbeddingItem {
  readonly index?: unknown;
  readonly embedding?: unknown;
}

function embeddingItemsIn(embedderAnswer: unknown): readonly (EmbeddingItem | undefined)[] {
  const embeddingData = (embedderAnswer as { data?: unknown } | null)?.data;
  return Array.isArray(embeddingData) ? (embeddingData as readonly (EmbeddingItem | undefined)[]) : [];
}

/** In the order of what was asked for: by `index`, where items have one. */
function embeddingsIn(embedderAnswer: unknown, textCount: number): readonly Float32Array[] {
  const embeddingItems = embeddingItemsIn(embedderAnswer);
  const embeddingVectors: Float32Array[] = [];
  for (const [i, embeddingItem] of embeddingItems.entries())
    embeddingVectors[typeof embeddingItem?.index === 'number' ? embeddingItem.index : i] = embeddingIn(embeddingItem);
  const embeddingDims = embeddingVectors[0]?.length;
  for (let i = 0; i < textCount; i++) {
    if (embeddingVectors[i] === undefined || embeddingVectors[i]!.length !== embeddingDims)
      throw new Error('an answer without a vector of each text');
  }
  if (embeddingVectors.length !== textCount) throw new Error('an answer with more vectors than texts');
  return embeddingVectors;
}

function embeddingIn(embeddingItem: EmbeddingItem | undefined): Float32Array {
  const embeddingNumbers = embeddingItem?.embedding;
  const isEmbedding =
    Array.isArray(embeddingNumbers) && embeddingNumbers.length > 0 && embeddingNumbers.length <= embeddingDimsMax;
  if (!isEmbedding || !embeddingNumbers.every((embeddingNumber) => typeof embeddingNumber === 'number'))
    throw new Error('an answer without a vector');
  const embeddingVector = Float32Array.from(embeddingNumbers as number[]);
  if (!embeddingVector.every(Number.isFinite) || embeddingVector.every((value) => value === 0))
    throw new Error('an answer without a direction');
  return embeddingVector;
}
