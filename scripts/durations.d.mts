type Rows = Readonly<Record<string, number>>;
type Measured = Readonly<Record<string, number | null>>;

export function tooSlow(rows: Rows, measured: Measured): { file: string; line: string }[];
export function withoutRow(rows: Readonly<Record<string, number>>, files: readonly string[]): string[];
export function slowest(measured: Measured, count: number): string[];
export function updated(rows: Rows, measured: Measured, some: boolean): Record<string, number>;
