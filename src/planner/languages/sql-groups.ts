/** GROUP BY: expressions, a window, and in the wide dialect ROLLUP, CUBE and GROUPING SETS, which say several groupings at once. */
import type { Expression, GroupWindow, Location, Select } from '../syntax/statement.ts';
import { readColumn, readExpression, readInterval } from './sql-expressions.ts';
import { itemsMax, type TokenCursor } from './token-cursor.ts';

export type Groups = Pick<Select, 'groupBy' | 'window' | 'groupingSets'>;

export const noGroups: Groups = { groupBy: [], window: null };

/** The most grouping sets: each is computed like a statement of its own. */
const groupingSetsMax = 64;

/** Places of expressions in GROUP BY. */
type GroupingSet = readonly number[];

export function readGroups(sqlCursor: TokenCursor): Groups {
  const isDistinct = sqlCursor.dialect === 'wide' && sqlCursor.accept('DISTINCT');
  return new GroupReader(sqlCursor).read(isDistinct);
}

class GroupReader {
  readonly #sqlCursor: TokenCursor;
  readonly #groupExpressions: Expression[] = [];
  #groupWindow: GroupWindow | null = null;
  /** Something but plain expressions was read. */
  #hasGroupingSets = false;

  constructor(sqlCursor: TokenCursor) {
    this.#sqlCursor = sqlCursor;
  }

  /** The items of the clause multiply: each grouping is one set of each of them. */
  read(distinct: boolean): Groups {
    const sqlCursor = this.#sqlCursor;
    const { location } = sqlCursor;
    let groupingSets: number[][] = [[]];
    do {
      if (this.#readWindowClause()) continue;
      const groupItem = this.#readGroupItem();
      // There may be thousands of plain expressions.
      if (groupItem.length === 1) for (const groupingSet of groupingSets) groupingSet.push(...groupItem[0]!);
      else groupingSets = multiplySets(groupingSets, groupItem, location, sqlCursor);
    } while (sqlCursor.accept(','));
    const readGroupsSoFar = { groupBy: this.#groupExpressions, window: this.#groupWindow };
    if (!this.#hasGroupingSets) return readGroupsSoFar;
    if (this.#groupWindow) throw sqlCursor.notImplemented('a window beside GROUPING SETS', location);
    return { ...readGroupsSoFar, groupingSets: { distinct, sets: groupingSets } };
  }

  #readGroupItem(): GroupingSet[] {
    const sqlCursor = this.#sqlCursor;
    const { location } = sqlCursor;
    const groupingWord = sqlCursor.dialect === 'wide' && sqlCursor.token.kind === 'word' ? sqlCursor.key() : '';
    if (sqlCursor.dialect === 'wide' && sqlCursor.key() === '(' && sqlCursor.key(1) === ')') {
      sqlCursor.next();
      sqlCursor.next();
      this.#hasGroupingSets = true;
      return [[]];
    }
    if (groupingWord === 'GROUPING' && sqlCursor.key(1) === 'SETS') {
      sqlCursor.next();
      sqlCursor.next();
      this.#hasGroupingSets = true;
      return this.#readGroupList(() => this.#readGroupItem()).flat();
    }
    if ((groupingWord === 'ROLLUP' || groupingWord === 'CUBE') && sqlCursor.key(1) === '(') {
      sqlCursor.next();
      this.#hasGroupingSets = true;
      const rollupParts = this.#readGroupList(() => this.#readGroupExpression());
      if (groupingWord === 'ROLLUP' && rollupParts.length >= groupingSetsMax) throw tooManyGroupings(sqlCursor, location);
      if (groupingWord === 'ROLLUP')
        return [...rollupParts.keys(), rollupParts.length]
          .reverse()
          .map((rollupLength) => rollupParts.slice(0, rollupLength).flat());
      return rollupParts.reduce<number[][]>(
        (cubeSets, cubePart) => multiplySets(cubeSets, [cubePart, []], location, sqlCursor),
        [[]],
      );
    }
    return [this.#readGroupExpression()];
  }

  #readGroupList<T>(readGroupItem: () => T): T[] {
    const sqlCursor = this.#sqlCursor;
    return sqlCursor.nest(() => {
      sqlCursor.expect('(');
      const groupItems: T[] = [];
      do groupItems.push(readGroupItem());
      while (sqlCursor.accept(','));
      sqlCursor.expect(')');
      return groupItems;
    });
  }

  /** An expression, or several that stand side by side in brackets. */
  #readGroupExpression(): GroupingSet {
    const { location } = this.#sqlCursor;
    const groupExpression = readExpression(this.#sqlCursor);
    const groupedItems =
      groupExpression.kind === 'row' && this.#sqlCursor.dialect === 'wide' ? groupExpression.items : [groupExpression];
    if (this.#groupExpressions.length + groupedItems.length > itemsMax)
      throw this.#sqlCursor.error(`GROUP BY has at most ${itemsMax} expressions`, location);
    return groupedItems.map(
      (groupedItem) => this.#groupExpressions.push(notConstant(this.#sqlCursor, groupedItem, location)) - 1,
    );
  }

  #readWindowClause(): boolean {
    const sqlCursor = this.#sqlCursor;
    const windowKey = sqlCursor.key();
    const windowType =
      windowKey === 'TUMBLE' ? 'tumble' : windowKey === 'HOP' ? 'hop' : windowKey === 'SESSION' ? 'session' : null;
    if (windowType === null || sqlCursor.key(1) !== '(') return false;
    if (this.#groupWindow) throw sqlCursor.error('GROUP BY has one window');
    this.#groupWindow = readGroupWindow(sqlCursor, windowType);
    return true;
  }
}

function tooManyGroupings(sqlCursor: TokenCursor, location: Location): Error {
  return sqlCursor.error(`GROUP BY says at most ${groupingSetsMax} groupings`, location);
}

function multiplySets(
  sets: readonly GroupingSet[],
  groupingSets: readonly GroupingSet[],
  location: Location,
  sqlCursor: TokenCursor,
): number[][] {
  if (sets.length * groupingSets.length > groupingSetsMax) throw tooManyGroupings(sqlCursor, location);
  return sets.flatMap((groupingSet) => groupingSets.map((multiplierSet) => [...groupingSet, ...multiplierSet]));
}

/** TUMBLE(column, size), HOP(column, slide, size), SESSION(column, gap). */
function readGroupWindow(sqlCursor: TokenCursor, windowType: GroupWindow['type']): GroupWindow {
  const { location } = sqlCursor;
  sqlCursor.next();
  sqlCursor.expect('(');
  const windowColumn = readColumn(sqlCursor);
  sqlCursor.expect(',');
  const windowIntervals = [readInterval(sqlCursor)];
  if (windowType === 'hop') {
    sqlCursor.expect(',');
    windowIntervals.push(readInterval(sqlCursor));
  }
  sqlCursor.expect(')');
  return { type: windowType, column: windowColumn, intervals: windowIntervals, location };
}

/** A whole number is the place of a column; any other constant would say nothing. */
export function notConstant(sqlCursor: TokenCursor, expression: Expression, location: Location): Expression {
  if (expression.kind !== 'literal' || typeof sqlCursor.lexed.parameters[expression.slot] === 'bigint') return expression;
  throw sqlCursor.error('constants do not sort or group: name a column, or its place by a whole number', location);
}
