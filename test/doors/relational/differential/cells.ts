/** Cells of two servers, made comparable. */

/** Whole numbers are one type here, as texts are; doubles stand for decimals, and instants have a zone. */
export const families: Readonly<Record<number, string>> = {
  ...Object.fromEntries([20, 21, 23].map((oid) => [oid, 'integer'])),
  ...Object.fromEntries([700, 701, 1700].map((oid) => [oid, 'number'])),
  ...Object.fromEntries([25, 1043, 2950].map((oid) => [oid, 'text'])),
  ...Object.fromEntries([1114, 1184].map((oid) => [oid, 'instant'])),
  16: 'bool',
  1082: 'date',
  ...Object.fromEntries([114, 3802].map((oid) => [oid, 'json'])),
  17: 'bytea',
};

/** Text of a cell in either format, the same for all types of a family. */
export function valueOf(cell: Buffer, oid: number, isBinary: boolean): string {
  const family = families[oid];
  if (!isBinary) {
    const text = cell.toString();
    return family === 'number' && !/^-?\d{1,30}$/.test(text)
      ? String(Number(text))
      : family === 'instant'
        ? text.replace(/\+00$/, '')
        : text;
  }
  switch (family) {
    case 'integer':
      return String(cell.length === 2 ? cell.readInt16BE() : cell.length === 4 ? cell.readInt32BE() : cell.readBigInt64BE());
    case 'number':
      return String(oid === 700 ? cell.readFloatBE() : oid === 701 ? cell.readDoubleBE() : decimalOf(cell));
    case 'json':
      return cell.toString('utf8', oid === 3802 ? 1 : 0);
    case 'bool':
      return cell[0] === 1 ? 't' : 'f';
    case 'date':
      return new Date(Date.UTC(2000, 0, 1) + cell.readInt32BE() * 86_400_000).toISOString().slice(0, 10);
    case 'instant': {
      const microseconds = cell.readBigInt64BE();
      const rest = ((microseconds % 1_000_000n) + 1_000_000n) % 1_000_000n;
      const head = new Date(Date.UTC(2000, 0, 1) + Number((microseconds - rest) / 1_000n))
        .toISOString()
        .slice(0, 19)
        .replace('T', ' ');
      const fraction = rest === 0n ? '' : `.${String(rest).padStart(6, '0').replace(/0+$/, '')}`;
      return head + fraction;
    }
    default:
      if (oid === 2950) return cell.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
      return cell.toString();
  }
}

/** Groups of four digits: all of them where it is whole, as a double where it is not. */
function decimalOf(cell: Buffer): string {
  const [count, weight, scale] = [cell.readInt16BE(0), cell.readInt16BE(2), cell.readInt16BE(6)];
  let value = 0;
  let whole = 0n;
  for (let i = 0; i < Math.max(count, weight + 1); i++) {
    const group = i < count ? cell.readInt16BE(8 + i * 2) : 0;
    value += group * 10_000 ** (weight - i);
    if (i <= weight) whole = whole * 10_000n + BigInt(group);
  }
  const isNegative = cell.readUInt16BE(4) === 0x4000;
  return scale === 0 ? String(isNegative ? -whole : whole) : String(isNegative ? -value : value);
}
