/** Reads texts of questions, and keeps what was read: the same text again, or one of other literals, is the common case. */
import { LRUCache } from 'lru-cache';
import { type LexedStatement, lexing, lexStatement } from '../languages/sql-lexer.ts';
import { KnownShapes } from '../languages/sql-shapes.ts';
import type { QueryRequest } from '../planner-contract.ts';
import type { ControlStatement, Dialect } from '../syntax/statement.ts';
import { allUsed, MarkedTexts, valuesOf } from './parameters.ts';
import {
  type StatementSource,
  QuerySource,
  TextSource,
  byText,
  type QueryStatement,
  queryStatementOf,
} from './statement-source.ts';

export class StatementReader {
  readonly #lexed = new LRUCache<string, LexedStatement>({ max: 512 });
  readonly #marked = new MarkedTexts();
  readonly #shapes = new KnownShapes();
  readonly #queries = new LRUCache<string, QueryStatement>({ max: 1_024, ...byText });
  /** Whether a statement of this key was read as a write. */
  readonly #isWrite: (key: string) => boolean;

  constructor(isWrite: (key: string) => boolean) {
    this.#isWrite = isWrite;
  }

  clear(): void {
    this.#lexed.clear();
    this.#marked.clear();
    this.#shapes.clear();
    this.#queries.clear();
  }

  /** A question that was parsed before. */
  find({ key }: StatementSource): QueryStatement | undefined {
    return this.#queries.get(key);
  }

  /** The same text again, or one of other literals, is the common case. */
  lex(sql: string, dialect: Dialect): TextSource {
    const known = this.#shapes.recognise(sql) ?? this.#lexed.get(sql);
    if (known) return new TextSource(known, dialect);
    const lexed = lexStatement(sql);
    this.#lexed.set(sql, lexed);
    const source = new TextSource(lexed, dialect);
    if (this.#queries.has(source.key) || this.#isWrite(source.key)) this.#shapes.learn(lexed);
    return source;
  }

  read({ sql, parameters, parsed, dialect = 'spec' }: QueryRequest): TextSource | QuerySource {
    if (parsed !== undefined) return new QuerySource(parsed, dialect);
    if (parameters === undefined) return this.lex(sql, dialect);
    return new TextSource(this.#marked.lex(sql, parameters), dialect);
  }

  async readInTurns({ sql, parameters, dialect = 'spec' }: QueryRequest, yieldTurn: () => Promise<void>): Promise<TextSource> {
    const work = lexing(sql!, parameters === undefined ? null : valuesOf(parameters));
    for (;;) {
      const step = work.next();
      await yieldTurn();
      if (step.done) return new TextSource(allUsed(step.value, parameters ?? []), dialect);
    }
  }

  parse(source: StatementSource): QueryStatement | { readonly control: ControlStatement } {
    const tree = source.parse();
    // Names of a control statement may have been written as literals: it is never cached by template.
    if (tree.kind === 'control') return { control: tree };
    const statement = queryStatementOf(tree);
    this.#queries.set(source.key, statement);
    return statement;
  }
}
