/** The models that a store may ask, as its settings name them. */
import type { Settings } from './config.ts';
import { embedderOf } from './http-embedder.ts';
import { translatorOf } from './http-translator.ts';

/** null: there is none, and what is built in does the work. */
export function modelsOf(settings: Settings) {
  return { embedder: embedderOf(settings), translator: translatorOf(settings) };
}
