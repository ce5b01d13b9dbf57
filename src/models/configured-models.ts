/** Makes the models that the settings name. */
import type { Settings } from '../config.ts';
import { ConfigError } from '../errors.ts';
import { embedderOf } from './http-embedder.ts';
import { rerankerOf } from './http-reranker.ts';
import { translatorOf } from './http-translator.ts';

/** null: no model is set, and the built-in one does the work. */
export function modelsOf(modelSettings: Settings) {
  for (const modelSetting of ['SERVICE_EMBED_DIR', 'SERVICE_RERANK_DIR'] as const) {
    if (modelSettings[modelSetting] === null) continue;
    throw new ConfigError(
      `${modelSetting} needs an ONNX runtime, which this build is without: unset it, or name an endpoint by ${modelSetting.replace('_DIR', '_URL')}`,
    );
  }
  return { embedder: embedderOf(modelSettings), reranker: rerankerOf(modelSettings), translator: translatorOf(modelSettings) };
}
