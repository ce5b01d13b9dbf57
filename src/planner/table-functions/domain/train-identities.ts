/**
 * TRAIN_IDENTITIES: weights for RESOLVE_IDENTITY, learned from visible rows without labels. It writes nothing: a row of the role
 * `identity_model` keeps them, which a job whose function this is puts. Source: specification, "SQL dialect", the table of operators.
 */
import type { Steps } from '../../graph/stepped-sort.ts';
import type { TableFunction } from '../../calls/table-function.ts';
import { type DomainCall, domainFunction, type DomainRow } from './domain-function.ts';
import { readCollections } from './identity/compared-types.ts';
import { train, weightsJson } from './identity/trained-weights.ts';

export const trainIdentities: TableFunction = domainFunction({
  name: 'TRAIN_IDENTITIES',
  summary: 'Weights by which rows of a type are told to be one thing, learned from the rows themselves.',
  method: 'em/1',
  arguments: [],
  roles: [],
  everyType: true,
  columns: [
    { name: 'of_type', type: 'string' },
    { name: 'weights', type: 'json' },
    { name: 'pairs', type: 'integer' },
    { name: 'matches', type: 'integer' },
  ],
  run: trainAllTypes,
});

function* trainAllTypes(trainCall: DomainCall): Steps<readonly DomainRow[]> {
  const trainedRows: DomainRow[] = [];
  for (const typeCollection of yield* readCollections(trainCall)) {
    const typeTraining = yield* train(typeCollection, (count) => trainCall.look(count));
    if (typeTraining === null) continue;
    const { weights: trainedWeights, pairs: trainingPairs, matches: trainingMatches, rounds: trainingRounds } = typeTraining;
    trainedRows.push({
      nodeId: null,
      type: null,
      cells: [typeCollection.type, JSON.stringify(weightsJson(trainedWeights)), BigInt(trainingPairs), BigInt(trainingMatches)],
      score: null,
      evidence: { rows: typeCollection.size, rounds: trainingRounds },
    });
  }
  return trainedRows;
}
