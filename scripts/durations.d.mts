type Rows = Readonly<Record<string, number>>;
type Measured = Readonly<Record<string, number | null>>;

export const lastRun: string;
export function paceOf(rows: Rows, measured: Measured): number;
export function slowest(measured: Measured, count: number): string[];
export function grown(rows: Rows, measured: Measured, count: number): string[];
export function updated(rows: Rows, measured: Measured): Record<string, number>;
