/**
 * What a client of the document door may send, as any bytes. What must hold: however they are cut, the same messages come out, or the
 * same refusal at the same place; what was read is written as it was; and filters, updates and stages end, or refuse.
 */
import { readDocument, type WritableObject, writeDocument } from '../../../src/doors/document/bson.ts';
import { commandSteps, encodeReply, mongoCodec } from '../../../src/doors/document/codec.ts';
import { projectionOf, stageOf } from '../../../src/doors/document/pipeline-stages.ts';
import { seedOf, updateOf } from '../../../src/doors/document/update-operators.ts';
import { assert, ServiceError } from '../../../src/errors.ts';
import { compileFilter } from '../../../src/planner/expressions/documents/document-filter.ts';
import { allAtOnce } from '../../../src/planner/expressions/resumable-steps.ts';
import { readText, textOf } from '../../../src/planner/expressions/documents/document-json.ts';
import {
  compare,
  identityOf,
  isList,
  type Stored,
  type StoredObject,
} from '../../../src/planner/expressions/documents/document-values.ts';
import { checkCuts } from '../cuts.ts';

export const name = 'document-codec';

export function run(bytes: Uint8Array): void {
  for (const message of checkCuts(mongoCodec, bytes).slice(0, 4)) attempt(() => check(allAtOnce(commandSteps(message))));
}

function check(command: StoredObject): void {
  const written = writeDocument(command);
  const again = readDocument(written).document;
  assert(writeDocument(again).equals(written), 'what was read is written as it was');
  assert(compare(again, command) === 0 && identityOf(again) === identityOf(command), 'equal documents compare as equal');
  attempt(() => {
    const text = textOf(command);
    assert(writeDocument(readText(text) as StoredObject).equals(written), 'what is stored is read as it was');
    assert(JSON.stringify(JSON.parse(text)).length === text.length, 'what is stored is JSON');
  });
  for (const value of command.values()) attempt(() => work(value, command));
}

function work(value: Stored, document: StoredObject): void {
  for (const each of isList(value) ? value.slice(0, 4) : [value]) {
    attempt(() => compileFilter(each)(document));
    attempt(() => allAtOnce(seedOf(each)));
    attempt(() => allAtOnce(allAtOnce(updateOf(each))(document, true)));
    attempt(() => allAtOnce(projectionOf(each))(document));
    attempt(() => {
      // What it rejects with ends the run, unless it is a refusal.
      const made = Promise.resolve(allAtOnce(stageOf(each))([document, document], () => Promise.resolve()));
      void made.catch((error: unknown) => {
        if (!(error instanceof ServiceError)) throw error;
      });
    });
  }
}

function attempt(step: () => unknown): void {
  try {
    step();
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
  }
}

/** As a client sends it: the reply to a message is a message too, of another number. */
const message = (document: WritableObject): Buffer => encodeReply(7, { number: 0, form: 'msg' }, document);
/** Of the Extended JSON that stands for it. */
const stored = (literal: unknown): StoredObject => readText(JSON.stringify(literal)) as StoredObject;

export function seeds(): Uint8Array[] {
  const commands = [
    {
      find: 'c',
      filter: { a: { $gt: 1, $in: [1, 'x', null] }, $or: [{ b: { $regex: '^a(b|c)*$' } }, { c: { $elemMatch: { d: 1 } } }] },
      $db: 'd',
    },
    {
      insert: 'c',
      documents: [
        { _id: { $oid: '0123456789abcdef01234567' }, l: { $numberLong: '9007199254740993' }, d: { $numberDouble: '-0.0' } },
      ],
      $db: 'd',
    },
    {
      insert: 'c',
      documents: [
        {
          when: { $date: { $numberLong: '-1' } },
          b: { $binary: { base64: 'AP8=', subType: '00' } },
          r: { $regularExpression: { pattern: 'a', options: 'i' } },
        },
      ],
    },
    {
      update: 'c',
      updates: [
        {
          q: { 'a.b': 1 },
          u: { $set: { 'a.0.c': [1] }, $inc: { n: { $numberLong: '1' } }, $setOnInsert: { x: 1 } },
          upsert: true,
        },
      ],
      $db: 'd',
    },
    {
      aggregate: 'c',
      pipeline: [
        { $match: { a: { $mod: [3, 1] } } },
        { $group: { _id: { a: '$a.b' }, n: { $sum: '$n' }, all: { $push: '$$ROOT' } } },
        { $sort: { n: -1 } },
        { $project: { 'a.b': 1 } },
      ],
    },
    {
      x: { $numberDecimal: '1.10' },
      t: { $timestamp: { t: 1, i: 2 } },
      min: { $minKey: 1 },
      max: { $maxKey: 1 },
      u: { $undefined: true },
      c: { $code: 'f' },
      s: { $symbol: 's' },
      w: { $code: 'f', $scope: { '10': 1, b: 2, '9': 3 } },
      p: { $dbPointer: { $ref: 'c', $id: { $oid: '0123456789abcdef01234567' } } },
    },
    {
      hello: 1,
      speculativeAuthenticate: {
        saslStart: 1,
        mechanism: 'SCRAM-SHA-256',
        payload: { $binary: { base64: 'biws', subType: '00' } },
      },
    },
  ].map(stored);
  const query = Buffer.concat([
    Buffer.from([0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0xd4, 7, 0, 0, 0, 0, 0, 0]),
    Buffer.from('admin.$cmd\0'),
    Buffer.from([0, 0, 0, 0, 1, 0, 0, 0]),
    writeDocument({ ismaster: 1, helloOk: true }),
  ]);
  query.writeInt32LE(query.length, 0);
  const section = Buffer.concat([Buffer.from('documents\0'), writeDocument({ _id: 1 }), writeDocument({ _id: 2 })]);
  const length = Buffer.alloc(4);
  length.writeInt32LE(section.length + 4);
  const sequence = Buffer.concat([message({ insert: 'c', $db: 'd' }), Buffer.from([1]), length, section]);
  sequence.writeInt32LE(sequence.length, 0);
  let deep: unknown = 1;
  for (let i = 0; i < 60; i++) deep = i % 2 ? [deep] : { a: deep };
  return [
    ...commands.map(message),
    query,
    sequence,
    message(stored({ find: 'c', filter: { a: deep } })),
    Buffer.concat(commands.map(message)),
  ];
}
