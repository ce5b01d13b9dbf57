/** Commands that write: insert, update, delete, findAndModify. What was written meanwhile is read again, never overwritten. */
import { ServiceError } from '../../errors.ts';
import { isObject, kindOf, type Stored, type StoredObject } from '../../planner/documents/values.ts';
import { batchRowsMax, type Command } from '../../projections/command.ts';
import { longBytes } from '../frame/codec.ts';
import type { WritableObject } from './bson.ts';
import { type CommandContext, type CommandRow, doorName, namespaceOf } from './command.ts';
import { entryType, find, type Found, isById, keyOf, presentKeys, putCommand, type Reading } from './documents.ts';
import { DocumentRefusal, numberOfError, refusals } from './errors.ts';
import { projectionOf, sortOf } from './pipeline.ts';
import { checkNames, seedOf, updateOf } from './update.ts';

/** An _id for who has none: seconds, then chance. */
function newId({ asker }: CommandContext): Stored {
  const bytes = Buffer.from(asker.parts.random.fill(new Uint8Array(12)));
  bytes.writeUInt32BE(Number(asker.parts.clock.now() / 1_000_000_000n) >>> 0, 0);
  return { $oid: bytes.toString('hex') };
}

type WriteError = {
  readonly index: number;
  readonly code: number;
  readonly errmsg: string;
};

const duplicate = (context: CommandContext, index: number, id: Stored): WriteError => ({
  index,
  code: 11_000,
  errmsg: `E11000 duplicate key error collection: ${namespaceOf(context.place)} index: _id_ dup key: { _id: ${JSON.stringify(id)} }`,
});

async function insert(context: CommandContext): Promise<WritableObject> {
  const { place } = context;
  const ordered = context.command['ordered'] !== false;
  const documents = context.objects('documents');
  if (documents.length === 0 || documents.length > batchRowsMax)
    throw new DocumentRefusal(2, `a batch has 1 to ${batchRowsMax} documents`);
  const rows = documents.map((document) => {
    checkNames(document);
    const id = document['_id'] ?? newId(context);
    const whole = Object.hasOwn(document, '_id') ? document : { _id: id, ...document };
    return { key: keyOf(place, id), id, text: JSON.stringify(whole) };
  });
  if (rows.reduce((sum, { text }) => sum + text.length, 0) > longBytes) await context.asker.parts.yieldTurn();
  return context.write(rows.length, ({ invocation }) =>
    context.decided(invocation, async () => {
      const { planner } = context.asker.parts;
      const taken = presentKeys(planner, invocation, [...new Set(rows.map(({ key }) => key))]);
      const errors: WriteError[] = [];
      const written: typeof rows = [];
      for (const [index, row] of rows.entries()) {
        if (taken.has(row.key)) {
          errors.push(duplicate(context, index, row.id));
          if (ordered) break;
        } else {
          taken.add(row.key);
          written.push(row);
        }
      }
      const commands: Command[] =
        written.length === 0 ? [] : [putCommand(place, written, { when: 'absent', door: doorName, changes: false })];
      return {
        commands,
        result: { n: written.length, ...(errors.length > 0 && { writeErrors: errors }), ok: 1 } as WritableObject,
      };
    }),
  );
}

interface Change {
  readonly filter: StoredObject;
  readonly multi: boolean;
  readonly upsert: boolean;
  readonly update: (document: StoredObject, isInsert: boolean) => StoredObject;
  readonly sort?: StoredObject | undefined;
}

interface Changed {
  readonly matched: readonly Found[];
  readonly made: readonly StoredObject[];
  readonly modified: number;
  readonly upserted: StoredObject | null;
}

/** Those of the caller's own path alone: what lies below it is read, and not written. */
async function ownDocuments(
  context: CommandContext,
  reading: Reading,
  { filter, multi, sort }: Pick<Change, 'filter' | 'multi' | 'sort'>,
) {
  const found = (await find(reading, { ...context.place, filter, time: 'current' })).filter(({ own }) => own);
  if (multi || found.length < 2) return found;
  if (sort === undefined) return found.slice(0, 1);
  const byDocument = new Map(found.map((each) => [each.document, each]));
  return [byDocument.get(sortOf(sort)(found.map(({ document }) => document))[0]!)!];
}

function change(context: CommandContext, reading: Reading, wanted: Change): Promise<Changed> {
  const { place } = context;
  const { invocation } = reading;
  return context.decided<Changed>(invocation, async () => {
    const since = invocation.snapshot().instant;
    const matched = await ownDocuments(context, reading, wanted);
    if (matched.length === 0 && wanted.upsert) {
      const seed = seedOf(wanted.filter);
      const document = wanted.update(seed, true);
      const id = document['_id'] ?? newId(context);
      const upserted = { _id: id, ...document };
      checkNames(upserted);
      const put = putCommand(place, [{ key: keyOf(place, id), text: JSON.stringify(upserted) }], {
        when: 'absent',
        door: doorName,
        changes: false,
      });
      return { commands: [put], result: { matched, made: [], modified: 0, upserted } };
    }
    const made = matched.map(({ document }) => wanted.update(document, false));
    const written = matched.flatMap(({ key, document }, i) => {
      const text = JSON.stringify(made[i]!);
      return JSON.stringify(document) === text ? [] : [{ key, text }];
    });
    checkCount(written.length);
    const terms = { when: { unchangedSince: since }, door: doorName, changes: true };
    const commands = written.length === 0 ? [] : [putCommand(place, written, terms)];
    return { commands, result: { matched, made, modified: written.length, upserted: null } };
  });
}

function checkCount(count: number): void {
  if (count > batchRowsMax)
    throw new DocumentRefusal(
      2,
      `one statement writes at most ${batchRowsMax} documents: narrow its filter`,
      'REL_UNPROCESSABLE',
    );
}

function end(
  context: CommandContext,
  reading: Reading,
  wanted: Pick<Change, 'filter' | 'multi' | 'sort'>,
): Promise<readonly Found[]> {
  const { invocation } = reading;
  return context.decided(invocation, async () => {
    const since = invocation.snapshot().instant;
    const matched = await ownDocuments(context, reading, wanted);
    checkCount(matched.length);
    const command: Command = {
      kind: 'delete-rows',
      type: entryType,
      keys: matched.map(({ key }) => key),
      when: { unchangedSince: since },
      ...(!isById(wanted.filter) && Object.keys(wanted.filter).length > 0 && { computedFrom: ['document'] }),
    };
    return { commands: matched.length === 0 ? [] : [command], result: matched };
  });
}

/** How many keys these read by; null where one of them has to look for its documents. */
function keysOf(statements: readonly StoredObject[]): number | null {
  return statements.every(({ q }) => isObject(q) && isById(q)) ? statements.length : null;
}

const updateMembers: ReadonlySet<string> = new Set([
  'q',
  'u',
  'multi',
  'upsert',
  'hint',
  'collation',
  'arrayFilters',
  'c',
  'sort',
]);
const deleteMembers: ReadonlySet<string> = new Set(['q', 'limit', 'hint', 'collation']);

function checkMembers(statement: StoredObject, known: ReadonlySet<string>, command: string): void {
  for (const [name, value] of Object.entries(statement)) {
    if (!known.has(name)) throw refusals.unknownField(command, name);
    if ((name === 'collation' || name === 'arrayFilters' || name === 'c') && value !== null)
      throw refusals.notSupported(`${command} with ${name}`);
  }
}

function filterIn(statement: StoredObject, command: string): StoredObject {
  const { q } = statement;
  if (!isObject(q)) throw refusals.wrongType(`${command}.q`, 'an object');
  return q;
}

/** Runs statement after statement; an error is of its statement, and ends an ordered command. */
async function each(
  context: CommandContext,
  statements: readonly StoredObject[],
  run: (statement: StoredObject, index: number) => Promise<void>,
): Promise<WriteError[]> {
  const errors: WriteError[] = [];
  for (const [index, statement] of statements.entries()) {
    try {
      await run(statement, index);
    } catch (error) {
      // What refuses the caller refuses the command; what is wrong with one statement is told of it.
      if (!(error instanceof ServiceError) || !ofStatement.has(error.kind)) throw error;
      errors.push({ index, code: numberOfError(error), errmsg: error.message });
      if (context.command['ordered'] !== false) break;
    }
  }
  return errors;
}

const ofStatement: ReadonlySet<ServiceError['kind']> = new Set(['invalid', 'conflict', 'unprocessable', 'unimplemented']);

async function update(context: CommandContext): Promise<WritableObject> {
  const statements = context.objects('updates');
  return context.write(keysOf(statements), async (reading) => {
    let n = 0;
    let nModified = 0;
    const upserted: { readonly index: number; readonly _id: Stored }[] = [];
    const errors = await each(context, statements, async (statement, index) => {
      checkMembers(statement, updateMembers, 'update.updates');
      const multi = statement['multi'] === true;
      const replaces = isObject(statement['u']) && !Object.keys(statement['u']).some((name) => name.startsWith('$'));
      if (multi && replaces) throw new DocumentRefusal(9, 'multi update is not supported for replacement-style update');
      const done = await change(context, reading, {
        filter: filterIn(statement, 'update.updates'),
        multi,
        upsert: statement['upsert'] === true,
        update: updateOf(statement['u']),
        sort: isObject(statement['sort']) ? statement['sort'] : undefined,
      });
      n += done.matched.length + (done.upserted === null ? 0 : 1);
      nModified += done.modified;
      if (done.upserted !== null) upserted.push({ index, _id: done.upserted['_id']! });
    });
    return {
      n,
      nModified,
      ...(upserted.length > 0 && { upserted }),
      ...(errors.length > 0 && { writeErrors: errors }),
      ok: 1,
    } as WritableObject;
  });
}

async function remove(context: CommandContext): Promise<WritableObject> {
  const statements = context.objects('deletes');
  return context.write(keysOf(statements), async (reading) => {
    let n = 0;
    const errors = await each(context, statements, async (statement) => {
      checkMembers(statement, deleteMembers, 'delete.deletes');
      const { limit } = statement;
      if (limit !== 0 && limit !== 1) throw new DocumentRefusal(9, 'The limit field in delete objects must be 0 or 1');
      n += (await end(context, reading, { filter: filterIn(statement, 'delete.deletes'), multi: limit === 0 })).length;
    });
    return { n, ...(errors.length > 0 && { writeErrors: errors }), ok: 1 } as WritableObject;
  });
}

async function findAndModify(context: CommandContext): Promise<WritableObject> {
  const { command } = context;
  for (const name of ['collation', 'arrayFilters', 'let'])
    if (command[name] !== undefined) throw refusals.notSupported(`findAndModify with ${name}`);
  const filter = context.object('query') ?? {};
  const sort = context.object('sort');
  const project = projectionOf(context.object('fields'));
  const isRemoval = command['remove'] === true;
  if (isRemoval === (command['update'] !== undefined))
    throw new DocumentRefusal(9, 'Either an update or remove=true must be specified, and not both');
  return context.write(isById(filter) ? 1 : null, async (reading) => {
    if (isRemoval) {
      const [ended] = await end(context, reading, { filter, multi: false, sort });
      return { lastErrorObject: { n: ended ? 1 : 0 }, value: ended ? project(ended.document) : null, ok: 1 };
    }
    const wanted = { filter, multi: false, upsert: command['upsert'] === true, update: updateOf(command['update']), sort };
    const { matched, made, upserted } = await change(context, reading, wanted);
    const isNew = command['new'] === true;
    const before = matched[0]?.document ?? null;
    const after = upserted ?? made[0] ?? null;
    const shown = isNew ? after : before;
    return {
      lastErrorObject: {
        n: before === null && upserted === null ? 0 : 1,
        updatedExisting: before !== null,
        ...(upserted !== null && { upserted: upserted['_id']! }),
      },
      value: shown === null || kindOf(shown) === 'null' ? null : project(shown),
      ok: 1,
    };
  });
}

const modifyMembers = 'query sort remove update new upsert fields collation arrayFilters let';

export const writes: Readonly<Record<string, CommandRow>> = {
  insert: { takes: ['documents', 'ordered'], run: insert },
  update: { takes: ['updates', 'ordered', 'let'], run: update },
  delete: { takes: ['deletes', 'ordered', 'let'], run: remove },
  findAndModify: { takes: modifyMembers.split(' '), run: findAndModify },
  findandmodify: { takes: modifyMembers.split(' '), run: findAndModify },
};
