/** All table functions, and the names of those not built yet with what they need. */
import { didYouMean, type ServiceError } from '../../errors.ts';
import { errorAt } from '../syntax/error-location.ts';
import type { Location } from '../syntax/statement.ts';
import { graphFunctions, innerFunctions } from '../graph/algorithm-functions.ts';
import { graphRows } from '../graph/all-types-scan.ts';
import { entities } from '../graph/path-json.ts';
import { unwind } from '../graph/pattern-unwind.ts';
import { walk } from '../graph/pattern-walk.ts';
import { domainFunctions } from './domain/all.ts';
import { hybridSearch } from './hybrid-search.ts';
import { provenanceTriples } from './provenance-triples.ts';
import { similar } from './similar.ts';
import type { TableFunction } from '../calls/table-function.ts';

export const tableFunctions: readonly TableFunction[] = [
  hybridSearch,
  similar,
  provenanceTriples,
  ...graphFunctions,
  ...domainFunctions,
];

const functionsByName: ReadonlyMap<string, TableFunction> = new Map(
  [...tableFunctions, ...innerFunctions, walk, graphRows, entities, unwind].map((registeredFunction) => [
    registeredFunction.name,
    registeredFunction,
  ]),
);

export function tableFunction(name: string): TableFunction | undefined {
  return functionsByName.get(name);
}

const functionsByTable: ReadonlyMap<string, TableFunction> = new Map(
  tableFunctions.flatMap((registeredFunction) =>
    registeredFunction.table ? [[registeredFunction.table, registeredFunction]] : [],
  ),
);

/** The function whose rows are named like those of a type. */
export function functionOfTable(name: string): TableFunction | undefined {
  return functionsByTable.get(name);
}

/** Names behind which a call may stand without SELECT * FROM. */
export function isTableFunction(name: string): boolean {
  return functionsByName.has(name) || unmetNeeds.has(name);
}

export function refuseTableFunction(name: string, location: Location): ServiceError {
  const unmetNeed = unmetNeeds.get(name);
  if (unmetNeed === undefined) {
    const noFunctionDetail = `there is no table function ${JSON.stringify(name)}${didYouMean(name, functionsByName.keys())}`;
    return errorAt('REL_NOT_FOUND', noFunctionDetail, location, 'no-such-function');
  }
  return errorAt('REL_NOT_IMPLEMENTED', `${name} is not implemented: it needs ${unmetNeed}`, location);
}

/** Source: specification, "SQL dialect", the table of operators. */
const unmetNeeds: ReadonlyMap<string, string> = new Map(
  Object.entries({
    'an exhibit': 'EXPLAIN_REPLAY',
    'to be a statement of its own': 'FUSE_IDENTITIES SPLIT_IDENTITIES',
    'vectors of images, faces and voices, which nothing makes': 'SIMILAR_IMAGE FACE_SEARCH VOICE_MATCH',
  }).flatMap(([unmetNeed, needyNames]) => needyNames.split(' ').map((name): [string, string] => [name, unmetNeed])),
);
