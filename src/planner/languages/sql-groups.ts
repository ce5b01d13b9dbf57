/** GROUP BY: expressions, a window, and in the wide dialect ROLLUP, CUBE and GROUPING SETS, which say several groupings at once. */
import type { Expression, GroupWindow, Location, Select } from '../syntax/statement.ts';
import { readColumn, readExpression, readInterval } from './sql-expressions.ts';
import { itemsMax, type TokenCursor } from './token-cursor.ts';

export type Groups = Pick<Select, 'groupBy' | 'window' | 'groupingSets'>;

export const noGroups: Groups = { groupBy: [], window: null };

/** The most grouping sets: each is computed like a statement of its own. */
const setsMax = 64;

/** Places of expressions in GROUP BY. */
type GroupingSet = readonly number[];

export function readGroups(cursor: TokenCursor): Groups {
  const distinct = cursor.dialect === 'wide' && cursor.accept('DISTINCT');
  return new GroupReader(cursor).read(distinct);
}

class GroupReader {
  readonly #cursor: TokenCursor;
  readonly #expressions: Expression[] = [];
  #window: GroupWindow | null = null;
  /** Something but plain expressions was read. */
  #hasSets = false;

  constructor(cursor: TokenCursor) {
    this.#cursor = cursor;
  }

  /** The items of the clause multiply: each grouping is one set of each of them. */
  read(distinct: boolean): Groups {
    const cursor = this.#cursor;
    const { location } = cursor;
    let sets: number[][] = [[]];
    do {
      if (this.#readWindow()) continue;
      const item = this.#item();
      // There may be thousands of plain expressions.
      if (item.length === 1) for (const set of sets) set.push(...item[0]!);
      else sets = multiplySets(sets, item, location, cursor);
    } while (cursor.accept(','));
    const groups = { groupBy: this.#expressions, window: this.#window };
    if (!this.#hasSets) return groups;
    if (this.#window) throw cursor.notImplemented('a window beside GROUPING SETS', location);
    return { ...groups, groupingSets: { distinct, sets } };
  }

  #item(): GroupingSet[] {
    const cursor = this.#cursor;
    const { location } = cursor;
    const word = cursor.dialect === 'wide' && cursor.token.kind === 'word' ? cursor.key() : '';
    if (cursor.dialect === 'wide' && cursor.key() === '(' && cursor.key(1) === ')') {
      cursor.next();
      cursor.next();
      this.#hasSets = true;
      return [[]];
    }
    if (word === 'GROUPING' && cursor.key(1) === 'SETS') {
      cursor.next();
      cursor.next();
      this.#hasSets = true;
      return this.#list(() => this.#item()).flat();
    }
    if ((word === 'ROLLUP' || word === 'CUBE') && cursor.key(1) === '(') {
      cursor.next();
      this.#hasSets = true;
      const parts = this.#list(() => this.#expression());
      if (word === 'ROLLUP' && parts.length >= setsMax) throw tooMany(cursor, location);
      if (word === 'ROLLUP') return [...parts.keys(), parts.length].reverse().map((count) => parts.slice(0, count).flat());
      return parts.reduce<number[][]>((sets, part) => multiplySets(sets, [part, []], location, cursor), [[]]);
    }
    return [this.#expression()];
  }

  #list<T>(read: () => T): T[] {
    const cursor = this.#cursor;
    return cursor.nest(() => {
      cursor.expect('(');
      const items: T[] = [];
      do items.push(read());
      while (cursor.accept(','));
      cursor.expect(')');
      return items;
    });
  }

  /** An expression, or several that stand side by side in brackets. */
  #expression(): GroupingSet {
    const { location } = this.#cursor;
    const expression = readExpression(this.#cursor);
    const items = expression.kind === 'row' && this.#cursor.dialect === 'wide' ? expression.items : [expression];
    if (this.#expressions.length + items.length > itemsMax)
      throw this.#cursor.error(`GROUP BY has at most ${itemsMax} expressions`, location);
    return items.map((item) => this.#expressions.push(notConstant(this.#cursor, item, location)) - 1);
  }

  #readWindow(): boolean {
    const cursor = this.#cursor;
    const key = cursor.key();
    const type = key === 'TUMBLE' ? 'tumble' : key === 'HOP' ? 'hop' : key === 'SESSION' ? 'session' : null;
    if (type === null || cursor.key(1) !== '(') return false;
    if (this.#window) throw cursor.error('GROUP BY has one window');
    this.#window = readWindow(cursor, type);
    return true;
  }
}

function tooMany(cursor: TokenCursor, location: Location): Error {
  return cursor.error(`GROUP BY says at most ${setsMax} groupings`, location);
}

function multiplySets(
  sets: readonly GroupingSet[],
  groupingSets: readonly GroupingSet[],
  location: Location,
  cursor: TokenCursor,
): number[][] {
  if (sets.length * groupingSets.length > setsMax) throw tooMany(cursor, location);
  return sets.flatMap((set) => groupingSets.map((more) => [...set, ...more]));
}

/** TUMBLE(column, size), HOP(column, slide, size), SESSION(column, gap). */
function readWindow(cursor: TokenCursor, type: GroupWindow['type']): GroupWindow {
  const { location } = cursor;
  cursor.next();
  cursor.expect('(');
  const column = readColumn(cursor);
  cursor.expect(',');
  const intervals = [readInterval(cursor)];
  if (type === 'hop') {
    cursor.expect(',');
    intervals.push(readInterval(cursor));
  }
  cursor.expect(')');
  return { type, column, intervals, location };
}

/** A whole number is the place of a column; any other constant would say nothing. */
export function notConstant(cursor: TokenCursor, expression: Expression, location: Location): Expression {
  if (expression.kind !== 'literal' || typeof cursor.lexed.parameters[expression.slot] === 'bigint') return expression;
  throw cursor.error('constants do not sort or group: name a column, or its place by a whole number', location);
}
