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
export const mongoCodec: Codec<null, MongoMessage> = {
  start: null,
  cost: { part: 500, byte: 0 },
  partsInTurn: 1,
  decode: decodeWireMessage,
};

const wireHeadBytes = 16;
const opCodes = { reply: 1, query: 2004, msg: 2013, compressed: 2012 } as const;
const messageFlags = { checksum: 1, moreToCome: 2 } as const;
const knownMessageFlags = 0x1_0003;

const malformedMessage = (malformation: string): ServiceError => new ServiceError('REL_INVALID', malformation);
const bsonRefusal = (refusedBson: string): DocumentRefusal => new DocumentRefusal(22, refusedBson);

function decodeWireMessage(_state: null, wireBytes: Buffer): Decoded<null, MongoMessage> {
  if (wireBytes.length < wireHeadBytes) return { needs: wireHeadBytes };
  const wireLength = wireBytes.readInt32LE(0);
  const wireOpCode = wireBytes.readInt32LE(12);
  if (wireOpCode !== opCodes.msg && wireOpCode !== opCodes.query)
    throw malformedMessage('the opcode of the message is not supported');
  if (wireLength < wireHeadBytes + 5) throw malformedMessage('a message states a length below that of its header');
  if (wireBytes.length < wireLength) return { needs: wireLength };
  const requestId = wireBytes.readInt32LE(4);
  const messageBody = wireBytes.subarray(wireHeadBytes, wireLength);
  const isOpMsg = wireOpCode === opCodes.msg;
  const isSilent = isOpMsg && (messageBody.readUInt32LE(0) & messageFlags.moreToCome) !== 0;
  return {
    message: { number: requestId, form: isOpMsg ? 'msg' : 'query', body: messageBody, silent: isSilent },
    taken: wireLength,
    state: null,
  };
}

/** The command of a message; lists of documents beside it are among its members. */
export function* commandSteps({
  form: messageForm,
  body: messageBody,
}: Pick<MongoMessage, 'form' | 'body'>): Steps<StoredObject> {
  if (messageForm === 'msg') return yield* messageSectionSteps(messageBody);
  const collectionNameEnd = messageBody.indexOf(0, 4);
  if (collectionNameEnd < 0 || collectionNameEnd + 9 > messageBody.length) throw bsonRefusal('a query is cut short');
  return yield* readSteps(messageBody, collectionNameEnd + 9);
}

function* messageSectionSteps(sectionsWithChecksum: Buffer): Steps<StoredObject> {
  const flagBits = sectionsWithChecksum.readUInt32LE(0);
  // The lower half of the flags must be understood; the checksum is of a connection that TCP checks already.
  if ((flagBits & 0xffff & ~knownMessageFlags) !== 0) throw bsonRefusal('a message has unknown flags');
  const sectionBytes = flagBits & messageFlags.checksum ? sectionsWithChecksum.subarray(0, -4) : sectionsWithChecksum;
  let commandDocument: StoredObject | null = null;
  const documentSequences: [string, Stored[]][] = [];
  let sectionOffset = 4;
  while (sectionOffset < sectionBytes.length) {
    const sectionKind = sectionBytes[sectionOffset++];
    if (sectionKind === 0) {
      if (commandDocument !== null) throw bsonRefusal('a message has one document of kind 0');
      commandDocument = yield* readSteps(sectionBytes, sectionOffset);
      sectionOffset = documentEnd(sectionBytes, sectionOffset);
    } else if (sectionKind === 1) {
      if (sectionOffset + 5 > sectionBytes.length) throw bsonRefusal('a section is cut short');
      const sequenceEnd = sectionOffset + sectionBytes.readInt32LE(sectionOffset);
      const sequenceNameEnd = sectionBytes.indexOf(0, sectionOffset + 4);
      if (sequenceEnd > sectionBytes.length || sequenceNameEnd < 0 || sequenceNameEnd >= sequenceEnd)
        throw bsonRefusal('a section is cut short');
      const sequenceName = sectionBytes.toString('utf8', sectionOffset + 4, sequenceNameEnd);
      const sequenceDocuments: Stored[] = [];
      const sequenceBytes = sectionBytes.subarray(0, sequenceEnd);
      const sectionPace = new Pace();
      for (
        sectionOffset = sequenceNameEnd + 1;
        sectionOffset < sequenceEnd;
        sectionOffset = documentEnd(sequenceBytes, sectionOffset)
      ) {
        if (sectionPace.spend(32)) yield;
        sequenceDocuments.push(yield* readSteps(sequenceBytes, sectionOffset));
      }
      documentSequences.push([sequenceName, sequenceDocuments]);
    } else throw bsonRefusal('a section has an unknown kind');
  }
  if (commandDocument === null) throw bsonRefusal('a message has one document of kind 0');
  const statedCommand = commandDocument;
  const repeatedSequence = documentSequences.find(
    ([sequenceName], i) =>
      statedCommand.has(sequenceName) || documentSequences.findIndex(([otherSequence]) => otherSequence === sequenceName) < i,
  );
  if (repeatedSequence !== undefined) throw bsonRefusal(`${repeatedSequence[0]} is given twice`);
  return documentSequences.length === 0 ? statedCommand : new Map([...statedCommand, ...documentSequences]);
}

/** The reply to a message, in the form in which that was asked: a document as BSON. `replyId` numbers it. */
export function encodeReply(
  replyId: number,
  { number: requestId, form: requestForm }: Pick<MongoMessage, 'number' | 'form'>,
  replyDocument: WritableObject,
): Buffer {
  const replyHeadBytes = requestForm === 'msg' ? 5 : 20;
  const wireReply = writeDocument(replyDocument, wireHeadBytes + replyHeadBytes).fill(0, 0, wireHeadBytes + replyHeadBytes);
  wireReply.writeInt32LE(wireReply.length, 0);
  wireReply.writeInt32LE(replyId | 0, 4);
  wireReply.writeInt32LE(requestId, 8);
  wireReply.writeInt32LE(requestForm === 'msg' ? opCodes.msg : opCodes.reply, 12);
  // Flags, cursor and place are 0 but for one: awaits are understood; then how many documents there are.
  if (requestForm === 'query') {
    wireReply.writeInt32LE(8, wireHeadBytes);
    wireReply.writeInt32LE(1, wireHeadBytes + 16);
  }
  return wireReply;
}
