/**
 * Trained weights as rows of the role `identity_model`: those that the caller sees, as of the instant that is asked about. Of several of a
 * type the newest counts.
 */
import { compareText } from '../../../../log/values/value.ts';
import { formatInstant } from '../../../../log/values/timestamp.ts';
import type { Steps } from '../../../graph/stepped-sort.ts';
import type { DomainCall } from '../domain-function.ts';
import type { Collection } from './compared-rows.ts';
import type { Trained } from './likelihood.ts';
import { trainedOf, type Weights, weightsIn } from './trained-weights.ts';

export const resolveMethod = 'fellegi-sunter/4';

interface Model {
  readonly id: string;
  readonly systemFrom: bigint;
  readonly weights: Weights;
}

/** `method` names the model of each type that is weighed by one. */
export function* trainedModels(
  call: DomainCall,
  collections: readonly Collection[],
): Steps<{ readonly trained: ReadonlyMap<Collection, Trained>; readonly method: string }> {
  const trained = new Map<Collection, Trained>();
  const names: string[] = [];
  if (call.typesOf('identity_model').length === 0) return { trained, method: resolveMethod };
  const models = yield* call.reuse('identity models', ['identity_model'], () => readModels(call));
  for (const collection of collections) {
    const model = models.get(collection.type);
    if (model === undefined) continue;
    trained.set(collection, trainedOf(collection, model.weights));
    names.push(`${collection.type}: ${model.id} of ${formatInstant(model.systemFrom)}`);
  }
  return { trained, method: names.length === 0 ? resolveMethod : `${resolveMethod} (${names.join(', ')})` };
}

function* readModels(call: DomainCall): Steps<{ value: ReadonlyMap<string, Model>; bytes: number }> {
  const models = new Map<string, Model>();
  yield* call.rows('identity_model', ['of_type', 'weights'], (batch) => {
    for (let row = 0; row < batch.count; row++) {
      const [id, type, systemFrom] = [batch.nodeId(row), batch.text('of_type', row), batch.systemFrom(row)];
      const weights = weightsIn(batch.json('weights', row));
      if (id === null || type === null || systemFrom === null || weights === null) continue;
      const before = models.get(type);
      const isNewer = before === undefined || systemFrom > before.systemFrom;
      if (isNewer || (systemFrom === before.systemFrom && compareText(id, before.id) < 0))
        models.set(type, { id, systemFrom, weights });
    }
  });
  return { value: models, bytes: models.size * 2_048 };
}
