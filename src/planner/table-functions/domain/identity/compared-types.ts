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
  const isNamed = call.types().length === 1;
  for (const definition of call.types()) {
    const { name } = definition;
    if (!isNamed && (builtin.has(name) || !hasIdentity(definition))) continue;
    const columns = comparedColumns(definition);
    if (columns.length === 0) continue;
    try {
      const cacheKey = JSON.stringify(['identities', columns]);
      collections.push(yield* call.keptOf(cacheKey, name, () => Collection.read(call, name, columns)));
    } catch (error) {
      if (isNamed || !isClosed(error)) throw error;
    }
  }
  return collections;
}

const builtin: ReadonlySet<string> = new Set(builtinTypes.map(({ name }) => name));
