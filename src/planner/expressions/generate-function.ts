/**
 * The one place where text becomes code. Its input is built from fixed words and numbers, never from a caller's text; therefore
 * equal shapes have equal text, and are compiled once.
 */
import { LRUCache } from 'lru-cache';

const generatedFunctions = new LRUCache<string, object>({ max: 4_096 });

export function generateFunction<F extends object>(parameters: readonly string[], body: string): F {
  const functionSource = `${parameters.join()}\n${body}`;
  const generatedFunction = generatedFunctions.get(functionSource);
  if (generatedFunction) return generatedFunction as F;
  // oxlint-disable-next-line typescript/no-implied-eval -- loops specialised to a column layout are what makes scans fast
  const compiledFunction = new Function(...parameters, body) as F;
  generatedFunctions.set(functionSource, compiledFunction);
  return compiledFunction;
}
