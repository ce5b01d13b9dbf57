/** DROP of any object: little can be dropped, and absent objects are reported as Postgres does. */
import { ServiceError } from '../../errors.ts';
import type { GovernedSnapshot } from '../../governance/gate-contract.ts';
import { nearestView } from '../../planner/languages/view-source.ts';
import { ProtocolRefusal } from './errors.ts';
import type { Steps } from '../../planner/expressions/resumable-steps.ts';
import { StatementTokens } from './statement-tokens.ts';

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

interface DroppableKind {
  /** The word for it in notices. */
  readonly called: string;
  /** The state that says that one is absent. */
  readonly sqlstate: string;
}

const droppableKinds = {
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
} as const satisfies Readonly<Record<string, DroppableKind>>;

export type Droppable = keyof typeof droppableKinds;

/** The tables and views that the caller sees, by name. */
export interface ExistingObjects {
  readonly isTable: (name: string) => boolean;
  readonly isView: (name: string) => boolean;
  /** Absent: it is no view. */
  readonly isMaterialized: (name: string) => boolean | undefined;
}

export function* dropOf(dropText: string): Steps<Drop> {
  const statementTokens = yield* StatementTokens.read(dropText);
  statementTokens.expect('DROP');
  const isMaterialized = statementTokens.skip('MATERIALIZED');
  const droppable = (Object.keys(droppableKinds) as Droppable[]).find((droppableKind) => statementTokens.skip(droppableKind));
  if (droppable === undefined || (isMaterialized && droppable !== 'VIEW')) throw droppableRefusal(statementTokens);
  if (droppable === 'INDEX') statementTokens.skip('CONCURRENTLY');
  const ifExists = statementTokens.skip('IF', 'EXISTS');
  const droppedNames = [droppedNameOf(statementTokens, droppable)];
  while (statementTokens.skip(',')) {
    yield* statementTokens.pause();
    droppedNames.push(droppedNameOf(statementTokens, droppable));
  }
  if (!statementTokens.skip('CASCADE')) statementTokens.skip('RESTRICT');
  statementTokens.expectEnd();
  const dropTag = isMaterialized ? 'DROP MATERIALIZED VIEW' : `DROP ${droppable === 'USER' ? 'ROLE' : droppable}`;
  return { what: droppable, isMaterialized, ifExists, names: droppedNames, tag: dropTag };
}

const unimplementedDrops: ReadonlySet<string> = new Set(
  'ACCESS AGGREGATE CAST COLLATION CONVERSION DATABASE EVENT FOREIGN GROUP LANGUAGE OPERATOR OWNED POLICY PUBLICATION ROUTINE RULE SERVER STATISTICS SUBSCRIPTION TABLESPACE TEXT TRANSFORM'.split(
    ' ',
  ),
);

function droppableRefusal(statementTokens: StatementTokens): ServiceError {
  const dropWord = statementTokens.next.text.toUpperCase();
  if (statementTokens.next.kind === 'word' && unimplementedDrops.has(dropWord))
    return new ServiceError('REL_NOT_IMPLEMENTED', `DROP ${dropWord} is not implemented`);
  return statementTokens.refusal('expected what is dropped: TABLE, VIEW, INDEX …');
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

function droppedNameOf(statementTokens: StatementTokens, droppable: Droppable): DroppedName {
  const firstName = statementTokens.name('a name');
  const secondName = statementTokens.skip('.') ? statementTokens.name('a name') : null;
  if ((droppable === 'FUNCTION' || droppable === 'PROCEDURE') && statementTokens.next.text === '(')
    statementTokens.textInParentheses();
  if (droppable === 'TRIGGER') {
    statementTokens.expect('ON');
    statementTokens.tableName();
  }
  return secondName === null ? { schema: null, name: firstName } : { schema: firstName, name: secondName };
}

/** The notice about an absent object; null of a view that is to be dropped. Throws where another object exists, or where absence is an error. */
export function droppedNotice(
  { what: droppable, isMaterialized, ifExists }: Drop,
  { schema: droppedSchema, name: droppedName }: DroppedName,
  existingObjects: ExistingObjects,
): string | null {
  const { called: droppableCalled, sqlstate }: DroppableKind = droppableKinds[droppable];
  const isInPublicSchema = droppedSchema === null || droppedSchema === 'public';
  if (droppable === 'VIEW' && isInPublicSchema && existingObjects.isMaterialized(droppedName) === isMaterialized) return null;
  if (isInPublicSchema) refuseUndroppable(droppable, droppedName, existingObjects);
  const missingObject = isInPublicSchema
    ? `${droppableCalled} ${JSON.stringify(droppedName)}`
    : `schema ${JSON.stringify(droppedSchema)}`;
  if (ifExists) return `${missingObject} does not exist, skipping`;
  throw new ProtocolRefusal(isInPublicSchema ? sqlstate : '3F000', 'REL_NOT_FOUND', `${missingObject} does not exist`);
}

function refuseUndroppable(
  droppable: Droppable,
  droppedName: string,
  { isTable, isView, isMaterialized }: ExistingObjects,
): void {
  const quotedName = JSON.stringify(droppedName);
  const keptError = (keptReason: string): ServiceError => new ServiceError('REL_NOT_IMPLEMENTED', keptReason);
  switch (droppable) {
    case 'TABLE':
      if (isTable(droppedName))
        throw keptError(`${quotedName} cannot be dropped: DELETE ends its rows, and earlier versions stay readable AS OF`);
      break;
    case 'INDEX':
      if (droppedName.endsWith('_pkey') && isTable(droppedName.slice(0, -'_pkey'.length)))
        throw new ProtocolRefusal('2BP01', 'REL_INVALID', `the primary key needs the index ${quotedName}`);
      return;
    case 'SCHEMA':
      if (droppedName === 'public') throw keptError('there is one schema, public, and it stays');
      return;
    case 'EXTENSION':
      if (droppedName === 'vector') throw keptError('vectors are always there');
      return;
    case 'TYPE':
      if (isTable(droppedName)) throw new ProtocolRefusal('2BP01', 'REL_INVALID', `the table ${quotedName} needs its type`);
      return;
    case 'VIEW':
    case 'SEQUENCE':
      break;
    default:
      return;
  }
  if (!isTable(droppedName) && !isView(droppedName)) return;
  const dropHint = isView(droppedName)
    ? `: DROP ${isMaterialized(droppedName) === true ? 'MATERIALIZED VIEW' : 'VIEW'} ends it`
    : '';
  throw new ProtocolRefusal('42809', 'REL_INVALID', `${quotedName} is no ${droppableKinds[droppable].called}${dropHint}`);
}
