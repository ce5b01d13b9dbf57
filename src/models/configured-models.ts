/** Makes the models that the settings name. */
import type { Settings } from '../config.ts';
import { ConfigError } from '../errors.ts';
import { embedderOf } from './http-embedder.ts';
import { rerankerOf } from './http-reranker.ts';
import { translatorOf } from './http-translator.ts';

/** null: no model is set, and the built-in one does the work. */
export function modelsOf(settings: Settings) {
  for (const name of ['SERVICE_EMBED_DIR', 'SERVICE_RERANK_DIR'] as const) {
    if (settings[name] === null) continue;
    throw new ConfigError(
      `${name} needs an ONNX runtime, which this build is without: unset it, or name an endpoint by ${name.replace('_DIR', '_URL')}`,
    );
  }
  return { embedder: embedderOf(settings), reranker: rerankerOf(settings), translator: translatorOf(settings) };
}
