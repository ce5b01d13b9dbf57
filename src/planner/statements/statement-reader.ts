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
  readonly #lexedBySql = new LRUCache<string, LexedStatement>({ max: 512 });
  readonly #markedTexts = new MarkedTexts();
  readonly #knownShapes = new KnownShapes();
  readonly #queriesByKey = new LRUCache<string, QueryStatement>({ max: 1_024, ...byText });
  /** Whether a statement of this key was read as a write. */
  readonly #isWriteKey: (key: string) => boolean;

  constructor(isWrite: (key: string) => boolean) {
    this.#isWriteKey = isWrite;
  }

  clear(): void {
    this.#lexedBySql.clear();
    this.#markedTexts.clear();
    this.#knownShapes.clear();
    this.#queriesByKey.clear();
  }

  /** A question that was parsed before. */
  find({ key }: StatementSource): QueryStatement | undefined {
    return this.#queriesByKey.get(key);
  }

  /** The same text again, or one of other literals, is the common case. */
  lex(sql: string, dialect: Dialect): TextSource {
    const knownLexed = this.#knownShapes.recognise(sql) ?? this.#lexedBySql.get(sql);
    if (knownLexed) return new TextSource(knownLexed, dialect);
    const lexedSql = lexStatement(sql);
    this.#lexedBySql.set(sql, lexedSql);
    const source = new TextSource(lexedSql, dialect);
    if (this.#queriesByKey.has(source.key) || this.#isWriteKey(source.key)) this.#knownShapes.learn(lexedSql);
    return source;
  }

  read({ sql, parameters, parsed, dialect = 'spec' }: QueryRequest): TextSource | QuerySource {
    if (parsed !== undefined) return new QuerySource(parsed, dialect);
    if (parameters === undefined) return this.lex(sql, dialect);
    return new TextSource(this.#markedTexts.lex(sql, parameters), dialect);
  }

  async readInTurns({ sql, parameters, dialect = 'spec' }: QueryRequest, yieldTurn: () => Promise<void>): Promise<TextSource> {
    const lexingWork = lexing(sql!, parameters === undefined ? null : valuesOf(parameters));
    for (;;) {
      const lexingStep = lexingWork.next();
      await yieldTurn();
      if (lexingStep.done) return new TextSource(allUsed(lexingStep.value, parameters ?? []), dialect);
    }
  }

  parse(source: StatementSource): QueryStatement | { readonly control: ControlStatement } {
    const tree = source.parse();
    // Names of a control statement may have been written as literals: it is never cached by template.
    if (tree.kind === 'control') return { control: tree };
    const statement = queryStatementOf(tree);
    this.#queriesByKey.set(source.key, statement);
    return statement;
  }
}
