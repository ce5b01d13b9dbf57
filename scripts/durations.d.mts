type Rows = Readonly<Record<string, number>>;
type Measured = Readonly<Record<string, number | null>>;

export function tooSlow(rows: Rows, measured: Measured): { file: string; line: string }[];
export function withoutRow(rows: Rows, measured: Measured): string[];
export function slowest(measured: Measured, count: number): string[];
export function updated(rows: Rows, measured: Measured, some: boolean): Record<string, number>;
