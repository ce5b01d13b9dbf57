/** OVER (PARTITION BY … ORDER BY … ROWS BETWEEN … AND …) behind a function. */
import type { Expression, Frame, FrameBound, OrderItem, Window } from '../syntax/statement.ts';
import type { TokenCursor } from './token-cursor.ts';

export interface OverReaders {
  readonly read: (cursor: TokenCursor) => Expression;
  readonly order: (cursor: TokenCursor) => OrderItem[];
}

/** The specification in brackets, or the name of one of WINDOW; the word OVER is read. */
export function readOver(cursor: TokenCursor, readers: OverReaders): Window {
  const { read, order } = readers;
  if (cursor.key() !== '(') {
    if (cursor.dialect !== 'wide') throw cursor.notImplemented('a window by name (write OVER (...))');
    return namedWindow(cursor, readers);
  }
  cursor.next();
  const partition: Expression[] = [];
  if (cursor.acceptPair('PARTITION', 'BY')) {
    do partition.push(read(cursor));
    while (cursor.accept(','));
  }
  const orderBy = cursor.acceptPair('ORDER', 'BY') ? order(cursor) : [];
  const frame = cursor.key() === 'ROWS' || cursor.key() === 'RANGE' ? readFrame(cursor) : null;
  cursor.expect(')');
  return { partition, orderBy, frame };
}

/** `WINDOW w AS (...), v AS (...)`, for what comes behind it; the word is read. */
export function readWindows(cursor: TokenCursor, readers: OverReaders): ReadonlyMap<string, Window> {
  const windows = new Map<string, Window>();
  do {
    const { location } = cursor;
    const name = cursor.name('a window').toLowerCase();
    if (windows.has(name)) throw cursor.error(`WINDOW names ${JSON.stringify(name)} twice`, location, 'alias-twice');
    cursor.expect('AS');
    if (cursor.key() !== '(') throw cursor.expectedError('(');
    windows.set(name, readOver(cursor, readers));
  } while (cursor.accept(','));
  return windows;
}

/** The projection comes before the clause that says its windows: it is read ahead. */
function namedWindow(cursor: TokenCursor, readers: OverReaders): Window {
  const { location } = cursor;
  const name = cursor.name('a window');
  const windows = cursor.windows ?? cursor.ahead('WINDOW', () => readWindows(cursor, readers));
  const namedWindow = windows?.get(name.toLowerCase());
  if (namedWindow === undefined)
    throw cursor.error(`there is no window ${JSON.stringify(name)} in WINDOW`, location, 'no-such-window');
  return namedWindow;
}

function readFrame(cursor: TokenCursor): Frame {
  const { location } = cursor;
  const unit = cursor.next().key === 'ROWS' ? 'rows' : 'range';
  const between = cursor.accept('BETWEEN');
  const from = readBound(cursor, unit, 'PRECEDING');
  if (between) cursor.expect('AND');
  const to: FrameBound = between ? readBound(cursor, unit, 'FOLLOWING') : { kind: 'current' };
  return { unit, from, to, location };
}

function readBound(cursor: TokenCursor, unit: Frame['unit'], unbounded: 'PRECEDING' | 'FOLLOWING'): FrameBound {
  if (cursor.acceptPair('CURRENT', 'ROW')) return { kind: 'current' };
  if (cursor.accept('UNBOUNDED')) {
    cursor.expect(unbounded);
    return { kind: 'unbounded' };
  }
  if (unit === 'range') throw cursor.notImplemented('RANGE by a distance (write ROWS)');
  const count = cursor.literal('i', 'CURRENT ROW, UNBOUNDED or a number of rows');
  const following = cursor.accept('FOLLOWING');
  if (!following) cursor.expect('PRECEDING');
  return { kind: 'rows', count, following };
}
