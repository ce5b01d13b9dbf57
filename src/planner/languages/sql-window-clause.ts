/** OVER (PARTITION BY … ORDER BY … ROWS BETWEEN … AND …) behind a function. */
import type { Expression, Frame, FrameBound, OrderItem, Window } from '../syntax/statement.ts';
import type { TokenCursor } from './token-cursor.ts';

export interface OverReaders {
  readonly read: (cursor: TokenCursor) => Expression;
  readonly order: (cursor: TokenCursor) => OrderItem[];
}

/** The specification in brackets, or the name of one of WINDOW; the word OVER is read. */
export function readOver(sqlCursor: TokenCursor, windowReaders: OverReaders): Window {
  const { read: readPartition, order: readWindowOrder } = windowReaders;
  if (sqlCursor.key() !== '(') {
    if (sqlCursor.dialect !== 'wide') throw sqlCursor.notImplemented('a window by name (write OVER (...))');
    return windowByName(sqlCursor, windowReaders);
  }
  sqlCursor.next();
  const partitionBy: Expression[] = [];
  if (sqlCursor.acceptPair('PARTITION', 'BY')) {
    do partitionBy.push(readPartition(sqlCursor));
    while (sqlCursor.accept(','));
  }
  const windowOrder = sqlCursor.acceptPair('ORDER', 'BY') ? readWindowOrder(sqlCursor) : [];
  const windowFrame = sqlCursor.key() === 'ROWS' || sqlCursor.key() === 'RANGE' ? readWindowFrame(sqlCursor) : null;
  sqlCursor.expect(')');
  return { partition: partitionBy, orderBy: windowOrder, frame: windowFrame };
}

/** `WINDOW w AS (...), v AS (...)`, for what comes behind it; the word is read. */
export function readWindows(sqlCursor: TokenCursor, windowReaders: OverReaders): ReadonlyMap<string, Window> {
  const windowsByName = new Map<string, Window>();
  do {
    const { location } = sqlCursor;
    const windowName = sqlCursor.name('a window').toLowerCase();
    if (windowsByName.has(windowName))
      throw sqlCursor.error(`WINDOW names ${JSON.stringify(windowName)} twice`, location, 'alias-twice');
    sqlCursor.expect('AS');
    if (sqlCursor.key() !== '(') throw sqlCursor.expectedError('(');
    windowsByName.set(windowName, readOver(sqlCursor, windowReaders));
  } while (sqlCursor.accept(','));
  return windowsByName;
}

/** The projection comes before the clause that says its windows: it is read ahead. */
function windowByName(sqlCursor: TokenCursor, windowReaders: OverReaders): Window {
  const { location } = sqlCursor;
  const windowName = sqlCursor.name('a window');
  const windowClause = sqlCursor.windows ?? sqlCursor.ahead('WINDOW', () => readWindows(sqlCursor, windowReaders));
  const namedWindow = windowClause?.get(windowName.toLowerCase());
  if (namedWindow === undefined)
    throw sqlCursor.error(`there is no window ${JSON.stringify(windowName)} in WINDOW`, location, 'no-such-window');
  return namedWindow;
}

function readWindowFrame(sqlCursor: TokenCursor): Frame {
  const { location } = sqlCursor;
  const frameUnit = sqlCursor.next().key === 'ROWS' ? 'rows' : 'range';
  const isBetween = sqlCursor.accept('BETWEEN');
  const frameFrom = readFrameBound(sqlCursor, frameUnit, 'PRECEDING');
  if (isBetween) sqlCursor.expect('AND');
  const frameTo: FrameBound = isBetween ? readFrameBound(sqlCursor, frameUnit, 'FOLLOWING') : { kind: 'current' };
  return { unit: frameUnit, from: frameFrom, to: frameTo, location };
}

function readFrameBound(sqlCursor: TokenCursor, frameUnit: Frame['unit'], unboundedWord: 'PRECEDING' | 'FOLLOWING'): FrameBound {
  if (sqlCursor.acceptPair('CURRENT', 'ROW')) return { kind: 'current' };
  if (sqlCursor.accept('UNBOUNDED')) {
    sqlCursor.expect(unboundedWord);
    return { kind: 'unbounded' };
  }
  if (frameUnit === 'range') throw sqlCursor.notImplemented('RANGE by a distance (write ROWS)');
  const boundRowCount = sqlCursor.literal('i', 'CURRENT ROW, UNBOUNDED or a number of rows');
  const isFollowing = sqlCursor.accept('FOLLOWING');
  if (!isFollowing) sqlCursor.expect('PRECEDING');
  return { kind: 'rows', count: boundRowCount, following: isFollowing };
}
