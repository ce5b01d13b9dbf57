/** DROP of any object: little can be dropped, and absent objects are reported as Postgres does. */
import { ServiceError } from '../../errors.ts';
import type { GovernedSnapshot } from '../../governance/gate-contract.ts';
import { nearestView } from '../../planner/languages/view-source.ts';
import { ProtocolRefusal } from './errors.ts';
import type { Steps } from '../../planner/expressions/resumable-steps.ts';
import { Lexemes } from './lexer.ts';

export interface Drop {
  readonly what: Droppable;
  /** DROP MATERIALIZED VIEW. */
  readonly isMaterialized: boolean;
  readonly ifExists: boolean;
  readonly names: readonly DroppedName[];
  readonly tag: string;
}

export interface DroppedName {
  readonly schema: string | null;
  readonly name: string;
}

interface Kind {
  /** The word for it in notices. */
  readonly called: string;
  /** The state that says that one is absent. */
  readonly sqlstate: string;
}

const kinds = {
  TABLE: { called: 'table', sqlstate: '42P01' },
  VIEW: { called: 'view', sqlstate: '42P01' },
  SEQUENCE: { called: 'sequence', sqlstate: '42P01' },
  INDEX: { called: 'index', sqlstate: '42704' },
  SCHEMA: { called: 'schema', sqlstate: '3F000' },
  EXTENSION: { called: 'extension', sqlstate: '42704' },
  TYPE: { called: 'type', sqlstate: '42704' },
  DOMAIN: { called: 'type', sqlstate: '42704' },
  ROLE: { called: 'role', sqlstate: '42704' },
  USER: { called: 'role', sqlstate: '42704' },
  FUNCTION: { called: 'function', sqlstate: '42883' },
  PROCEDURE: { called: 'procedure', sqlstate: '42883' },
  TRIGGER: { called: 'trigger', sqlstate: '42704' },
} as const satisfies Readonly<Record<string, Kind>>;

export type Droppable = keyof typeof kinds;

/** The tables and views that the caller sees, by name. */
export interface ExistingObjects {
  readonly isTable: (name: string) => boolean;
  readonly isView: (name: string) => boolean;
  /** Absent: it is no view. */
  readonly isMaterialized: (name: string) => boolean | undefined;
}

export function* dropOf(said: string): Steps<Drop> {
  const lexemes = yield* Lexemes.read(said);
  lexemes.expect('DROP');
  const isMaterialized = lexemes.skip('MATERIALIZED');
  const what = (Object.keys(kinds) as Droppable[]).find((kind) => lexemes.skip(kind));
  if (what === undefined || (isMaterialized && what !== 'VIEW')) throw notDropped(lexemes);
  if (what === 'INDEX') lexemes.skip('CONCURRENTLY');
  const ifExists = lexemes.skip('IF', 'EXISTS');
  const names = [nameOf(lexemes, what)];
  while (lexemes.skip(',')) {
    yield* lexemes.pause();
    names.push(nameOf(lexemes, what));
  }
  if (!lexemes.skip('CASCADE')) lexemes.skip('RESTRICT');
  lexemes.expectEnd();
  const tag = isMaterialized ? 'DROP MATERIALIZED VIEW' : `DROP ${what === 'USER' ? 'ROLE' : what}`;
  return { what, isMaterialized, ifExists, names, tag };
}

const others: ReadonlySet<string> = new Set(
  'ACCESS AGGREGATE CAST COLLATION CONVERSION DATABASE EVENT FOREIGN GROUP LANGUAGE OPERATOR OWNED POLICY PUBLICATION ROUTINE RULE SERVER STATISTICS SUBSCRIPTION TABLESPACE TEXT TRANSFORM'.split(
    ' ',
  ),
);

function notDropped(lexemes: Lexemes): ServiceError {
  const word = lexemes.next.text.toUpperCase();
  if (lexemes.next.kind === 'word' && others.has(word))
    return new ServiceError('REL_NOT_IMPLEMENTED', `DROP ${word} is not implemented`);
  return lexemes.refusal('expected what is dropped: TABLE, VIEW, INDEX …');
}

export function existingObjectsIn({ catalog, views }: Pick<GovernedSnapshot, 'catalog' | 'views'>): ExistingObjects {
  return {
    isTable: (name) => catalog.type(name) !== undefined,
    isView: (wanted) => views.some(({ name }) => name === wanted),
    isMaterialized: (name) => {
      const view = nearestView(views, name);
      return view && view.refreshSecs > 0;
    },
  };
}

function nameOf(lexemes: Lexemes, what: Droppable): DroppedName {
  const first = lexemes.name('a name');
  const second = lexemes.skip('.') ? lexemes.name('a name') : null;
  if ((what === 'FUNCTION' || what === 'PROCEDURE') && lexemes.next.text === '(') lexemes.textInParentheses();
  if (what === 'TRIGGER') {
    lexemes.expect('ON');
    lexemes.tableName();
  }
  return second === null ? { schema: null, name: first } : { schema: first, name: second };
}

/** The notice about an absent object; null of a view that is to be dropped. Throws where another object exists, or where absence is an error. */
export function droppedNotice(
  { what, isMaterialized, ifExists }: Drop,
  { schema, name }: DroppedName,
  existingObjects: ExistingObjects,
): string | null {
  const { called, sqlstate }: Kind = kinds[what];
  const inSchema = schema === null || schema === 'public';
  if (what === 'VIEW' && inSchema && existingObjects.isMaterialized(name) === isMaterialized) return null;
  if (inSchema) refuseThere(what, name, existingObjects);
  const missing = inSchema ? `${called} ${JSON.stringify(name)}` : `schema ${JSON.stringify(schema)}`;
  if (ifExists) return `${missing} does not exist, skipping`;
  throw new ProtocolRefusal(inSchema ? sqlstate : '3F000', 'REL_NOT_FOUND', `${missing} does not exist`);
}

function refuseThere(what: Droppable, name: string, { isTable, isView, isMaterialized }: ExistingObjects): void {
  const quoted = JSON.stringify(name);
  const keptError = (why: string): ServiceError => new ServiceError('REL_NOT_IMPLEMENTED', why);
  switch (what) {
    case 'TABLE':
      if (isTable(name))
        throw keptError(`${quoted} cannot be dropped: DELETE ends its rows, and earlier versions stay readable AS OF`);
      break;
    case 'INDEX':
      if (name.endsWith('_pkey') && isTable(name.slice(0, -'_pkey'.length)))
        throw new ProtocolRefusal('2BP01', 'REL_INVALID', `the primary key needs the index ${quoted}`);
      return;
    case 'SCHEMA':
      if (name === 'public') throw keptError('there is one schema, public, and it stays');
      return;
    case 'EXTENSION':
      if (name === 'vector') throw keptError('vectors are always there');
      return;
    case 'TYPE':
      if (isTable(name)) throw new ProtocolRefusal('2BP01', 'REL_INVALID', `the table ${quoted} needs its type`);
      return;
    case 'VIEW':
    case 'SEQUENCE':
      break;
    default:
      return;
  }
  if (!isTable(name) && !isView(name)) return;
  const hint = isView(name) ? `: DROP ${isMaterialized(name) === true ? 'MATERIALIZED VIEW' : 'VIEW'} ends it` : '';
  throw new ProtocolRefusal('42809', 'REL_INVALID', `${quoted} is no ${kinds[what].called}${hint}`);
}
