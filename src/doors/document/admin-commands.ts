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

const mongoWireVersion = { least: 0, most: 17 } as const;
export const serverVersion = '6.0.0';

export interface HelloContext {
  readonly connection: number;
  readonly now: bigint;
  /** Whether the client used the older name of `hello`. */
  readonly legacy: boolean;
  readonly messageBytesMax: number;
}

export function helloReply({
  connection: connectionId,
  now: nowNs,
  legacy: isLegacyHello,
  messageBytesMax,
}: HelloContext): Members {
  return {
    helloOk: true,
    [isLegacyHello ? 'ismaster' : 'isWritablePrimary']: true,
    maxBsonObjectSize: documentBytesMax,
    maxMessageSizeBytes: messageBytesMax,
    maxWriteBatchSize: batchRowsMax,
    localTime: new Special('$date', nowNs / 1_000_000n),
    logicalSessionTimeoutMinutes: 30,
    connectionId: connectionId,
    minWireVersion: mongoWireVersion.least,
    maxWireVersion: mongoWireVersion.most,
    readOnly: false,
  };
}

const cursorReplyOf = (cursorNamespace: string, firstBatch: readonly Writable[]): WritableObject => ({
  cursor: { id: 0n, ns: cursorNamespace, firstBatch },
  ok: 1,
});

async function listCollections(mongoContext: DocumentCommandContext): Promise<WritableObject> {
  const { database: listedDatabase } = mongoContext;
  const isNameOnly = mongoContext.flag('nameOnly') === true;
  const fitsFilter = compileFilter(mongoContext.object('filter') ?? new Map());
  const { result: collectionNames } = await mongoContext.read((reading) => namesIn(reading, listedDatabase, mongoContext.time));
  const listedCollections = collectionNames
    .map((listedName) =>
      documentOf({
        name: listedName,
        type: 'collection',
        options: new Map(),
        info: documentOf({ readOnly: listedDatabase === typesDatabase }),
      }),
    )
    .filter(fitsFilter)
    .map((listedCollection) => (isNameOnly ? new Map([...listedCollection].slice(0, 2)) : listedCollection));
  return cursorReplyOf(`${listedDatabase}.$cmd.listCollections`, listedCollections);
}

async function listDatabases(mongoContext: DocumentCommandContext): Promise<WritableObject> {
  const isNameOnly = mongoContext.flag('nameOnly') === true;
  const fitsFilter = compileFilter(mongoContext.object('filter') ?? new Map());
  const { result: databaseNames } = await mongoContext.read((reading) => namesIn(reading, null, mongoContext.time));
  const listedDatabases = [...databaseNames, typesDatabase]
    .map((databaseName) => documentOf({ name: databaseName, sizeOnDisk: 0, empty: false }))
    .filter(fitsFilter);
  return {
    databases: isNameOnly ? listedDatabases.map((listedDatabase) => new Map([...listedDatabase].slice(0, 1))) : listedDatabases,
    totalSize: 0,
    ok: 1,
  };
}

const idIndexDocument = { v: 2, key: { _id: 1 }, name: '_id_' } as const;

async function listIndexes(mongoContext: DocumentCommandContext): Promise<WritableObject> {
  const { place: indexedNamespace } = mongoContext;
  const { result: indexedDocuments } = await mongoContext.read((reading) =>
    findDocuments(reading, { ...indexedNamespace, filter: new Map(), time: mongoContext.time, most: 1 }),
  );
  if (indexedDocuments.length === 0)
    throw new DocumentRefusal(26, `ns does not exist: ${mongoContext.namespace}`, 'REL_NOT_FOUND');
  return cursorReplyOf(mongoContext.namespace, [idIndexDocument]);
}

/** A collection is there once a document is in it, and keys are all that is indexed. */
const replyNothingDone =
  (replyNote: string) =>
  async (mongoContext: DocumentCommandContext): Promise<Members> => {
    if (mongoContext.database === typesDatabase) throw new DocumentRefusal(13, `${typesDatabase} is read-only`, 'REL_ACL');
    collectionName(mongoContext.subject);
    return { ok: 1, note: replyNote };
  };

/** Deletes all documents of the collection; earlier versions stay readable as of then. */
async function dropCollection(mongoContext: DocumentCommandContext): Promise<WritableObject> {
  const { place: droppedNamespace } = mongoContext;
  const droppedCount = await mongoContext.write(null, 'delete', async (reading) => {
    let droppedDocuments = 0;
    for (;;) {
      const collectionDocuments = await findDocuments(reading, {
        ...droppedNamespace,
        filter: new Map(),
        time: 'current',
        most: batchRowsMax,
      });
      const ownDocumentKeys = collectionDocuments
        .filter(({ own: isOwnDocument }) => isOwnDocument)
        .map(({ key: documentKey }) => documentKey);
      if (ownDocumentKeys.length === 0) return droppedDocuments;
      await reading.invocation.submit({ kind: 'delete-rows', type: entryType, keys: ownDocumentKeys });
      droppedDocuments += ownDocumentKeys.length;
      await mongoContext.connectionCaller.parts.yieldTurn();
    }
  });
  if (droppedCount === 0) throw new DocumentRefusal(26, 'ns not found', 'REL_NOT_FOUND');
  return { nIndexesWas: 1, ns: mongoContext.namespace, ok: 1 };
}

/** Commands that ask the gate. */
export const collectionCommands: Readonly<Record<string, DocumentCommandRow>> = {
  listCollections: { cost: ofDocuments, takes: ['filter', 'nameOnly', 'authorizedCollections', 'cursor'], run: listCollections },
  listDatabases: { cost: ofDocuments, takes: ['filter', 'nameOnly', 'authorizedDatabases'], run: listDatabases },
  listIndexes: { cost: ofFew, takes: ['cursor'], run: listIndexes },
  create: {
    cost: ofFew,
    takes: ['capped', 'size', 'max', 'validator', 'validationLevel', 'validationAction', 'collation', 'autoIndexId', 'idIndex'],
    run: async (mongoContext) => {
      for (const unsupportedOption of ['capped', 'validator', 'collation', 'viewOn', 'timeseries'])
        if (mongoContext.command.has(unsupportedOption) && mongoContext.command.get(unsupportedOption) !== false)
          throw new DocumentRefusal(115, `create with ${unsupportedOption} is not supported`, 'REL_NOT_IMPLEMENTED');
      return replyNothingDone('nothing was created: a collection exists once a document is in it')(mongoContext);
    },
  },
  createIndexes: {
    cost: ofFew,
    takes: ['indexes', 'commitQuorum'],
    run: async (mongoContext) => {
      const namedIndexes = mongoContext.objects('indexes');
      if (namedIndexes.length > namedMost) throw new DocumentRefusal(2, `at most ${namedMost} indexes are named at once`);
      if (namedIndexes.some((namedIndex) => flagOf(namedIndex.get('unique'), 'createIndexes.indexes.unique') === true))
        throw new DocumentRefusal(115, 'unique indexes are not supported: only _id is unique', 'REL_NOT_IMPLEMENTED');
      const createdNothing = await replyNothingDone('no index was created: documents are found by _id, or by a scan')(
        mongoContext,
      );
      return { numIndexesBefore: 1, numIndexesAfter: 1, createdCollectionAutomatically: false, ...createdNothing };
    },
  },
  dropIndexes: { cost: ofFew, takes: ['index'], run: replyNothingDone('there was no index to drop') },
  drop: { cost: ofDocuments, takes: [], run: dropCollection },
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
