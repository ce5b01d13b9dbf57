/** Filters of the document door, in SQL as well. */
import { isList, isObject, type Stored } from '../documents/document-values.ts';
import { filterOf } from '../documents/document-filter.ts';
import { readText } from '../documents/document-json.ts';
import { type Cost, work } from '../expression-cost.ts';
import { type ScalarFunction, text } from './scalar-function.ts';

/** Cost in ns; reading and comparing count their own work. */
const documentCost: Cost = { call: 500, character: 0 };

export const documentFunctions: readonly ScalarFunction[] = [
  {
    name: 'DOCUMENT_MATCHES',
    group: 'json',
    usage: 'DOCUMENT_MATCHES(j, \'{"name": …}\')',
    summary: 'Whether a document fulfils a filter as the document door takes it, by the order and the types of BSON.',
    examples: [[`DOCUMENT_MATCHES(CAST('{"a": [1, 7]}' AS JSON), '{"a": {"$gt": 5}}')`, 'true']],
    signatures: [
      {
        takes: ['json', 'string'],
        cost: documentCost,
        yields: 'boolean',
        evaluate: (json, filter) => documentMatches(text(json), text(filter)),
        raises: true,
      },
    ],
  },
];

/** Nanoseconds that a character of a document takes to be read. */
const documentReadCost = 8;

/** A text that is no document, such as a mask's rendering, matches nothing. */
function documentMatches(json: string, filter: string): boolean {
  const documentFilter = filterOf(filter);
  let parsedDocument: Stored;
  // One call reads it, however long it is.
  work.done += json.length * documentReadCost;
  try {
    parsedDocument = readText(json);
  } catch {
    return false;
  }
  return (isObject(parsedDocument) || isList(parsedDocument)) && documentFilter(parsedDocument);
}
