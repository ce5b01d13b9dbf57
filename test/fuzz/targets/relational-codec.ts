/**
 * What a client of the relational door may send, as any bytes. What must hold: however they are cut, the same messages come out, or
 * the same refusal at the same place; and what a message asks for is told apart without anything but a ServiceError.
 */
import { assert, ServiceError } from '../../../src/errors.ts';
import { ReceivedBytes, pause } from '../../../src/doors/shared/received-bytes.ts';
import { type Frontend, relationalCodec } from '../../../src/doors/relational/codec.ts';
import { allAtOnce } from '../../../src/planner/expressions/resumable-steps.ts';
import { commandOf, splitStatements } from '../../../src/doors/relational/parse-command.ts';
import { parameterValue } from '../../../src/doors/relational/parameters.ts';
import { literalForms } from './sql-parser.ts';
import { framed, startup } from '../../doors/relational/frames.ts';

export const name = 'relational-codec';

export function run(bytes: Uint8Array): void {
  const whole = messagesOf([Buffer.from(bytes)]);
  const cuts = bytes.length < 4_096 ? 1 : 97;
  const pieces: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += cuts) pieces.push(Buffer.from(bytes.subarray(at, at + cuts)));
  const cut = messagesOf(pieces);
  assert(JSON.stringify(cut) === JSON.stringify(whole), 'the same messages, however the bytes are cut');
  for (const message of whole.messages) look(message);
}

interface Read {
  readonly messages: Frontend[];
  readonly refusal: string | null;
}

function messagesOf(pieces: readonly Buffer[]): Read {
  const received = new ReceivedBytes(relationalCodec);
  const messages: Frontend[] = [];
  try {
    for (const piece of pieces) {
      received.push(piece);
      for (let message = received.next(); message !== null; message = received.next())
        if (message !== pause)
          messages.push(message.kind === 'startup' ? { ...message, parameters: new Map(message.parameters) } : message);
    }
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return { messages, refusal: `${error.code} ${error.message}` };
  }
  return { messages, refusal: null };
}

function look(message: Frontend): void {
  if (message.kind === 'query' || message.kind === 'parse') {
    attempt(() => {
      for (const statement of allAtOnce(splitStatements(message.text))) attempt(() => allAtOnce(commandOf(statement)));
    });
  }
  if (message.kind === 'bind')
    for (const value of message.values)
      for (const oid of typesTried) for (const format of [0, 1]) attempt(() => parameterValue(value, format, oid, 'string', 1));
}

function attempt(step: () => unknown): void {
  try {
    step();
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
  }
}

const typesTried = [0, 16, 20, 21, 23, 25, 114, 700, 701, 1082, 1114, 1184, 1700, 2950, 3802, 16_385];

export function seeds(): Uint8Array[] {
  const start = Buffer.concat([startup({ user: 'a@b/c', database: 'annals', options: '-c annals.as_of=all' }), proof, proof]);
  const texts = [
    "SELECT 1; SELECT 'a;b' -- ; c\n; /* ; */ BEGIN",
    "SET annals.as_of TO '2024-05-01'; SHOW ALL; RESET ALL; SET LOCAL TIME ZONE DEFAULT",
    `INSERT INTO "T;" VALUES ($1) RETURNING x`,
    `${'/*'.repeat(2_000)};${"'".repeat(2_001)}`,
    `SET a = ${' '.repeat(3_000)}x`,
    ...literalForms,
    'START TRANSACTION ISOLATION LEVEL SERIALIZABLE',
    'TRUNCATE TABLE ONLY a, public."b;" RESTART IDENTITY CASCADE; SAVEPOINT "s p"; ROLLBACK WORK TO SAVEPOINT x; RELEASE x',
    'SELECT pg_catalog.pg_try_advisory_xact_lock_shared(-1::int4, $2::bigint) AS "x;y"; SELECT pg_advisory_unlock_all()',
    'CREATE INDEX CONCURRENTLY IF NOT EXISTS "i;" ON ONLY t USING hnsw (a vector_cosine_ops DESC, (lower(b)), f(c) NULLS LAST) WHERE a > 1; CREATE INDEX ON t (',
    'DROP TABLE IF EXISTS a, public."b;" CASCADE; DROP INDEX CONCURRENTLY i RESTRICT; DROP VIEW v; DROP TYPE IF EXISTS x.y; DROP',
    `COPY t (a, "b;") FROM STDIN WITH (FORMAT csv, DELIMITER ';', NULL '', HEADER); COPY (SELECT 1; ) TO STDOUT BINARY`,
    'SELECT a FROM t WHERE b = 1 FOR NO KEY UPDATE OF t NOWAIT; SELECT 1 FOR SHARE; DISCARD ALL; CLOSE ALL; UNLISTEN *',
  ];
  return [
    start,
    Buffer.from([0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f]),
    Buffer.from([0, 0, 0, 16, 0x04, 0xd2, 0x16, 0x2e, 0, 0, 0, 1, 0, 0, 0, 2]),
    ...texts.map((text) => Buffer.concat([start, framed('Q', Buffer.from(`${text}\0`)), framed('X')])),
    Buffer.concat([
      start,
      framed('P', Buffer.from('s\0SELECT $1\0\0\x01\0\0\0\x14', 'latin1')),
      framed('B', Buffer.from('p\0s\0\0\x01\0\x01\0\x02\0\0\0\x08\0\0\0\0\0\0\0\x2a\xff\xff\xff\xff\0\x01\0\0', 'latin1')),
      framed('D', Buffer.from('Pp\0')),
      framed('E', Buffer.from('p\0\0\0\0\x05')),
      framed('C', Buffer.from('Ss\0')),
      framed('H'),
      framed('S'),
    ]),
  ];
}

const proof = framed('p', Buffer.from('SCRAM-SHA-256\0\0\0\0\x05n,,n='));
