/** Commands about databases and collections, and `hello`, `buildInfo` and others that drivers send first. */
import { batchRowsMax } from '../../projections/command.ts';
import { documentBytesMax, type Members, type Writable, type WritableObject } from './bson.ts';
import {
  collectionName,
  type DocumentCommandContext,
  type DocumentCommandRow,
  doorName,
  flagOf,
  namedMost,
  ofDocuments,
  ofFew,
} from './command.ts';
import { compileFilter } from '../../planner/expressions/documents/document-filter.ts';
import { documentOf, Special } from '../../planner/expressions/documents/document-values.ts';
import { entryType, findDocuments, namesIn, typesDatabase } from './document-rows.ts';
import { DocumentRefusal } from './errors.ts';

const wireVersion = { least: 0, most: 17 } as const;
export const serverVersion = '6.0.0';

export interface HelloContext {
  readonly connection: number;
  readonly now: bigint;
  /** Whether the client used the older name of `hello`. */
  readonly legacy: boolean;
  readonly messageBytesMax: number;
}

export function helloReply({ connection, now, legacy, messageBytesMax }: HelloContext): Members {
  return {
    helloOk: true,
    [legacy ? 'ismaster' : 'isWritablePrimary']: true,
    maxBsonObjectSize: documentBytesMax,
    maxMessageSizeBytes: messageBytesMax,
    maxWriteBatchSize: batchRowsMax,
    localTime: new Special('$date', now / 1_000_000n),
    logicalSessionTimeoutMinutes: 30,
    connectionId: connection,
    minWireVersion: wireVersion.least,
    maxWireVersion: wireVersion.most,
    readOnly: false,
  };
}

const cursorOf = (namespace: string, firstBatch: readonly Writable[]): WritableObject => ({
  cursor: { id: 0n, ns: namespace, firstBatch },
  ok: 1,
});

async function listCollections(context: DocumentCommandContext): Promise<WritableObject> {
  const { database } = context;
  const nameOnly = context.flag('nameOnly') === true;
  const fits = compileFilter(context.object('filter') ?? new Map());
  const { result } = await context.read((reading) => namesIn(reading, database, context.time));
  const listed = result
    .map((name) =>
      documentOf({ name, type: 'collection', options: new Map(), info: documentOf({ readOnly: database === typesDatabase }) }),
    )
    .filter(fits)
    .map((each) => (nameOnly ? new Map([...each].slice(0, 2)) : each));
  return cursorOf(`${database}.$cmd.listCollections`, listed);
}

async function listDatabases(context: DocumentCommandContext): Promise<WritableObject> {
  const nameOnly = context.flag('nameOnly') === true;
  const fits = compileFilter(context.object('filter') ?? new Map());
  const { result } = await context.read((reading) => namesIn(reading, null, context.time));
  const listed = [...result, typesDatabase].map((name) => documentOf({ name, sizeOnDisk: 0, empty: false })).filter(fits);
  return { databases: nameOnly ? listed.map((each) => new Map([...each].slice(0, 1))) : listed, totalSize: 0, ok: 1 };
}

const idIndex = { v: 2, key: { _id: 1 }, name: '_id_' } as const;

async function listIndexes(context: DocumentCommandContext): Promise<WritableObject> {
  const { place } = context;
  const { result } = await context.read((reading) =>
    findDocuments(reading, { ...place, filter: new Map(), time: context.time, most: 1 }),
  );
  if (result.length === 0) throw new DocumentRefusal(26, `ns does not exist: ${context.namespace}`, 'REL_NOT_FOUND');
  return cursorOf(context.namespace, [idIndex]);
}

/** A collection is there once a document is in it, and keys are all that is indexed. */
const nothingDone =
  (note: string) =>
  async (context: DocumentCommandContext): Promise<Members> => {
    if (context.database === typesDatabase) throw new DocumentRefusal(13, `${typesDatabase} is read-only`, 'REL_ACL');
    collectionName(context.subject);
    return { ok: 1, note };
  };

/** Deletes all documents of the collection; earlier versions stay readable as of then. */
async function drop(context: DocumentCommandContext): Promise<WritableObject> {
  const { place } = context;
  const count = await context.write(null, 'delete', async (reading) => {
    let dropped = 0;
    for (;;) {
      const collectionDocuments = await findDocuments(reading, {
        ...place,
        filter: new Map(),
        time: 'current',
        most: batchRowsMax,
      });
      const keys = collectionDocuments.filter(({ own }) => own).map(({ key }) => key);
      if (keys.length === 0) return dropped;
      await reading.invocation.submit({ kind: 'delete-rows', type: entryType, keys });
      dropped += keys.length;
      await context.connectionCaller.parts.yieldTurn();
    }
  });
  if (count === 0) throw new DocumentRefusal(26, 'ns not found', 'REL_NOT_FOUND');
  return { nIndexesWas: 1, ns: context.namespace, ok: 1 };
}

/** Commands that ask the gate. */
export const collectionCommands: Readonly<Record<string, DocumentCommandRow>> = {
  listCollections: { cost: ofDocuments, takes: ['filter', 'nameOnly', 'authorizedCollections', 'cursor'], run: listCollections },
  listDatabases: { cost: ofDocuments, takes: ['filter', 'nameOnly', 'authorizedDatabases'], run: listDatabases },
  listIndexes: { cost: ofFew, takes: ['cursor'], run: listIndexes },
  create: {
    cost: ofFew,
    takes: ['capped', 'size', 'max', 'validator', 'validationLevel', 'validationAction', 'collation', 'autoIndexId', 'idIndex'],
    run: async (context) => {
      for (const name of ['capped', 'validator', 'collation', 'viewOn', 'timeseries'])
        if (context.command.has(name) && context.command.get(name) !== false)
          throw new DocumentRefusal(115, `create with ${name} is not supported`, 'REL_NOT_IMPLEMENTED');
      return nothingDone('nothing was created: a collection exists once a document is in it')(context);
    },
  },
  createIndexes: {
    cost: ofFew,
    takes: ['indexes', 'commitQuorum'],
    run: async (context) => {
      const indexes = context.objects('indexes');
      if (indexes.length > namedMost) throw new DocumentRefusal(2, `at most ${namedMost} indexes are named at once`);
      if (indexes.some((index) => flagOf(index.get('unique'), 'createIndexes.indexes.unique') === true))
        throw new DocumentRefusal(115, 'unique indexes are not supported: only _id is unique', 'REL_NOT_IMPLEMENTED');
      const createdNothing = await nothingDone('no index was created: documents are found by _id, or by a scan')(context);
      return { numIndexesBefore: 1, numIndexesAfter: 1, createdCollectionAutomatically: false, ...createdNothing };
    },
  },
  dropIndexes: { cost: ofFew, takes: ['index'], run: nothingDone('there was no index to drop') },
  drop: { cost: ofDocuments, takes: [], run: drop },
};

/** Replies that depend on nothing but the connection. */
export const fixedAnswers: Readonly<Record<string, (connection: number) => WritableObject>> = {
  ping: () => ({ ok: 1 }),
  buildInfo: () => ({
    version: serverVersion,
    versionArray: [6, 0, 0, 0],
    gitVersion: 'annals',
    bits: 64,
    maxBsonObjectSize: documentBytesMax,
    modules: [],
    ok: 1,
  }),
  endSessions: () => ({ ok: 1 }),
  refreshSessions: () => ({ ok: 1 }),
  logout: () => ({ ok: 1 }),
  getLog: () => ({ totalLinesWritten: 0, log: [], ok: 1 }),
  getCmdLineOpts: () => ({ argv: [doorName], parsed: {}, ok: 1 }),
  getParameter: () => ({ featureCompatibilityVersion: { version: '6.0' }, ok: 1 }),
  hostInfo: () => ({ system: {}, os: {}, extra: {}, ok: 1 }),
  whatsmyuri: (connection) => ({ you: `127.0.0.1:${connection}`, ok: 1 }),
};
