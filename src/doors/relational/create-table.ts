/** CREATE TABLE as the registration of a type: parts that could not be kept are refused, not ignored. */
import { ServiceError } from '../../errors.ts';
import type { PropertyDefinition } from '../../log/entries/entry.ts';
import { type ColumnType, systemColumns } from '../../log/values/value.ts';
import type { OutputColumn } from '../../planner/planner-contract.ts';
import type { RegisterType } from '../../projections/command.ts';
import type { Steps } from '../../planner/expressions/resumable-steps.ts';
import { StatementTokens } from './statement-tokens.ts';

export interface CreateTable {
  readonly ifNotExists: boolean;
  readonly command: RegisterType;
  /** The query behind AS, whose columns the table gets and whose rows it is filled with; null without one. */
  readonly query: string | null;
  /** Notices about parts that are kept otherwise than written. */
  readonly notices: readonly string[];
}

const sqlColumnTypes: Readonly<Record<string, ColumnType>> = {
  ...sqlTypesOf('integer', 'INT INT2 INT4 INT8 INTEGER BIGINT SMALLINT'),
  ...sqlTypesOf('number', 'FLOAT FLOAT4 FLOAT8 REAL DOUBLE NUMERIC DECIMAL'),
  ...sqlTypesOf('boolean', 'BOOL BOOLEAN'),
  ...sqlTypesOf('string', 'TEXT VARCHAR CHAR CHARACTER BPCHAR CITEXT NAME UUID'),
  ...sqlTypesOf('json', 'JSON JSONB'),
  ...sqlTypesOf('timestamp', 'TIMESTAMP TIMESTAMPTZ DATE'),
  ...sqlTypesOf('vector', 'VECTOR'),
};

function sqlTypesOf(columnType: ColumnType, sqlTypeNames: string): Record<string, ColumnType> {
  return Object.fromEntries(sqlTypeNames.split(' ').map((sqlTypeName) => [sqlTypeName, columnType]));
}

const refusedSqlTypes: Readonly<Record<string, string>> = {
  SERIAL: 'serial numbers are not made here: send the key, or leave it out and get a UUID',
  BIGSERIAL: 'serial numbers are not made here: send the key, or leave it out and get a UUID',
  SMALLSERIAL: 'serial numbers are not made here: send the key, or leave it out and get a UUID',
  BYTEA: 'there are no columns of bytes: send text, or objects through the object door',
};

export function* createTableOf(createText: string): Steps<CreateTable> {
  const statementTokens = yield* StatementTokens.read(createText);
  statementTokens.expect('CREATE');
  if (
    statementTokens.skip('TEMP') ||
    statementTokens.skip('TEMPORARY') ||
    statementTokens.skip('GLOBAL') ||
    statementTokens.skip('LOCAL')
  )
    throw tableRefusal('temporary tables are not implemented: every type is permanent');
  statementTokens.skip('UNLOGGED');
  statementTokens.expect('TABLE');
  const ifNotExists = statementTokens.skip('IF', 'NOT', 'EXISTS');
  const tableDefinition = new TableDefinition(statementTokens, statementTokens.tableName());
  if (statementTokens.skip('AS')) {
    // Spaces in place of what stands before it, so that its errors have their places in the statement.
    const { from: queryStart } = statementTokens.next;
    const query = createText.slice(0, queryStart).replaceAll(/[^\n]/g, ' ') + createText.slice(queryStart);
    return { ifNotExists, command: tableDefinition.command(), query, notices: [] };
  }
  statementTokens.list(() => tableDefinition.item());
  if (statementTokens.skip('WITH')) statementTokens.textInParentheses();
  if (statementTokens.skip('INHERITS') || statementTokens.skip('PARTITION'))
    throw tableRefusal('tables neither inherit nor have partitions');
  statementTokens.expectEnd();
  return { ifNotExists, command: tableDefinition.command(), query: null, notices: [...tableDefinition.notices] };
}

/** The table of a query with these columns, but for those that the store gives to each row. */
export function filledTable(registerType: RegisterType, queryColumns: readonly OutputColumn[]): RegisterType {
  const filledProperties: Record<string, PropertyDefinition> = {};
  for (const { name: columnName, label: columnLabel = columnName, type: columnType } of queryColumns) {
    if (columnLabel !== 'id' && Object.hasOwn(systemColumns, columnLabel)) continue;
    if (Object.hasOwn(filledProperties, columnLabel))
      throw new ServiceError('REL_INVALID', `column ${JSON.stringify(columnLabel)} is named twice`, { reason: 'named-twice' });
    filledProperties[columnLabel] = { type: columnType, dims: 0, required: false, masked: false, indexed: false, subject: false };
  }
  return { ...registerType, properties: filledProperties };
}

class TableDefinition {
  readonly notices = new Set<string>();
  readonly #tableTokens: StatementTokens;
  readonly #tableName: string;
  readonly #tableProperties: Record<string, PropertyDefinition> = {};
  #tablePrimaryKey: string | null = null;

  constructor(statementTokens: StatementTokens, tableName: string) {
    this.#tableTokens = statementTokens;
    this.#tableName = tableName;
  }

  command(): RegisterType {
    const primaryKey = this.#tablePrimaryKey;
    if (primaryKey !== null && !Object.hasOwn(this.#tableProperties, primaryKey))
      throw new ServiceError('REL_UNKNOWN_COLUMN', `the primary key ${JSON.stringify(primaryKey)} is no column of the table`);
    return {
      kind: 'register-type',
      name: this.#tableName,
      properties: this.#tableProperties,
      primaryKey: primaryKey,
      graphTriggers: [],
    };
  }

  item(): void {
    const statementTokens = this.#tableTokens;
    if (statementTokens.skip('CONSTRAINT')) {
      statementTokens.name('the name of the constraint');
      return this.#readConstraint();
    }
    if (
      ['PRIMARY', 'UNIQUE', 'CHECK', 'FOREIGN', 'EXCLUDE', 'LIKE'].includes(statementTokens.next.text.toUpperCase()) &&
      statementTokens.next.kind === 'word'
    )
      return this.#readConstraint();
    this.#readColumn();
  }

  #readConstraint(): void {
    const statementTokens = this.#tableTokens;
    if (statementTokens.skip('PRIMARY', 'KEY')) {
      const constrainedColumns = statementTokens.list(() => statementTokens.name('a column'));
      if (constrainedColumns.length > 1) throw tableRefusal('a primary key is one column: join several into one');
      return this.#setPrimaryKey(constrainedColumns[0]!);
    }
    if (statementTokens.skip('FOREIGN', 'KEY')) {
      const constrainedColumns = statementTokens.list(() => statementTokens.name('a column'));
      statementTokens.expect('REFERENCES');
      for (const foreignKeyColumn of constrainedColumns) this.#readReferences(foreignKeyColumn);
      return;
    }
    throw tableRefusal(
      refusedConstraints[statementTokens.next.text.toUpperCase()] ?? `${statementTokens.next.text} is not implemented`,
    );
  }

  #readColumn(): void {
    const statementTokens = this.#tableTokens;
    const columnName = statementTokens.name('the name of a column');
    if (Object.hasOwn(this.#tableProperties, columnName))
      throw new ServiceError('REL_INVALID', `column ${JSON.stringify(columnName)} is named twice`, { reason: 'named-twice' });
    const columnType = this.#readColumnType();
    this.#tableProperties[columnName] = { ...columnType, required: false, masked: false, indexed: false, subject: false };
    for (;;) {
      if (statementTokens.skip('NOT', 'NULL')) this.#setProperty(columnName, { required: true });
      else if (statementTokens.skip('NULL')) continue;
      else if (statementTokens.skip('CONSTRAINT')) statementTokens.name('the name of the constraint');
      else if (statementTokens.skip('PRIMARY', 'KEY')) this.#setPrimaryKey(columnName);
      else if (statementTokens.skip('COLLATE')) this.#skipCollation();
      else if (statementTokens.skip('REFERENCES')) this.#readReferences(columnName);
      else if (statementTokens.next.kind === 'word')
        throw tableRefusal(
          refusedConstraints[statementTokens.next.text.toUpperCase()] ?? `${statementTokens.next.text} is not implemented`,
        );
      else return;
    }
  }

  #readColumnType(): { readonly type: ColumnType; readonly dims: number } {
    const statementTokens = this.#tableTokens;
    if (statementTokens.skip('PG_CATALOG') || statementTokens.skip('PUBLIC')) statementTokens.expect('.');
    const sqlTypeName = statementTokens.name('a type').toUpperCase();
    const type = sqlColumnTypes[sqlTypeName];
    if (type === undefined) {
      const refusedTypeDetail = refusedSqlTypes[sqlTypeName];
      if (refusedTypeDetail !== undefined) throw tableRefusal(refusedTypeDetail);
      throw new ServiceError('REL_INVALID', `there is no type ${JSON.stringify(sqlTypeName.toLowerCase())}`, {
        reason: 'no-such-type',
      });
    }
    if (sqlTypeName === 'DOUBLE') statementTokens.skip('PRECISION');
    if (sqlTypeName === 'CHARACTER') statementTokens.skip('VARYING');
    const typeModifier = statementTokens.next.text === '(' ? statementTokens.textInParentheses() : null;
    if (
      type === 'timestamp' &&
      (statementTokens.skip('WITHOUT', 'TIME', 'ZONE') || sqlTypeName === 'TIMESTAMP') &&
      !statementTokens.skip('WITH', 'TIME', 'ZONE')
    )
      this.notices.add('instants are UTC and come back with their offset');
    if (statementTokens.next.text === '[' || statementTokens.skip('ARRAY'))
      throw tableRefusal('columns of arrays are not implemented: use json');
    if (typeModifier !== null && type === 'string') this.notices.add('lengths of texts are not checked');
    if (/^(INT|INT4|INTEGER|INT2|SMALLINT)$/.test(sqlTypeName))
      this.notices.add('integer columns hold 64 bits, and are shown as bigint');
    if (sqlTypeName === 'NUMERIC' || sqlTypeName === 'DECIMAL') this.notices.add('numeric columns hold doubles');
    if (type !== 'vector') return { type, dims: 0 };
    const dims = Number(typeModifier ?? 0);
    if (!Number.isInteger(dims) || dims < 0) throw statementTokens.refusal('expected a number of dimensions');
    return { type, dims };
  }

  #setPrimaryKey(keyColumn: string): void {
    if (this.#tablePrimaryKey !== null)
      throw new ServiceError('REL_INVALID', 'a table has one primary key', { reason: 'several-keys' });
    this.#tablePrimaryKey = keyColumn;
  }

  #readReferences(referringColumn: string): void {
    const statementTokens = this.#tableTokens;
    const references = statementTokens.tableName();
    if (statementTokens.next.text === '(') statementTokens.textInParentheses();
    if (statementTokens.skip('MATCH')) statementTokens.take();
    while (statementTokens.skip('ON')) {
      statementTokens.take();
      if (!statementTokens.skip('NO', 'ACTION') && !statementTokens.skip('RESTRICT'))
        throw tableRefusal('ON DELETE and ON UPDATE are not implemented: references are not enforced');
    }
    this.#setProperty(referringColumn, { references });
    this.notices.add('REFERENCES is recorded and shown, but not enforced');
  }

  #setProperty(columnName: string, propertyChange: Partial<PropertyDefinition>): void {
    const knownProperty = this.#tableProperties[columnName];
    if (knownProperty === undefined)
      throw new ServiceError('REL_UNKNOWN_COLUMN', `${JSON.stringify(columnName)} is no column of the table`);
    this.#tableProperties[columnName] = { ...knownProperty, ...propertyChange };
  }

  #skipCollation(): void {
    this.#tableTokens.name('a name');
    if (this.#tableTokens.skip('.')) this.#tableTokens.name('a name');
  }
}

const refusedConstraints: Readonly<Record<string, string>> = {
  DEFAULT: 'DEFAULT is not implemented: send the value with each row',
  UNIQUE: 'UNIQUE is not implemented: only the primary key is unique',
  CHECK: 'CHECK is not implemented: policies say what may be written',
  GENERATED: 'generated columns are not implemented',
  EXCLUDE: 'EXCLUDE is not implemented',
  LIKE: 'LIKE is not implemented: name the columns',
};

const tableRefusal = (refusalReason: string): ServiceError => new ServiceError('REL_NOT_IMPLEMENTED', refusalReason);
