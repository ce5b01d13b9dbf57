type Rows = Readonly<Record<string, number>>;
type Measured = Readonly<Record<string, number | null>>;

export const paceFiles: readonly string[];
export function paceOf(rows: Rows, measured: Measured, besides?: readonly string[]): number;
export function tooSlow(rows: Rows, measured: Measured, pace: number): { file: string; line: string }[];
export function withoutRow(rows: Rows, files: readonly string[]): string[];
export function slowest(measured: Measured, count: number): string[];
export function updated(rows: Rows, measured: Measured, some: boolean, pace: number): Record<string, number>;
