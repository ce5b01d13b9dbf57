/** CREATE TABLE as the registration of a type: parts that could not be kept are refused, not ignored. */
import { ServiceError } from '../../errors.ts';
import type { PropertyDefinition } from '../../log/entries/entry.ts';
import { type ColumnType, systemColumns } from '../../log/values/value.ts';
import type { OutputColumn } from '../../planner/planner-contract.ts';
import type { RegisterType } from '../../projections/command.ts';
import type { Steps } from '../../planner/expressions/resumable-steps.ts';
import { Lexemes } from './lexer.ts';

export interface CreateTable {
  readonly ifNotExists: boolean;
  readonly command: RegisterType;
  /** The query behind AS, whose columns the table gets and whose rows it is filled with; null without one. */
  readonly query: string | null;
  /** Notices about parts that are kept otherwise than written. */
  readonly notices: readonly string[];
}

const columnTypes: Readonly<Record<string, ColumnType>> = {
  ...types('integer', 'INT INT2 INT4 INT8 INTEGER BIGINT SMALLINT'),
  ...types('number', 'FLOAT FLOAT4 FLOAT8 REAL DOUBLE NUMERIC DECIMAL'),
  ...types('boolean', 'BOOL BOOLEAN'),
  ...types('string', 'TEXT VARCHAR CHAR CHARACTER BPCHAR CITEXT NAME UUID'),
  ...types('json', 'JSON JSONB'),
  ...types('timestamp', 'TIMESTAMP TIMESTAMPTZ DATE'),
  ...types('vector', 'VECTOR'),
};

function types(type: ColumnType, names: string): Record<string, ColumnType> {
  return Object.fromEntries(names.split(' ').map((name) => [name, type]));
}

const refusedTypes: Readonly<Record<string, string>> = {
  SERIAL: 'serial numbers are not made here: send the key, or leave it out and get a UUID',
  BIGSERIAL: 'serial numbers are not made here: send the key, or leave it out and get a UUID',
  SMALLSERIAL: 'serial numbers are not made here: send the key, or leave it out and get a UUID',
  BYTEA: 'there are no columns of bytes: send text, or objects through the object door',
};

export function* createTableOf(text: string): Steps<CreateTable> {
  const lexemes = yield* Lexemes.read(text);
  lexemes.expect('CREATE');
  if (lexemes.skip('TEMP') || lexemes.skip('TEMPORARY') || lexemes.skip('GLOBAL') || lexemes.skip('LOCAL'))
    throw refusal('temporary tables are not implemented: every type is permanent');
  lexemes.skip('UNLOGGED');
  lexemes.expect('TABLE');
  const ifNotExists = lexemes.skip('IF', 'NOT', 'EXISTS');
  const table = new Table(lexemes, lexemes.tableName());
  if (lexemes.skip('AS')) {
    // Spaces in place of what stands before it, so that its errors have their places in the statement.
    const { from } = lexemes.next;
    const query = text.slice(0, from).replaceAll(/[^\n]/g, ' ') + text.slice(from);
    return { ifNotExists, command: table.command(), query, notices: [] };
  }
  lexemes.list(() => table.item());
  if (lexemes.skip('WITH')) lexemes.textInParentheses();
  if (lexemes.skip('INHERITS') || lexemes.skip('PARTITION')) throw refusal('tables neither inherit nor have partitions');
  lexemes.expectEnd();
  return { ifNotExists, command: table.command(), query: null, notices: [...table.notices] };
}

/** The table of a query with these columns, but for those that the store gives to each row. */
export function filledTable(command: RegisterType, columns: readonly OutputColumn[]): RegisterType {
  const properties: Record<string, PropertyDefinition> = {};
  for (const { name: own, label: name = own, type } of columns) {
    if (name !== 'id' && Object.hasOwn(systemColumns, name)) continue;
    if (Object.hasOwn(properties, name))
      throw new ServiceError('REL_INVALID', `column ${JSON.stringify(name)} is named twice`, { reason: 'named-twice' });
    properties[name] = { type, dims: 0, required: false, masked: false, indexed: false, subject: false };
  }
  return { ...command, properties };
}

class Table {
  readonly notices = new Set<string>();
  readonly #tokens: Lexemes;
  readonly #name: string;
  readonly #properties: Record<string, PropertyDefinition> = {};
  #primaryKey: string | null = null;

  constructor(lexemes: Lexemes, name: string) {
    this.#tokens = lexemes;
    this.#name = name;
  }

  command(): RegisterType {
    const key = this.#primaryKey;
    if (key !== null && !Object.hasOwn(this.#properties, key))
      throw new ServiceError('REL_UNKNOWN_COLUMN', `the primary key ${JSON.stringify(key)} is no column of the table`);
    return {
      kind: 'register-type',
      name: this.#name,
      properties: this.#properties,
      primaryKey: key,
      graphTriggers: [],
    };
  }

  item(): void {
    const lexemes = this.#tokens;
    if (lexemes.skip('CONSTRAINT')) {
      lexemes.name('the name of the constraint');
      return this.#constraint();
    }
    if (
      ['PRIMARY', 'UNIQUE', 'CHECK', 'FOREIGN', 'EXCLUDE', 'LIKE'].includes(lexemes.next.text.toUpperCase()) &&
      lexemes.next.kind === 'word'
    )
      return this.#constraint();
    this.#column();
  }

  #constraint(): void {
    const lexemes = this.#tokens;
    if (lexemes.skip('PRIMARY', 'KEY')) {
      const names = lexemes.list(() => lexemes.name('a column'));
      if (names.length > 1) throw refusal('a primary key is one column: join several into one');
      return this.#key(names[0]!);
    }
    if (lexemes.skip('FOREIGN', 'KEY')) {
      const names = lexemes.list(() => lexemes.name('a column'));
      lexemes.expect('REFERENCES');
      for (const name of names) this.#refer(name);
      return;
    }
    throw refusal(unkept[lexemes.next.text.toUpperCase()] ?? `${lexemes.next.text} is not implemented`);
  }

  #column(): void {
    const lexemes = this.#tokens;
    const name = lexemes.name('the name of a column');
    if (Object.hasOwn(this.#properties, name))
      throw new ServiceError('REL_INVALID', `column ${JSON.stringify(name)} is named twice`, { reason: 'named-twice' });
    const type = this.#type();
    this.#properties[name] = { ...type, required: false, masked: false, indexed: false, subject: false };
    for (;;) {
      if (lexemes.skip('NOT', 'NULL')) this.#set(name, { required: true });
      else if (lexemes.skip('NULL')) continue;
      else if (lexemes.skip('CONSTRAINT')) lexemes.name('the name of the constraint');
      else if (lexemes.skip('PRIMARY', 'KEY')) this.#key(name);
      else if (lexemes.skip('COLLATE')) this.#skipName();
      else if (lexemes.skip('REFERENCES')) this.#refer(name);
      else if (lexemes.next.kind === 'word')
        throw refusal(unkept[lexemes.next.text.toUpperCase()] ?? `${lexemes.next.text} is not implemented`);
      else return;
    }
  }

  #type(): { readonly type: ColumnType; readonly dims: number } {
    const lexemes = this.#tokens;
    if (lexemes.skip('PG_CATALOG') || lexemes.skip('PUBLIC')) lexemes.expect('.');
    const name = lexemes.name('a type').toUpperCase();
    const type = columnTypes[name];
    if (type === undefined) {
      const detail = refusedTypes[name];
      if (detail !== undefined) throw refusal(detail);
      throw new ServiceError('REL_INVALID', `there is no type ${JSON.stringify(name.toLowerCase())}`, { reason: 'no-such-type' });
    }
    if (name === 'DOUBLE') lexemes.skip('PRECISION');
    if (name === 'CHARACTER') lexemes.skip('VARYING');
    const size = lexemes.next.text === '(' ? lexemes.textInParentheses() : null;
    if (
      type === 'timestamp' &&
      (lexemes.skip('WITHOUT', 'TIME', 'ZONE') || name === 'TIMESTAMP') &&
      !lexemes.skip('WITH', 'TIME', 'ZONE')
    )
      this.notices.add('instants are UTC and come back with their offset');
    if (lexemes.next.text === '[' || lexemes.skip('ARRAY')) throw refusal('columns of arrays are not implemented: use json');
    if (size !== null && type === 'string') this.notices.add('lengths of texts are not checked');
    if (/^(INT|INT4|INTEGER|INT2|SMALLINT)$/.test(name))
      this.notices.add('integer columns hold 64 bits, and are shown as bigint');
    if (name === 'NUMERIC' || name === 'DECIMAL') this.notices.add('numeric columns hold doubles');
    if (type !== 'vector') return { type, dims: 0 };
    const dims = Number(size ?? 0);
    if (!Number.isInteger(dims) || dims < 0) throw lexemes.refusal('expected a number of dimensions');
    return { type, dims };
  }

  #key(name: string): void {
    if (this.#primaryKey !== null)
      throw new ServiceError('REL_INVALID', 'a table has one primary key', { reason: 'several-keys' });
    this.#primaryKey = name;
  }

  #refer(name: string): void {
    const lexemes = this.#tokens;
    const references = lexemes.tableName();
    if (lexemes.next.text === '(') lexemes.textInParentheses();
    if (lexemes.skip('MATCH')) lexemes.take();
    while (lexemes.skip('ON')) {
      lexemes.take();
      if (!lexemes.skip('NO', 'ACTION') && !lexemes.skip('RESTRICT'))
        throw refusal('ON DELETE and ON UPDATE are not implemented: references are not enforced');
    }
    this.#set(name, { references });
    this.notices.add('REFERENCES is recorded and shown, but not enforced');
  }

  #set(name: string, more: Partial<PropertyDefinition>): void {
    const known = this.#properties[name];
    if (known === undefined) throw new ServiceError('REL_UNKNOWN_COLUMN', `${JSON.stringify(name)} is no column of the table`);
    this.#properties[name] = { ...known, ...more };
  }

  #skipName(): void {
    this.#tokens.name('a name');
    if (this.#tokens.skip('.')) this.#tokens.name('a name');
  }
}

const unkept: Readonly<Record<string, string>> = {
  DEFAULT: 'DEFAULT is not implemented: send the value with each row',
  UNIQUE: 'UNIQUE is not implemented: only the primary key is unique',
  CHECK: 'CHECK is not implemented: policies say what may be written',
  GENERATED: 'generated columns are not implemented',
  EXCLUDE: 'EXCLUDE is not implemented',
  LIKE: 'LIKE is not implemented: name the columns',
};

const refusal = (why: string): ServiceError => new ServiceError('REL_NOT_IMPLEMENTED', why);
