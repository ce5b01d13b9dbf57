/** Mistakes in the doors: credentials, headers, bodies, records, replies. */
import type { Mutant } from '../mutant.ts';

const objects = ['test/doors/object/door.test.ts'];
const bodiesOfObjects = ['test/doors/object/bodies.test.ts'];
const test = (name: string): readonly string[] => [`test/doors/http/${name}.test.ts`];

export const mutants: readonly Mutant[] = [
  {
    name: 'bodies whose long integers are rounded',
    file: 'src/doors/http/json-body.ts',
    find: 'jsonValue = parseExactJson(jsonText, jsonNumbers);',
    replace: 'jsonValue = parseExactJson(jsonText, jsonNumbers) && JSON.parse(jsonText);',
    killedBy: test('exact-values'),
  },
  {
    name: 'json cells of tool replies that are rounded',
    file: 'src/doors/verbs/query.ts',
    find: 'return parseExactJson(cellText);',
    replace: 'return parseExactJson(cellText) && JSON.parse(cellText);',
    killedBy: test('exact-values'),
  },
  {
    name: 'texts that are taken for long integers',
    file: 'src/doors/shared/read-exact-json.ts',
    find: 'if (escapeCount % 2 === 0) return closingQuote + 1;',
    replace: 'return closingQuote + 1;',
    killedBy: test('exact-values'),
  },
  {
    name: 'milliseconds that are taken for nanoseconds',
    file: 'src/log/values/timestamp.ts',
    find: 'return absoluteNumber >= coarseInstantMin && absoluteNumber < coarseInstantMax;',
    replace: 'return absoluteNumber >= coarseInstantMin && absoluteNumber < coarseInstantMin;',
    killedBy: test('exact-values'),
  },
  {
    name: 'a key id of signed URLs that signs requests',
    file: 'src/governance/authentication/authenticator.ts',
    in: 'Authenticator.accessKey',
    find: "signs: 'urls'",
    replace: "signs: 'requests'",
    killedBy: objects,
  },
  {
    name: 'one secret for every registry token of the object door',
    file: 'src/governance/authentication/authenticator.ts',
    in: 'Authenticator.accessKey',
    find: 'tokenKeyPair === null ? sharedSecretKey : tokenKeyPair.secretKey',
    replace: 'sharedSecretKey',
    killedBy: objects,
  },
  {
    name: 'bodies that no row came to name, and that stay',
    file: 'src/governance/writing/large-bodies.ts',
    in: 'LargeBodies.end',
    find: 'if (wrote) for',
    replace: 'for',
    killedBy: bodiesOfObjects,
  },
  {
    name: 'bodies that are taken before the write is decided',
    file: 'src/doors/object/put-object.ts',
    in: 'putObject',
    find: 'if (incomingBody.length >= inlineMax(s3Exchange)) await rehearsePut(objectReader, row, incomingBody.length);',
    replace: '',
    killedBy: bodiesOfObjects,
  },
  {
    name: 'parts that are counted beside the object made of them',
    file: 'src/doors/object/multipart-upload.ts',
    in: 'readAllParts',
    find: 'uploadedPart.count(false);',
    replace: '',
    killedBy: bodiesOfObjects,
  },
  {
    name: 'a range of all of an object that is no range',
    file: 'src/doors/object/get-object.ts',
    in: 'getObject',
    find: 'askedRange === null ? 200 : 206',
    replace: 'isWholeObject ? 200 : 206',
    killedBy: objects,
  },
];
