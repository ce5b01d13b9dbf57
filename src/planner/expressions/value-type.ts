/** The types that the value of an expression may have. */
import type { ColumnType } from '../../log/values/value.ts';

/** `interval` is nanoseconds, an operand of timestamp arithmetic only; `null` is the type of a bare NULL. */
export type ValueType = ColumnType | 'null' | 'interval';
