/** The types whose rows are compared, each with its rows as they are compared. */
import { builtinTypes } from '../../../../projections/catalog/builtin-types.ts';
import { isClosed } from '../../../graph/node-and-edge-types.ts';
import type { Steps } from '../../../graph/stepped-sort.ts';
import type { DomainCall } from '../domain-function.ts';
import { Collection } from './compared-rows.ts';
import { comparedColumns, hasIdentity } from './compared-columns.ts';

/** Reads the columns that each type's rows are compared by, kept for as long as they say the same. */
export function* readCollections(call: DomainCall): Steps<Collection[]> {
  const collections: Collection[] = [];
  const isTypeNamed = call.types().length === 1;
  for (const comparedDefinition of call.types()) {
    const { name } = comparedDefinition;
    if (!isTypeNamed && (builtinTypeNames.has(name) || !hasIdentity(comparedDefinition))) continue;
    const columns = comparedColumns(comparedDefinition);
    if (columns.length === 0) continue;
    try {
      const cacheKey = JSON.stringify(['identities', columns]);
      collections.push(yield* call.keptOf(cacheKey, name, () => Collection.read(call, name, columns)));
    } catch (error) {
      if (isTypeNamed || !isClosed(error)) throw error;
    }
  }
  return collections;
}

const builtinTypeNames: ReadonlySet<string> = new Set(builtinTypes.map(({ name }) => name));
