/** Plain questions: what they become, and that nothing of one is read over where it is understood, or into a name where it is not. */
import { describe, expect, test } from 'vitest';
import { ServiceError } from '../../../src/errors.ts';
import { translate } from '../../../src/planner/languages/natural-language.ts';

const types = ['Person', 'Company', 'MemoryItem', 'Vertex', 'Leaf', 'Parcel', 'snake_case', 'Salesperson', 'Analysis'];
const sqlOf = (question: string): string => translate(question, types).sql;

function refusal(question: string): string {
  try {
    return `was translated: ${sqlOf(question)}`;
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'REL_UNPROCESSABLE') return error.message;
    throw error;
  }
}

describe('how many there are', () => {
  const counted = (type: string, time = 'CURRENT'): string => `SELECT COUNT(*) AS count FROM "${type}" AS OF ${time}`;
  test.each([
    ['how many companies are there', counted('Company')],
    ['How many people are there?', counted('Person')],
    ['how many people do we have in total, please?', counted('Person')],
    ['So, how many memory items exist?', counted('MemoryItem')],
    ['the number of vertices', counted('Vertex')],
    ['count all leaves', counted('Leaf')],
    ['count the salespeople', counted('Salesperson')],
    ['how many rows of snake_case are stored', counted('snake_case')],
    ['how many companies are there as of 2024-01-31?', counted('Company', "'2024-01-31'")],
  ])('%s', (question, sql) => expect([translate(question, types).intent, sqlOf(question)]).toEqual(['count', sql]));

  test.each(['how many companies are in Berlin', 'how many unicorns are there', 'how many people joined since 2020', 'how many'])(
    '%s is refused: it asks for less than all rows of a type',
    (question) => expect(refusal(question)).toMatch(/^could not translate/),
  );
});

test.each([
  ['show me people', 'Person'],
  ['list all PERSONS', 'Person'],
  ['salespeople', 'Salesperson'],
  ['which companies', 'Company'],
  ['leaves and parcels', 'Parcel'],
  ['analyses', 'Analysis'],
  ['snake cases', 'snake_case'],
])('%s browses %s', (question, type) => expect(sqlOf(question)).toBe(`SELECT * FROM "${type}" LIMIT 50`));

describe('paths', () => {
  const paths = (from: string, to: string, hops = 5, more = ''): string =>
    `PATHS_BETWEEN('${from}', '${to}', MAX_HOPS => ${hops})${more}`;
  test.each([
    ['Show me all paths between a and b, please', paths('a', 'b')],
    ['paths between a and b within 3 hops', paths('a', 'b', 3)],
    ['paths between a and b in at most three steps, thank you!', paths('a', 'b', 3)],
    ['paths between a and b with fewer than 4 hops', paths('a', 'b', 3)],
    ['paths of up to 2 hops from a to b', paths('a', 'b', 2)],
    ['a path within 2 hops between a and b?', paths('a', 'b', 2)],
    ['paths from 2001 to 2002', paths('2001', '2002')],
    ['paths between a and b as of 2024-01-31, within 2 hops', paths('a', 'b', 2, " AS OF '2024-01-31'")],
    ["path from O'Hara to “Smith and Sons”", paths("O''Hara", 'Smith and Sons')],
    ['paths between "b, please" and \'since 2020\'', paths('b, please', 'since 2020')],
    ['paths between Smith and Sons and "Acme"', paths('Smith and Sons', 'Acme')],
  ])('%s', (question, sql) => expect(sqlOf(question)).toBe(sql));

  test.each([
    ['paths between a and b since 2020', /"since" is not understood/],
    ['since 2020, paths between a and b', /"Since" is not understood|"since" is not understood/],
    ['paths between a and b in 2020', /"in 2020" is not understood/],
    ['paths between a and b from 2020 to 2021', /subject is not clear/],
    ['paths between a and b last year', /"last year" is not understood/],
    ['paths between a and b via c', /"via" is not understood/],
    ['paths between a and b with at least 3 hops', /not understood/],
    ['paths between a and b within 30 hops', /from 1 to 10 hops/],
    ['paths between Smith and Sons and Acme', /put names in quotes/],
    ['paths between a', /subject is not clear/],
    ['who owns Acme since 2020', /"since" is not understood/],
    ['is Bob sanctioned within 3 hops', /hops is not understood/],
    ['is Bob sanctioned since 2020', /"since" is not understood/],
  ])('%s is refused', (question, why) => expect(refusal(question)).toMatch(why));
});

test.each([
  ['who owns Acme Ltd, please?', "BENEFICIAL_OWNERSHIP_CHAIN('Acme Ltd', MAX_DEPTH => 5)"],
  ['ownership chain of Acme within 3 levels', "BENEFICIAL_OWNERSHIP_CHAIN('Acme', MAX_DEPTH => 3)"],
  ['is Ivan Ivanov sanctioned, please', "SANCTIONS_SCREEN('Ivan Ivanov', THRESHOLD => 0.85)"],
  ['Is Ivan Ivanov on any sanctions list?', "SANCTIONS_SCREEN('Ivan Ivanov', THRESHOLD => 0.85)"],
])('%s', (question, sql) => expect(sqlOf(question)).toBe(sql));
