/** Mistakes in the doors: credentials, headers, bodies, records, replies. */
import type { Mutant } from '../mutant.ts';

const objects = ['test/doors/object/door.test.ts'];
const bodiesOfObjects = ['test/doors/object/bodies.test.ts'];
const test = (name: string): readonly string[] => [`test/doors/http/${name}.test.ts`];

export const mutants: readonly Mutant[] = [
  {
    name: 'bodies whose long integers are rounded',
    file: 'src/doors/http/json-body.ts',
    find: 'value = parseExactJson(text, numbers);',
    replace: 'value = parseExactJson(text, numbers) && JSON.parse(text);',
    killedBy: test('exact-values'),
  },
  {
    name: 'json cells of tool replies that are rounded',
    file: 'src/doors/verbs/query.ts',
    find: 'return parseExactJson(text);',
    replace: 'return parseExactJson(text) && JSON.parse(text);',
    killedBy: test('exact-values'),
  },
  {
    name: 'texts that are taken for long integers',
    file: 'src/doors/shared/read-exact-json.ts',
    find: 'if (escapes % 2 === 0) return end + 1;',
    replace: 'return end + 1;',
    killedBy: test('exact-values'),
  },
  {
    name: 'milliseconds that are taken for nanoseconds',
    file: 'src/log/values/timestamp.ts',
    find: 'return size >= coarseMin && size < coarseMax;',
    replace: 'return size >= coarseMin && size < coarseMin;',
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
    find: 'ofToken === null ? sharedSecretKey : ofToken.secretKey',
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
    find: 'if (incoming.length >= inlineMax(exchange)) await rehearsePut(objectReader, row, incoming.length);',
    replace: '',
    killedBy: bodiesOfObjects,
  },
  {
    name: 'parts that are counted beside the object made of them',
    file: 'src/doors/object/multipart-upload.ts',
    in: 'readAll',
    find: 'part.count(false);',
    replace: '',
    killedBy: bodiesOfObjects,
  },
  {
    name: 'a range of all of an object that is no range',
    file: 'src/doors/object/get-object.ts',
    in: 'getObject',
    find: 'asked === null ? 200 : 206',
    replace: 'isWhole ? 200 : 206',
    killedBy: objects,
  },
];
