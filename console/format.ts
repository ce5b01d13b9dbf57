/** Values as texts. Instants are nanoseconds UTC; the local time stands in a title. */
import { forever } from './sql.ts';

const instantColumns = new Set(['valid_from', 'valid_to', 'system_from', 'system_to']);
export const isInstantColumn = (name: string): boolean => instantColumns.has(name);

/** `2024-03-10`, `2024-03-10 12:00:00`, or with as many digits of the second as it has. */
export function instantText(ns: bigint | string): string {
  if (String(ns) === forever) return '∞';
  const value = BigInt(ns);
  const ms = value / 1_000_000n;
  const date = new Date(Number(ms));
  if (Number.isNaN(date.getTime())) return String(ns);
  const iso = date.toISOString();
  const nanos = String(((value % 1_000_000_000n) + 1_000_000_000n) % 1_000_000_000n).padStart(9, '0');
  if (nanos === '000000000') return iso.endsWith('T00:00:00.000Z') ? iso.slice(0, 10) : iso.slice(0, 19).replace('T', ' ');
  return `${iso.slice(0, 19).replace('T', ' ')}.${nanos.replace(/0+$/, '')}`;
}

/** As a statement takes it. */
export const instantLiteral = (ns: bigint | string): string =>
  `${instantText(ns).replace(' ', 'T')}${instantText(ns).length > 10 ? 'Z' : ''}`;

export function localText(ns: bigint | string): string {
  if (String(ns) === forever) return 'still';
  return `${new Date(Number(BigInt(ns) / 1_000_000n)).toLocaleString()} here`;
}

export function nanosOf(text: string): bigint {
  if (/^\d{16,}$/.test(text)) return BigInt(text);
  const [whole = '', fraction = ''] = text.replace(' ', 'T').replace(/Z$/, '').split('.');
  const ms = Date.parse(whole.length === 10 ? `${whole}T00:00:00Z` : `${whole}Z`);
  return BigInt(ms) * 1_000_000n + BigInt(fraction.padEnd(9, '0').slice(0, 9));
}

export const count = (n: number): string => n.toLocaleString('en-US').replaceAll(',', ' ');

export function bytes(n: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  let value = n;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`;
}

export const plural = (n: number, one: string, many = `${one}s`): string => `${count(n)} ${n === 1 ? one : many}`;

/** A value as text, whatever it is; objects as JSON with integers as they are. */
export function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'object' && value !== null)
    return JSON.stringify(value, (_, each: unknown) => (typeof each === 'bigint' ? each.toString() : each));
  return `${value as number | bigint | boolean | null | undefined}`;
}
