/**
 * Messages of clients of the document door. Every message is
 *
 *   length of it all [4] · its number [4] · the number that it answers [4] · code [4] · body
 *
 * OP_MSG (2013): flags [4], then sections: 0 and a document, or 1, a length, a name and documents; a checksum [4] where flagged.
 * OP_QUERY (2004), with which clients begin: flags [4] · name · skip [4] · count [4] · document
 */
import { ServiceError } from '../../errors.ts';
import type { Steps } from '../../planner/expressions/resumable-steps.ts';
import { Pace } from '../../planner/expressions/documents/document-json.ts';
import type { Stored, StoredObject } from '../../planner/expressions/documents/document-values.ts';
import type { Codec, Decoded } from '../shared/codec.ts';
import { documentEnd, readSteps, type WritableObject, writeDocument } from './bson.ts';
import { DocumentRefusal } from './errors.ts';

export interface MongoMessage {
  readonly number: number;
  readonly form: 'msg' | 'query';
  /** Not read yet: the reply reports any error in it, because the next message begins where this one's length says. */
  readonly body: Buffer;
  /** The client expects no reply. */
  readonly silent: boolean;
}

/** Nothing but the head is looked at: `commandSteps` reads the body. */
export const mongoCodec: Codec<null, MongoMessage> = { start: null, cost: { part: 500, byte: 0 }, partsInTurn: 1, decode };

const headBytes = 16;
const opCodes = { reply: 1, query: 2004, msg: 2013, compressed: 2012 } as const;
const flags = { checksum: 1, moreToCome: 2 } as const;
const knownFlags = 0x1_0003;

const malformedError = (what: string): ServiceError => new ServiceError('REL_INVALID', what);
const refusal = (what: string): DocumentRefusal => new DocumentRefusal(22, what);

function decode(_state: null, bytes: Buffer): Decoded<null, MongoMessage> {
  if (bytes.length < headBytes) return { needs: headBytes };
  const length = bytes.readInt32LE(0);
  const code = bytes.readInt32LE(12);
  if (code !== opCodes.msg && code !== opCodes.query) throw malformedError('the opcode of the message is not supported');
  if (length < headBytes + 5) throw malformedError('a message states a length below that of its header');
  if (bytes.length < length) return { needs: length };
  const number = bytes.readInt32LE(4);
  const body = bytes.subarray(headBytes, length);
  const isMsg = code === opCodes.msg;
  const silent = isMsg && (body.readUInt32LE(0) & flags.moreToCome) !== 0;
  return { message: { number, form: isMsg ? 'msg' : 'query', body, silent }, taken: length, state: null };
}

/** The command of a message; lists of documents beside it are among its members. */
export function* commandSteps({ form, body }: Pick<MongoMessage, 'form' | 'body'>): Steps<StoredObject> {
  if (form === 'msg') return yield* sectionSteps(body);
  const nameEnd = body.indexOf(0, 4);
  if (nameEnd < 0 || nameEnd + 9 > body.length) throw refusal('a query is cut short');
  return yield* readSteps(body, nameEnd + 9);
}

function* sectionSteps(whole: Buffer): Steps<StoredObject> {
  const bits = whole.readUInt32LE(0);
  // The lower half of the flags must be understood; the checksum is of a connection that TCP checks already.
  if ((bits & 0xffff & ~knownFlags) !== 0) throw refusal('a message has unknown flags');
  const body = bits & flags.checksum ? whole.subarray(0, -4) : whole;
  let command: StoredObject | null = null;
  const lists: [string, Stored[]][] = [];
  let at = 4;
  while (at < body.length) {
    const kind = body[at++];
    if (kind === 0) {
      if (command !== null) throw refusal('a message has one document of kind 0');
      command = yield* readSteps(body, at);
      at = documentEnd(body, at);
    } else if (kind === 1) {
      if (at + 5 > body.length) throw refusal('a section is cut short');
      const end = at + body.readInt32LE(at);
      const nameEnd = body.indexOf(0, at + 4);
      if (end > body.length || nameEnd < 0 || nameEnd >= end) throw refusal('a section is cut short');
      const name = body.toString('utf8', at + 4, nameEnd);
      const documents: Stored[] = [];
      const section = body.subarray(0, end);
      const pace = new Pace();
      for (at = nameEnd + 1; at < end; at = documentEnd(section, at)) {
        if (pace.spend(32)) yield;
        documents.push(yield* readSteps(section, at));
      }
      lists.push([name, documents]);
    } else throw refusal('a section has an unknown kind');
  }
  if (command === null) throw refusal('a message has one document of kind 0');
  const given = command;
  const twice = lists.find(([name], i) => given.has(name) || lists.findIndex(([other]) => other === name) < i);
  if (twice !== undefined) throw refusal(`${twice[0]} is given twice`);
  return lists.length === 0 ? given : new Map([...given, ...lists]);
}

/** The reply to a message, in the form in which that was asked: a document as BSON. `own` numbers it. */
export function encodeReply(
  own: number,
  { number, form }: Pick<MongoMessage, 'number' | 'form'>,
  document: WritableObject,
): Buffer {
  const between = form === 'msg' ? 5 : 20;
  const reply = writeDocument(document, headBytes + between).fill(0, 0, headBytes + between);
  reply.writeInt32LE(reply.length, 0);
  reply.writeInt32LE(own | 0, 4);
  reply.writeInt32LE(number, 8);
  reply.writeInt32LE(form === 'msg' ? opCodes.msg : opCodes.reply, 12);
  // Flags, cursor and place are 0 but for one: awaits are understood; then how many documents there are.
  if (form === 'query') {
    reply.writeInt32LE(8, headBytes);
    reply.writeInt32LE(1, headBytes + 16);
  }
  return reply;
}
