/** A command of the document door, and its context. */
import type { Invocation } from '../../governance/gate-contract.ts';
import { isNumeric, numberIdentity, toWhole } from '../../planner/expressions/documents/document-numbers.ts';
import { isList, isObject, type Stored, type StoredObject } from '../../planner/expressions/documents/document-values.ts';
import type { Answer } from '../../planner/planner-contract.ts';
import type { DefaultTime } from '../../planner/syntax/statement.ts';
import type { Command } from '../../projections/command.ts';
import type { CommandRequest, ConnectionCaller } from '../shared/connection-caller.ts';
import type { CommandCost } from '../shared/codec.ts';
import { markConflictsStale } from '../shared/stale-conflicts.ts';
import { noTerms, type Terms, timeOfTerms, withTerm } from '../shared/session-terms.ts';
import type { WritableObject } from './bson.ts';
import type { OpenCursors } from './cursors.ts';
import { entryType, type Namespace, type DocumentReading, refuseFirst, typesDatabase } from './document-rows.ts';
import { DocumentRefusal, mongoRefusals } from './errors.ts';

export interface DocumentCommandRow {
  /** Members that a command takes beside its own name, and those that all commands take. */
  readonly takes: readonly string[];
  /** The cost per document, statement or member. */
  readonly cost: CommandCost;
  readonly run: (context: DocumentCommandContext) => Promise<WritableObject>;
}

/** Goes over documents, or statements, in turns. */
export const ofDocuments: CommandCost = { part: 3_000, byte: 5, inSteps: true };
/** Looks at a few members, of which it takes no more than `namedMost`. */
export const ofFew: CommandCost = { part: 300, byte: 0, inSteps: false };
export const namedMost = 10_000;

/** Documents, statements or stages that one command may list: more than any of them takes. */
const commandListMost = 100_000;

export const doorName = 'document';

/** Members that drivers send with any command, and that change nothing here. */
export const ignored: ReadonlySet<string> = new Set(
  (
    '$db lsid $clusterTime $readPreference readConcern writeConcern maxTimeMS comment apiVersion apiStrict apiDeprecationErrors ' +
    'allowDiskUse noCursorTimeout allowPartialResults bypassDocumentValidation hint $audit $client'
  ).split(' '),
);

export class DocumentCommandContext {
  readonly name: string;
  readonly command: StoredObject;
  readonly connectionCaller: ConnectionCaller;
  readonly cursors: OpenCursors;
  readonly terms: Terms;
  readonly time: DefaultTime;

  constructor(commandName: string, commandDocument: StoredObject, connectionCaller: ConnectionCaller, cursors: OpenCursors) {
    this.name = commandName;
    this.command = commandDocument;
    this.connectionCaller = connectionCaller;
    this.cursors = cursors;
    this.terms = termsInComment(commandDocument.get('comment'));
    this.time = timeOfTerms(this.terms);
  }

  get database(): string {
    const commandDatabase = this.command.get('$db');
    if (typeof commandDatabase !== 'string' || !/^[^\s/\\."$*<>:|?\0]{1,64}$/u.test(commandDatabase))
      throw new DocumentRefusal(73, 'the command has no database name, or an invalid one');
    return commandDatabase;
  }

  /** The value of the first member, whose name is the command's. */
  get subject(): Stored | undefined {
    const [commandSubject] = this.command.values();
    return commandSubject;
  }

  /** The collection that the command is about. */
  get place(): Namespace {
    return { database: this.database, collection: collectionName(this.subject) };
  }

  get namespace(): string {
    return namespaceOf(this.place);
  }

  object(memberName: string): StoredObject | undefined {
    const bsonValue = this.command.get(memberName);
    if (bsonValue === undefined || bsonValue === null) return undefined;
    if (!isObject(bsonValue)) throw mongoRefusals.wrongType(`${this.name}.${memberName}`, 'an object');
    return bsonValue;
  }

  number(memberName: string): number | undefined {
    const bsonValue = this.command.get(memberName);
    if (bsonValue === undefined || bsonValue === null) return undefined;
    const wholeNumber = isNumeric(bsonValue) ? toWhole(bsonValue) : null;
    if (wholeNumber === null) throw mongoRefusals.wrongType(`${this.name}.${memberName}`, 'a whole number');
    return Number(wholeNumber);
  }

  flag(memberName: string): boolean | undefined {
    return flagOf(this.command.get(memberName), `${this.name}.${memberName}`);
  }

  objects(memberName: string): readonly StoredObject[] {
    const bsonValue = this.command.get(memberName);
    if (bsonValue === undefined) throw mongoRefusals.missing(`${this.name}.${memberName}`);
    if (!isList(bsonValue) || bsonValue.length > commandListMost || !bsonValue.every(isObject))
      throw mongoRefusals.wrongType(`${this.name}.${memberName}`, `a list of objects, at most ${commandListMost}`);
    return bsonValue;
  }

  /** Runs what reads; its answers are looked at once more before the reply leaves. */
  async read<T>(
    runRead: (reading: DocumentReading) => Promise<T>,
    askedRequest: Partial<CommandRequest> = {},
  ): Promise<{ result: T; answers: readonly Answer[] }> {
    const keptAnswers: Answer[] = [];
    const readResult = await this.connectionCaller.ask(
      { terms: this.terms, ...askedRequest },
      ({ invocation, keep: keepAnswer }) => {
        keepAnswer({ overtaken: () => keptAnswers.some((answer) => answer.overtaken()) });
        return runRead(this.reading(invocation, (keptAnswer) => keptAnswers.push(keptAnswer)));
      },
    );
    return { result: readResult, answers: keptAnswers };
  }

  /** Runs what writes, in one invocation. `writtenKeyCount`: it reads by so many keys, and nothing else; null: by filters. */
  write<T>(
    writtenKeyCount: number | null,
    writeAction: 'ingest' | 'delete',
    runWrite: (reading: DocumentReading) => Promise<T>,
  ): Promise<T> {
    if (this.terms.as_of !== null || this.terms.as_of_system !== null) throw new DocumentRefusal(2, 'as_of is for reads only');
    if (this.database === typesDatabase) throw mongoRefusals.readOnly(typesDatabase);
    const writeAct = { action: writeAction, template: `${this.name} ${this.namespace}` };
    const writeRequest = {
      terms: this.terms,
      writes: true,
      act: writeAct,
      ...(writtenKeyCount !== null && { keysRead: writtenKeyCount }),
    };
    return this.connectionCaller.ask(writeRequest, ({ invocation, keep: keepAnswer }) =>
      runWrite(this.reading(invocation, keepAnswer)),
    );
  }

  reading(invocation: Invocation, keepAnswer: (answer: Answer) => void): DocumentReading {
    const { planner } = this.connectionCaller.parts;
    const readSignal = this.connectionCaller.gone;
    return { planner, invocation, terms: this.terms, signal: readSignal, yieldTurn: planner.turns(readSignal), keep: keepAnswer };
  }

  /** Writes the result of `makeCommands`, again where rows changed meanwhile; `conflictSubject`: a key, or a collection. */
  async retryConflicts<T>(
    invocation: Invocation,
    conflictSubject: string,
    makeCommands: () => Promise<{ readonly commands: readonly Command[]; readonly result: T }>,
  ): Promise<T> {
    return invocation.retryConflicts(`${entryType} ${conflictSubject}`, async () => {
      const { commands: madeCommands, result: madeResult } = await makeCommands();
      const isSync = this.terms.durability === 'sync';
      await markConflictsStale(async () => {
        for (const madeCommand of madeCommands) refuseFirst(await invocation.submit(madeCommand, { sync: isSync }));
      });
      return madeResult;
    });
  }
}

/** A number counts as true unless it is 0. */
export function flagOf(bsonValue: Stored | undefined, flagName: string): boolean | undefined {
  if (bsonValue === undefined || bsonValue === null) return undefined;
  if (typeof bsonValue === 'boolean') return bsonValue;
  if (!isNumeric(bsonValue)) throw mongoRefusals.wrongType(flagName, 'bool');
  return toWhole(bsonValue) !== 0n;
}

export const namespaceOf = ({ database: namespaceDatabase, collection: namespaceCollection }: Namespace): string =>
  `${namespaceDatabase}.${namespaceCollection}`;

export function collectionName(bsonValue: Stored | undefined): string {
  if (typeof bsonValue !== 'string') throw new DocumentRefusal(73, 'the command names no collection');
  if (bsonValue === '' || bsonValue.length > 200 || /[$\0/]|^\.|\.$/.test(bsonValue))
    throw new DocumentRefusal(73, `Invalid collection name: ${bsonValue.slice(0, 200)}; it has neither $ nor / here`);
  return bsonValue;
}

/** `comment: {annals: {as_of: …}}`: drivers pass a comment on as it is. */
function termsInComment(commandComment: Stored | undefined): Terms {
  if (!isObject(commandComment)) return noTerms;
  const annalsComment = commandComment.get('annals');
  if (annalsComment === undefined) return noTerms;
  if (!isObject(annalsComment)) throw mongoRefusals.wrongType('comment.annals', 'an object');
  let commentTerms = noTerms;
  for (const [termName, bsonValue] of annalsComment) {
    const termText = typeof bsonValue === 'string' ? bsonValue : isNumeric(bsonValue) ? numberIdentity(bsonValue) : null;
    if (termText === null) throw mongoRefusals.wrongType(`comment.annals.${termName}`, 'a string');
    commentTerms = withTerm(commentTerms, termName, termText);
  }
  return commentTerms;
}
