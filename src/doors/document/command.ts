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
const listMost = 100_000;

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

  constructor(name: string, command: StoredObject, connectionCaller: ConnectionCaller, cursors: OpenCursors) {
    this.name = name;
    this.command = command;
    this.connectionCaller = connectionCaller;
    this.cursors = cursors;
    this.terms = termsIn(command.get('comment'));
    this.time = timeOfTerms(this.terms);
  }

  get database(): string {
    const database = this.command.get('$db');
    if (typeof database !== 'string' || !/^[^\s/\\."$*<>:|?\0]{1,64}$/u.test(database))
      throw new DocumentRefusal(73, 'the command has no database name, or an invalid one');
    return database;
  }

  /** The value of the first member, whose name is the command's. */
  get subject(): Stored | undefined {
    const [subject] = this.command.values();
    return subject;
  }

  /** The collection that the command is about. */
  get place(): Namespace {
    return { database: this.database, collection: collectionName(this.subject) };
  }

  get namespace(): string {
    return namespaceOf(this.place);
  }

  object(name: string): StoredObject | undefined {
    const bsonValue = this.command.get(name);
    if (bsonValue === undefined || bsonValue === null) return undefined;
    if (!isObject(bsonValue)) throw mongoRefusals.wrongType(`${this.name}.${name}`, 'an object');
    return bsonValue;
  }

  number(name: string): number | undefined {
    const bsonValue = this.command.get(name);
    if (bsonValue === undefined || bsonValue === null) return undefined;
    const whole = isNumeric(bsonValue) ? toWhole(bsonValue) : null;
    if (whole === null) throw mongoRefusals.wrongType(`${this.name}.${name}`, 'a whole number');
    return Number(whole);
  }

  flag(name: string): boolean | undefined {
    return flagOf(this.command.get(name), `${this.name}.${name}`);
  }

  objects(name: string): readonly StoredObject[] {
    const bsonValue = this.command.get(name);
    if (bsonValue === undefined) throw mongoRefusals.missing(`${this.name}.${name}`);
    if (!isList(bsonValue) || bsonValue.length > listMost || !bsonValue.every(isObject))
      throw mongoRefusals.wrongType(`${this.name}.${name}`, `a list of objects, at most ${listMost}`);
    return bsonValue;
  }

  /** Runs what reads; its answers are looked at once more before the reply leaves. */
  async read<T>(
    run: (reading: DocumentReading) => Promise<T>,
    asked: Partial<CommandRequest> = {},
  ): Promise<{ result: T; answers: readonly Answer[] }> {
    const answers: Answer[] = [];
    const result = await this.connectionCaller.ask({ terms: this.terms, ...asked }, ({ invocation, keep }) => {
      keep({ overtaken: () => answers.some((answer) => answer.overtaken()) });
      return run(this.reading(invocation, (answer) => answers.push(answer)));
    });
    return { result, answers };
  }

  /** Runs what writes, in one invocation. `keys`: it reads by so many keys, and nothing else; null: by filters. */
  write<T>(keys: number | null, action: 'ingest' | 'delete', run: (reading: DocumentReading) => Promise<T>): Promise<T> {
    if (this.terms.as_of !== null || this.terms.as_of_system !== null) throw new DocumentRefusal(2, 'as_of is for reads only');
    if (this.database === typesDatabase) throw mongoRefusals.readOnly(typesDatabase);
    const act = { action, template: `${this.name} ${this.namespace}` };
    const asked = { terms: this.terms, writes: true, act, ...(keys !== null && { keysRead: keys }) };
    return this.connectionCaller.ask(asked, ({ invocation, keep }) => run(this.reading(invocation, keep)));
  }

  reading(invocation: Invocation, keep: (answer: Answer) => void): DocumentReading {
    const { planner } = this.connectionCaller.parts;
    const signal = this.connectionCaller.gone;
    return { planner, invocation, terms: this.terms, signal, yieldTurn: planner.turns(signal), keep };
  }

  /** Writes the result of `make`, again where rows changed meanwhile; `about`: a key, or a collection. */
  async retryConflicts<T>(
    invocation: Invocation,
    about: string,
    make: () => Promise<{ readonly commands: readonly Command[]; readonly result: T }>,
  ): Promise<T> {
    return invocation.retryConflicts(`${entryType} ${about}`, async () => {
      const { commands, result } = await make();
      const sync = this.terms.durability === 'sync';
      await markConflictsStale(async () => {
        for (const command of commands) refuseFirst(await invocation.submit(command, { sync }));
      });
      return result;
    });
  }
}

/** A number counts as true unless it is 0. */
export function flagOf(bsonValue: Stored | undefined, name: string): boolean | undefined {
  if (bsonValue === undefined || bsonValue === null) return undefined;
  if (typeof bsonValue === 'boolean') return bsonValue;
  if (!isNumeric(bsonValue)) throw mongoRefusals.wrongType(name, 'bool');
  return toWhole(bsonValue) !== 0n;
}

export const namespaceOf = ({ database, collection }: Namespace): string => `${database}.${collection}`;

export function collectionName(bsonValue: Stored | undefined): string {
  if (typeof bsonValue !== 'string') throw new DocumentRefusal(73, 'the command names no collection');
  if (bsonValue === '' || bsonValue.length > 200 || /[$\0/]|^\.|\.$/.test(bsonValue))
    throw new DocumentRefusal(73, `Invalid collection name: ${bsonValue.slice(0, 200)}; it has neither $ nor / here`);
  return bsonValue;
}

/** `comment: {annals: {as_of: …}}`: drivers pass a comment on as it is. */
function termsIn(comment: Stored | undefined): Terms {
  if (!isObject(comment)) return noTerms;
  const annals = comment.get('annals');
  if (annals === undefined) return noTerms;
  if (!isObject(annals)) throw mongoRefusals.wrongType('comment.annals', 'an object');
  let terms = noTerms;
  for (const [name, bsonValue] of annals) {
    const text = typeof bsonValue === 'string' ? bsonValue : isNumeric(bsonValue) ? numberIdentity(bsonValue) : null;
    if (text === null) throw mongoRefusals.wrongType(`comment.annals.${name}`, 'a string');
    terms = withTerm(terms, name, text);
  }
  return terms;
}
