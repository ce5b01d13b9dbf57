/** OVER (PARTITION BY … ORDER BY … ROWS BETWEEN … AND …) behind a function. */
import type { Expression, Frame, FrameBound, OrderItem } from '../statement.ts';
import type { TokenCursor } from './token-cursor.ts';

type Over = Extract<Expression, { kind: 'over' }>;

export interface OverReaders {
  readonly read: (cursor: TokenCursor) => Expression;
  readonly order: (cursor: TokenCursor) => OrderItem[];
}

/** The specification in brackets; the word OVER is read. */
export function readOver(cursor: TokenCursor, { read, order }: OverReaders): Pick<Over, 'partition' | 'orderBy' | 'frame'> {
  if (cursor.key() !== '(') throw cursor.notImplemented('a window by name (write OVER (...))');
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

function readFrame(cursor: TokenCursor): Frame {
  const { place } = cursor;
  const unit = cursor.next().key === 'ROWS' ? 'rows' : 'range';
  const between = cursor.accept('BETWEEN');
  const from = readBound(cursor, unit, 'PRECEDING');
  if (between) cursor.expect('AND');
  const to: FrameBound = between ? readBound(cursor, unit, 'FOLLOWING') : { kind: 'current' };
  return { unit, from, to, place };
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
