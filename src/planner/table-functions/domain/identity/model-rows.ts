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

interface IdentityModel {
  readonly id: string;
  readonly systemFrom: bigint;
  readonly weights: Weights;
}

/** `method` names the model of each type that is weighed by one. */
export function* trainedModels(
  identityCall: DomainCall,
  collections: readonly Collection[],
): Steps<{ readonly trained: ReadonlyMap<Collection, Trained>; readonly method: string }> {
  const trainedByCollection = new Map<Collection, Trained>();
  const modelNames: string[] = [];
  if (identityCall.typesOf('identity_model').length === 0) return { trained: trainedByCollection, method: resolveMethod };
  const identityModels = yield* identityCall.reuse('identity models', ['identity_model'], () => readIdentityModels(identityCall));
  for (const collection of collections) {
    const identityModel = identityModels.get(collection.type);
    if (identityModel === undefined) continue;
    trainedByCollection.set(collection, trainedOf(collection, identityModel.weights));
    modelNames.push(`${collection.type}: ${identityModel.id} of ${formatInstant(identityModel.systemFrom)}`);
  }
  return {
    trained: trainedByCollection,
    method: modelNames.length === 0 ? resolveMethod : `${resolveMethod} (${modelNames.join(', ')})`,
  };
}

function* readIdentityModels(identityCall: DomainCall): Steps<{ value: ReadonlyMap<string, IdentityModel>; bytes: number }> {
  const identityModels = new Map<string, IdentityModel>();
  yield* identityCall.rows('identity_model', ['of_type', 'weights'], (modelBatch) => {
    for (let modelRow = 0; modelRow < modelBatch.count; modelRow++) {
      const [modelId, modelledType, systemFrom] = [
        modelBatch.nodeId(modelRow),
        modelBatch.text('of_type', modelRow),
        modelBatch.systemFrom(modelRow),
      ];
      const modelWeights = weightsIn(modelBatch.json('weights', modelRow));
      if (modelId === null || modelledType === null || systemFrom === null || modelWeights === null) continue;
      const earlierModel = identityModels.get(modelledType);
      const isNewerModel = earlierModel === undefined || systemFrom > earlierModel.systemFrom;
      if (isNewerModel || (systemFrom === earlierModel.systemFrom && compareText(modelId, earlierModel.id) < 0))
        identityModels.set(modelledType, { id: modelId, systemFrom, weights: modelWeights });
    }
  });
  return { value: identityModels, bytes: identityModels.size * 2_048 };
}
